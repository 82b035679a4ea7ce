-- outbox_owed: how much is still to be sent, since when, and why the oldest was not --
SELECT count(*), min(at), coalesce((
  SELECT error FROM outbox WHERE state IN ('pending', 'sending') ORDER BY id LIMIT 1), '')
FROM outbox WHERE state IN ('pending', 'sending')

-- open_owed: conversations in which something is to be done now --
SELECT count(*) FROM open_session WHERE wake_at IS NULL

-- job_runs_end: all that go on or wait --
UPDATE job_run SET state = 'interrupted', ended_at = ?, said = ?, lease_until = NULL
WHERE state IN ('waiting', 'checking', 'running', 'finishing')

-- job_times_skip: all times up to this one are decided --
UPDATE job_state SET seen_at = ?1 WHERE seen_at < ?1

-- restart_forget_all --
DELETE FROM restart_owed

-- paths_move_labels: of files beneath a folder --
UPDATE file_label SET path = ?2 || substr(path, length(?1) + 1) WHERE path = ?1 OR (path > ?1 || '/' AND path < ?1 || '0')

-- paths_move_approved --
UPDATE approved_file SET path = ?2 || substr(path, length(?1) + 1) WHERE path = ?1 OR (path > ?1 || '/' AND path < ?1 || '0')

-- paths_move_effects --
UPDATE effect SET folder = ?2 || substr(folder, length(?1) + 1) WHERE folder = ?1 OR (folder > ?1 || '/' AND folder < ?1 || '0')

-- paths_move_written --
UPDATE written SET folder = ?2 || substr(folder, length(?1) + 1) WHERE folder = ?1 OR (folder > ?1 || '/' AND folder < ?1 || '0')

-- erased_sessions: which were erased, when, and the hash of the first event, which nobody can guess --
SELECT e.session, max(e.at), f.hash FROM event AS e
JOIN event AS f ON f.session = e.session AND f.n = 1
WHERE e.kind = 'erased' GROUP BY e.session, f.hash

-- first_hashes: the hash of the first event of each session --
SELECT session, hash FROM event WHERE n = 1

-- fact_digests: what tells each memory from all others --
SELECT id, key, at, text FROM fact
