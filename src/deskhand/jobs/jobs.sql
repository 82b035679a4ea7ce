-- job_run_claim: once for each slot; of one that is there, only what has not come further --
INSERT INTO job_run(job, slot, state, due_at, body, payload, session, after_n, holder, lease_until, attempts, began_at)
VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 1, ?11)
ON CONFLICT(job, slot) DO UPDATE SET state = ?3, session = ?7, after_n = ?8, holder = ?9, lease_until = ?10,
attempts = job_run.attempts + CASE WHEN job_run.state IN ('waiting', ?3) THEN 1 ELSE 0 END,
began_at = coalesce(job_run.began_at, ?11)
WHERE job_run.state IN ('waiting', 'checking', 'running') AND job_run.ended_at IS NULL

-- job_run_add: one that waits, or is over as soon as it is written --
INSERT INTO job_run(job, slot, state, due_at, body, payload, ended_at, said) VALUES(?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING

-- job_run_end --
UPDATE job_run SET state = ?1, ended_at = ?2, said = ?3, lease_until = NULL WHERE job = ?4 AND slot = ?5 AND ended_at IS NULL

-- job_run_finish: its answer is there, and its postrun begins --
UPDATE job_run SET state = 'finishing', lease_until = ? WHERE job = ? AND slot = ? AND state = 'running'

-- job_run_hold: somebody else looks after it from now on --
UPDATE job_run SET holder = ?, lease_until = ? WHERE job = ? AND slot = ? AND ended_at IS NULL

-- job_run_get --
SELECT job, slot, state, due_at, session, began_at, ended_at, lease_until, attempts, said, body, payload, after_n, holder
FROM job_run WHERE job = ? AND slot = ?

-- job_run_open --
SELECT job, slot, state, due_at, session, began_at, ended_at, lease_until, attempts, said, body, payload, after_n, holder
FROM job_run WHERE state IN ('waiting', 'checking', 'running', 'finishing') ORDER BY due_at, slot

-- job_run_list: the latest first --
SELECT job, slot, state, due_at, session, began_at, ended_at, lease_until, attempts, said, body, payload, after_n, holder
FROM job_run WHERE job = ? ORDER BY due_at DESC, slot DESC LIMIT ?

-- job_run_of: the run whose own conversation this is --
SELECT body FROM job_run WHERE session = ? ORDER BY due_at DESC LIMIT 1

-- job_run_last: of each job --
SELECT job, slot, state, due_at, session, began_at, ended_at, lease_until, attempts, said, body, payload, after_n, holder
FROM job_run AS run WHERE due_at = (SELECT max(due_at) FROM job_run WHERE job = run.job) ORDER BY slot

-- job_run_old: beyond the last hundred of a job, and ten thousand; what is known by its bytes alone is so for ever --
SELECT job, slot FROM (SELECT job, slot, ended_at, payload, row_number() OVER (PARTITION BY job ORDER BY due_at DESC) AS nth FROM job_run) AS run
WHERE (ended_at < ?1 AND nth > 100 OR ended_at < ?2 AND nth > 10000) AND NOT (slot LIKE 'body:%' AND payload IS NULL)
LIMIT 20000

-- job_run_forget --
DELETE FROM job_run WHERE (job, slot) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?)) AND slot NOT LIKE 'body:%'

-- job_run_slim: its name stays --
UPDATE job_run SET payload = NULL, body = CAST(json_object('name', job) AS BLOB)
WHERE (job, slot) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?)) AND slot LIKE 'body:%'

-- job_run_slim on postgresql --
UPDATE job_run SET payload = NULL, body = to_utf8(json_build_object('name', job)::text)
WHERE (job, slot) IN (SELECT value ->> 0, value ->> 1 FROM json_each($1)) AND slot LIKE 'body:%'

-- job_state_all --
SELECT job, seen_at, plan, runs, errors, gates, skips, failures, alerts, alerted_at FROM job_state

-- job_state_set: how far the clock has come, under which plan --
INSERT INTO job_state(job, seen_at, plan) VALUES(?1, ?2, ?3)
ON CONFLICT(job) DO UPDATE SET seen_at = ?2, plan = ?3

-- job_state_seen: never back --
UPDATE job_state SET seen_at = ?1 WHERE job = ?2 AND seen_at < ?1

-- job_state_count: runs, errors, gates, skips --
INSERT INTO job_state(job, seen_at, plan, runs, errors, gates, skips) VALUES(?1, 0, '', ?2, ?3, ?4, ?5)
ON CONFLICT(job) DO UPDATE SET runs = job_state.runs + ?2, errors = job_state.errors + ?3,
  gates = job_state.gates + ?4, skips = job_state.skips + ?5

-- job_state_told: failures in a row, and what its owner heard of them --
UPDATE job_state SET failures = ?, alerts = ?, alerted_at = ? WHERE job = ?

-- job_state_forget --
DELETE FROM job_state WHERE job = ?

-- job_run_drop: what waits of a job that is gone --
UPDATE job_run SET state = 'skipped', ended_at = ?, said = ? WHERE job = ? AND state = 'waiting'

-- job_boot_add: it has begun; the row stays where it crashes --
INSERT INTO job_boot(at) VALUES(?)

-- job_boot_drop: it ends in good order --
DELETE FROM job_boot WHERE rowid = (SELECT max(rowid) FROM job_boot WHERE at = ?)

-- job_boot_drop on postgresql --
DELETE FROM job_boot WHERE id = (SELECT max(id) FROM job_boot WHERE at = $1)

-- job_boot_count --
SELECT count(*) FROM job_boot WHERE at > ? AND at <= ?

-- job_run_at_start: after how many of its runs at a start since then another start came within so many seconds --
SELECT count(*) FROM (
  SELECT ended_at, lead(began_at, 1, ?3) OVER (ORDER BY began_at) AS next_at FROM job_run
  WHERE job = ?1 AND slot LIKE 'startup %' AND began_at > ?2 AND began_at <= ?3
) AS run WHERE next_at - coalesce(ended_at, next_at) < ?4

-- job_boot_expire --
DELETE FROM job_boot WHERE at <= ?1 OR at > ?2

-- job_boot_forget: all; or all but the latest, which is that of the process that runs now --
DELETE FROM job_boot WHERE ?1 = 0 OR rowid < (SELECT max(rowid) FROM job_boot)

-- job_boot_forget on postgresql --
DELETE FROM job_boot WHERE $1 = 0 OR id < (SELECT max(id) FROM job_boot)

-- job_told_since: how many jobs the owner was told of --
SELECT count(*) FROM job_state WHERE alerted_at > ? AND alerted_at <= ?

-- job_pause_set --
INSERT INTO job_pause(one, why, at) VALUES(1, ?, ?) ON CONFLICT DO NOTHING

-- job_pause_get --
SELECT why FROM job_pause

-- job_pause_drop --
DELETE FROM job_pause

-- job_said: the messages that the event of this number in a conversation owed --
SELECT key FROM outbox WHERE key >= ?1 || '#' || ?2 || '.' AND key < ?1 || '#' || ?2 || '/' ORDER BY id

-- job_state_get --
SELECT job, seen_at, plan, runs, errors, gates, skips, failures, alerts, alerted_at FROM job_state WHERE job = ?

-- job_asks: what a conversation waits for --
SELECT ask_id FROM ask WHERE session = ?

-- job_label_said: of the last runs of all jobs --
SELECT substr(path, 10), label FROM file_label WHERE path >= 'job-said:' AND path < 'job-said;'
