-- outbox_last: the number of the newest row --
SELECT coalesce(max(id), 0) FROM outbox

-- outbox_begin: nothing that was put off before a process began waits for longer than this --
UPDATE outbox SET due_at = ?1 WHERE state IN ('pending', 'sending') AND due_at > ?1

-- unsent_list: answers that their platform did not take, the latest first --
SELECT id, session, channel, at, error FROM outbox WHERE state = 'failed' ORDER BY id DESC

-- unsent_retry --
UPDATE outbox SET state = 'sending', due_at = 0, error = '', attempts = 0 WHERE id = ? AND state = 'failed'

-- unsent_drop --
DELETE FROM outbox WHERE id = ? AND state = 'failed'
