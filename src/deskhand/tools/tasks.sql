-- task_of: all tasks of a conversation, those that were deleted included --
SELECT body FROM task WHERE session = ? ORDER BY id

-- task_put --
INSERT INTO task(session, id, status, title, body, at) VALUES(?, ?, ?, ?, ?, ?)
ON CONFLICT(session, id) DO UPDATE SET status = excluded.status, title = excluded.title, body = excluded.body,
  at = excluded.at

-- task_change: written over what was read, and nothing where somebody has changed it since --
UPDATE task SET status = ?, title = ?, body = ?, at = ? WHERE session = ? AND id = ? AND body = ?

-- task_import: what is here already stays as it is --
INSERT INTO task(session, id, status, title, body, at) VALUES(?, ?, ?, ?, ?, ?) ON CONFLICT(session, id) DO NOTHING

-- ledger_tasks: what is open, for who sums a conversation up; what is being done comes first --
SELECT CASE status WHEN 'in_progress' THEN '[>]' WHEN 'blocked' THEN '[!]' ELSE '[ ]' END || ' #' || id || ' ' || title
FROM task WHERE session = ?1 AND status NOT IN ('completed', 'deleted') ORDER BY status <> 'in_progress', id LIMIT ?2
