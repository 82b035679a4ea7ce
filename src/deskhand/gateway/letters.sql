-- dead_list: conversations that were given up, the latest first --
SELECT id, session, n, at, reason FROM dead_letter ORDER BY id DESC

-- dead_drop --
DELETE FROM dead_letter WHERE id = ?

-- unsent_list: answers that their platform did not take, the latest first --
SELECT id, session, channel, at, error FROM outbox WHERE state = 'failed' ORDER BY id DESC

-- unsent_retry --
UPDATE outbox SET state = 'sending', due_at = 0, error = '', attempts = 0 WHERE id = ? AND state = 'failed'

-- unsent_drop --
DELETE FROM outbox WHERE id = ? AND state = 'failed'
