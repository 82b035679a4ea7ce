-- teammate_add: or call back, under the same name, one that has shut down --
INSERT INTO teammate(team, name, role, id, state, at) VALUES(?, ?, ?, ?, 'active', ?)
ON CONFLICT(team, name) DO UPDATE SET role = excluded.role, state = 'active', at = excluded.at, idle_since = NULL

-- teammate_open: of all teams, those that work and those that leave --
SELECT team, name, role, id, state, at, idle_since,
  EXISTS(SELECT 1 FROM subagent WHERE subagent.id = teammate.id AND subagent.state IN ('wanted', 'running')),
  EXISTS(SELECT 1 FROM mail WHERE mail.team = teammate.team AND mail.sender = teammate.name
    AND mail.kind = 'plan_approval_request' AND mail.answer = '' AND mail.state <> 'dropped')
FROM teammate WHERE state <> 'gone' ORDER BY team, at, name

-- teammate_idle --
UPDATE teammate SET idle_since = ? WHERE team = ? AND name = ? AND state = 'active'

-- teammate_left --
UPDATE teammate SET state = 'gone' WHERE team = ? AND name = ? AND state = 'leaving'

-- teammate_retire: it has had nothing to do, and nothing is on its way --
UPDATE teammate SET state = 'leaving', idle_since = NULL WHERE team = ?1 AND name = ?2 AND state = 'active'
AND NOT EXISTS (SELECT 1 FROM mail WHERE mail.team = ?1 AND mail.recipient = ?2 AND mail.state = 'wanted')

-- mail_add --
INSERT INTO mail(id, team, sender, recipient, kind, text, label, request, about, at) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- mail_wanted: what is to be given, the oldest first --
SELECT id, team, sender, recipient, kind, text, label, at, request, about, answer, state FROM mail
WHERE state = 'wanted' ORDER BY at, id

-- mail_given --
UPDATE mail SET state = 'given' WHERE id = ? AND state = 'wanted'

-- mail_drop --
UPDATE mail SET state = 'dropped' WHERE id = ? AND state = 'wanted'

-- mail_inbox: what somebody was given last --
SELECT id, team, sender, recipient, kind, text, label, at, request, about, answer, state FROM mail
WHERE team = ? AND recipient = ? AND state = 'given' ORDER BY at DESC, id DESC LIMIT ?

-- mail_find --
SELECT id, team, sender, recipient, kind, text, label, at, request, about, answer, state FROM mail
WHERE team = ? AND id = ?

-- mail_answering: the mail that answers this one --
SELECT id, team, sender, recipient, kind, text, label, at, request, about, answer, state FROM mail
WHERE team = ? AND about = ? ORDER BY at LIMIT 1

-- mail_answer: once --
UPDATE mail SET answer = ? WHERE id = ? AND answer = ''

-- mail_forget --
DELETE FROM mail WHERE state <> 'wanted' AND at < ?
