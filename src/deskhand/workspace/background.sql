-- process_add --
INSERT INTO process(id, session, agent, kind, command, name, timeout_s, context, state, at, started_at, told)
VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING

-- process_owed: what is to be started, was cut off, or has to be told --
SELECT id, session, state, context, stop FROM process WHERE told = 0 ORDER BY at, id

-- process_started --
UPDATE process SET state = 'running', started_at = ? WHERE id = ? AND state = 'wanted' AND stop = ''

-- process_ended --
UPDATE process SET state = ?, ended_at = ?, code = ?, detail = ?, said = ?, label = ?
WHERE id = ? AND state IN ('wanted', 'running')

-- process_said: what its conversation is to be told --
SELECT said, label FROM process WHERE id = ? AND told = 0

-- process_told --
UPDATE process SET told = 1 WHERE id = ?

-- process_lost: those of an earlier run of which nobody has to be told --
UPDATE process SET state = 'error', ended_at = ?1, detail = ?2 WHERE told = 1 AND state = 'running'
AND (CAST(?3 AS TEXT) IS NULL OR agent IN (SELECT value FROM json_each(?3)))

-- process_stop_all: whoever stops a conversation wants to hear no more of it --
UPDATE process SET stop = ?1, told = 1, ended_at = CASE state WHEN 'wanted' THEN CAST(?2 AS DOUBLE PRECISION) END,
detail = CASE state WHEN 'wanted' THEN ?1 ELSE detail END, state = CASE state WHEN 'wanted' THEN 'error' ELSE state END
WHERE session = ?3 AND state IN ('wanted', 'running')

-- process_alive --
SELECT id, stop FROM process WHERE state IN ('wanted', 'running')

-- process_count: those that live, of a session and of an agent --
SELECT count(*) FILTER (WHERE session = ?1), count(*) FROM process
WHERE agent = ?2 AND state IN ('wanted', 'running')

-- process_forget --
DELETE FROM process WHERE told = 1 AND at < ? AND state NOT IN ('wanted', 'running')

-- ledger_processes: what runs beside a conversation --
SELECT id || ' ' || command FROM process WHERE session = ?1 AND state IN ('wanted', 'running') LIMIT ?2
