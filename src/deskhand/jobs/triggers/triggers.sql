-- trigger_seen --
SELECT value FROM trigger_seen WHERE job = ? AND line = ?

-- trigger_saw --
INSERT INTO trigger_seen(job, line, value, at) VALUES(?, ?, ?, ?)
ON CONFLICT(job, line) DO UPDATE SET value = excluded.value, at = excluded.at

-- trigger_own: which of these files a conversation of this job changed last, when, and whether it took them away; no undos --
SELECT path, at, gone FROM (
  SELECT CAST(place AS TEXT) AS path, session, undoes, at, after IS NULL AS gone, row_number() OVER (PARTITION BY place ORDER BY n DESC) AS nth
  FROM effect_item JOIN effect ON effect = n
  WHERE folder = ?1 AND place IN (SELECT CAST(value AS BLOB) FROM json_each(?2))) AS change
WHERE nth = 1 AND undoes IS NULL AND substr(session, 1, length(?3)) = ?3

-- trigger_forget: of jobs that there are no more --
DELETE FROM trigger_seen WHERE at < ?2 AND job NOT IN (SELECT value FROM json_each(?1))

-- job_tokens: what the last runs took that had a conversation of their own, the latest first --
SELECT sum(usage.input_tokens + usage.output_tokens) FROM job_run JOIN usage ON usage.session = job_run.session
WHERE job = ?1 AND state IN ('done', 'error') AND job_run.session LIKE '%/job:%'
GROUP BY job_run.session ORDER BY max(due_at) DESC LIMIT ?2

-- session_latest: when something was last said to this agent, but for what was due --
SELECT coalesce(max(last_at), 0.0) FROM session WHERE agent = ? AND session NOT LIKE '%/job:%'
