-- outbox_last: the number of the newest row --
SELECT coalesce(max(id), 0) FROM outbox

-- outbox_begin: nothing that was put off before a process began waits for longer than this --
UPDATE outbox SET due_at = ?1 WHERE state IN ('pending', 'sending') AND due_at > ?1
