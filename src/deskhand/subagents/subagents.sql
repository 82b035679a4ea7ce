-- subagent_add --
INSERT INTO subagent(id, round, parent, session, title, state, at, request, told)
VALUES(?, ?, ?, ?, ?, 'wanted', ?, ?, ?)
ON CONFLICT DO NOTHING

-- subagent_open: what is to be given, goes on, or has to be told --
SELECT id, round, parent, session, title, state, told, stop, at, ended_at, input_tokens, output_tokens,
  request, said, label FROM subagent
WHERE told = 0 OR state IN ('wanted', 'running') ORDER BY at, id, round

-- subagent_live --
SELECT count(*) FILTER (WHERE parent = ?1), count(*) FROM subagent WHERE state IN ('wanted', 'running')

-- subagent_given --
UPDATE subagent SET state = 'running' WHERE id = ? AND round = ? AND state = 'wanted'

-- subagent_ended --
UPDATE subagent SET state = ?, ended_at = ?, input_tokens = ?, output_tokens = ?, said = ?, label = ?
WHERE id = ? AND round = ? AND state = ?

-- subagent_told --
UPDATE subagent SET told = 1 WHERE id = ? AND round = ? AND told = 0

-- subagent_forget --
DELETE FROM subagent WHERE told = 1 AND at < ? AND state NOT IN ('wanted', 'running')
AND id NOT IN (SELECT id FROM teammate)
