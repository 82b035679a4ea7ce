-- gathered_new: conversations with something new, at rest since ?2; what failed waits ever longer, at most a day. What is behind now, the clock went back --
SELECT found.session, found.agent, found.n, found.head, found.failures FROM (
  SELECT s.session, s.agent, s.last_at, coalesce(g.n, 0) AS n, coalesce(g.seen, 0) AS seen,
    coalesce(g.failures, 0) AS failures, coalesce(g.at, 0) AS at, coalesce((
      SELECT e.n FROM event AS e
      WHERE e.session = s.session AND e.kind IN ('message_received', 'model_replied') ORDER BY e.n DESC LIMIT 1
    ), 0) AS head
  FROM session AS s LEFT JOIN gathered AS g ON g.kind = ?1 AND g.subject = s.session
  WHERE (s.last_at <= ?2 OR s.last_at > ?3) AND instr(s.session, '/job:') = 0
) AS found
WHERE found.head > max(found.n, found.seen)
  AND (found.failures = 0 OR found.at > ?3 OR found.at + min(86400, 900 * (1 << CAST(min(found.failures, 7) AS INTEGER))) <= ?3)
ORDER BY found.last_at LIMIT ?4

-- gathered_get --
SELECT n, status, note, failures, at FROM gathered WHERE kind = ? AND subject = ?

-- gathered_list: of an agent's conversations, the latest first --
SELECT subject, n, at, status, note FROM gathered
WHERE kind = ?1 AND subject >= ?2 || '/' AND subject < ?2 || '0' ORDER BY at DESC, subject LIMIT ?3

-- gathered_set: never back, and not what was erased meanwhile --
INSERT INTO gathered(kind, subject, n, seen, at, status, note) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7
WHERE NOT EXISTS (SELECT 1 FROM event WHERE session = ?2 AND n = ?4 AND body IS NULL)
ON CONFLICT(kind, subject) DO UPDATE
SET n = excluded.n, seen = excluded.seen, at = excluded.at, status = excluded.status,
  note = CASE excluded.note WHEN '' THEN gathered.note ELSE excluded.note END, failures = 0
WHERE excluded.n >= gathered.n

-- gathered_failed: what was read stays where it was --
INSERT INTO gathered(kind, subject, n, seen, at, status, note, failures) VALUES(?, ?, 0, 0, ?, 'error', ?, 1)
ON CONFLICT(kind, subject) DO UPDATE
SET at = excluded.at, status = 'error', note = excluded.note, failures = gathered.failures + 1

-- gathered_let_go: what of this owner's a person had forgotten, the latest first --
SELECT text, valid_to, held FROM fact
WHERE scope = ?1 AND owner = ?2 AND valid_to IS NOT NULL
  AND (closed_why IN ('forgotten', 'undone', 'contradicted') OR closed_why LIKE 'taken out of %')
ORDER BY valid_to DESC LIMIT 200

-- gathered_subjects: all that have this mark --
SELECT subject FROM gathered WHERE kind = ?1

-- gathered_forget: what was noted of a conversation that is erased --
DELETE FROM gathered WHERE subject = ?1

-- fact_expiring --
SELECT count(*) FROM fact WHERE expires_at <= ? AND valid_to IS NULL

-- fact_owners: whose there are new ones since they were tidied, and up to which --
SELECT found.scope, found.owner, found.n, found.head, found.failures FROM (
  SELECT f.scope, f.owner, max(f.id) AS head, coalesce(g.n, 0) AS n, coalesce(g.failures, 0) AS failures,
    coalesce(g.at, 0) AS at
  FROM fact AS f LEFT JOIN gathered AS g ON g.kind = 'clean' AND g.subject = f.scope || ':' || f.owner
  WHERE f.valid_to IS NULL AND NOT f.held AND f.writer <> 'cleaner' AND f.id > coalesce(g.n, 0)
  GROUP BY f.scope, f.owner, g.n, g.failures, g.at
) AS found
WHERE found.failures = 0 OR found.at + min(86400, 900 * (1 << CAST(min(found.failures, 7) AS INTEGER))) <= ?1
ORDER BY found.scope, found.owner

-- fact_after: the next of this owner's that came after that one --
SELECT id, key, text, scope, owner, session, n, writer, label, confidence, retention, pinned, held, at, valid_from,
  valid_to, expires_at, superseded_by, closed_why, used_at, uses, replaces
FROM fact WHERE scope = ?1 AND owner = ?2 AND valid_to IS NULL AND NOT held AND writer <> 'cleaner' AND id > ?3
ORDER BY id LIMIT ?4

-- notes_kind: what these owners have whose key begins so, the oldest first --
SELECT id, key, text, scope, owner, session, n, writer, label, confidence, retention, pinned, held, at, valid_from,
  valid_to, expires_at, superseded_by, closed_why, used_at, uses, replaces
FROM fact
WHERE key >= ?2 || ':' AND key < ?2 || ';' AND NOT held AND valid_to IS NULL
  AND (scope, owner) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?1))
ORDER BY id

-- notes_known: of these the ones that there are, and whether they hold --
SELECT key, id, valid_to IS NULL FROM fact WHERE key IN (SELECT value FROM json_each(?))

-- fact_give_way: to one of the same owner that holds; what is pinned stays --
UPDATE fact SET valid_to = ?2, closed_why = ?3, superseded_by = nullif(?4, 0)
WHERE id = ?1 AND valid_to IS NULL AND NOT pinned AND (?4 = 0 OR EXISTS(
  SELECT 1 FROM fact AS by WHERE by.id = ?4 AND by.valid_to IS NULL AND by.scope = fact.scope AND by.owner = fact.owner
))

-- memory_file_get --
SELECT base FROM memory_file WHERE path = ?

-- memory_file_set --
INSERT INTO memory_file(path, base, at) VALUES(?, ?, ?)
ON CONFLICT(path) DO UPDATE SET base = excluded.base, at = excluded.at

-- memory_files_moved: changes with whatever could make a file or what it shows other than it was --
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'fact_change'), 0),
  (SELECT count(*) FROM file_label), (SELECT coalesce(max(at), 0) FROM file_label),
  (SELECT coalesce(max(at), 0) FROM gathered WHERE kind = 'reflect')

-- memory_files_moved on postgresql --
SELECT (SELECT coalesce(max(seq), 0) FROM fact_change),
  (SELECT count(*) FROM file_label), (SELECT coalesce(max(at), 0) FROM file_label),
  (SELECT coalesce(max(at), 0) FROM gathered WHERE kind = 'reflect')
