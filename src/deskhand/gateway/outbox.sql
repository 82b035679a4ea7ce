-- outbox_last: the number of the newest row --
SELECT coalesce(max(id), 0) FROM outbox

-- outbox_begin: nothing that was put off before a process began waits for longer than this --
UPDATE outbox SET due_at = ?1 WHERE state IN ('pending', 'sending') AND due_at > ?1

-- outbox_before: what became of the row of this conversation before this one --
SELECT state FROM outbox WHERE session = ? AND id < ? ORDER BY id DESC LIMIT 1

-- outbox_beside: what `outbox_due` finds, but nothing at the places of these rows --
SELECT id, session, body, state, attempts, at, sent_id, mark FROM outbox AS due INDEXED BY outbox_waiting
WHERE state IN ('pending', 'sending') AND (due_at <= ?1 OR due_at > ?1 + 3600)
AND place NOT IN (SELECT place FROM outbox WHERE id IN (SELECT CAST(value AS BIGINT) FROM json_each(?4)))
AND NOT EXISTS(
  SELECT 1 FROM outbox WHERE place = due.place AND id < due.id AND state IN ('pending', 'sending')
  AND due_at > ?1 AND due_at <= ?1 + 3600
)
AND channel IN (SELECT value FROM json_each(?3)) ORDER BY id LIMIT ?2

-- unsent_list: answers that their platform did not take, the latest first --
SELECT id, session, channel, at, error FROM outbox WHERE state = 'failed' ORDER BY id DESC

-- unsent_retry --
UPDATE outbox SET state = 'sending', due_at = 0, error = '', attempts = 0 WHERE id = ? AND state = 'failed'

-- unsent_drop --
DELETE FROM outbox WHERE id = ? AND state = 'failed'

-- outbox_defer: it waits for the time at which its reader wants to be told --
UPDATE outbox SET state = 'deferred' WHERE id = ? AND state = 'pending'

-- outbox_deferred: the oldest first --
SELECT id, session, body, state, attempts, at, sent_id, mark FROM outbox WHERE state = 'deferred' ORDER BY id LIMIT 1000

-- outbox_release: it is told now --
UPDATE outbox SET state = 'pending', body = ? WHERE id = ? AND state = 'deferred'

-- outbox_said_lately: what is said on this channel before this row, and since this time; the latest first --
SELECT body FROM outbox WHERE channel = ?1 AND id < ?2 AND id > ?2 - 2000 AND state IN ('pending', 'sending', 'sent')
AND at > ?3 ORDER BY id DESC
