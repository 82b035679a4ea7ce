-- trigger_seen --
SELECT value FROM trigger_seen WHERE job = ? AND line = ?

-- trigger_saw --
INSERT OR REPLACE INTO trigger_seen(job, line, value, at) VALUES(?, ?, ?, ?)

-- trigger_forget: of jobs that there are no more --
DELETE FROM trigger_seen WHERE at < ?2 AND job NOT IN (SELECT value FROM json_each(?1))
