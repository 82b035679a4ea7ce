-- written_add: what was there at the last review stays what it is compared with --
INSERT INTO written(place, folder, before, after, blob, agent, session, at, outside)
VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT(place) DO UPDATE SET after = excluded.after, agent = excluded.agent, session = excluded.session,
  at = excluded.at, outside = written.outside OR excluded.outside, told = FALSE

-- written_same: what is as it was needs no review --
DELETE FROM written WHERE place = ? AND before IS NOT DISTINCT FROM after

-- written_list: what begins with these bytes --
SELECT place, folder, before, after, blob, agent, session, at, outside FROM written
WHERE substr(place, 1, length(?1)) = ?1 ORDER BY place

-- written_list on postgresql --
SELECT place, folder, before, after, blob, agent, session, at, outside FROM written
WHERE substr(place, 1, length($1::bytea)) = $1::bytea ORDER BY place

-- written_seen: a person has reviewed it as it is --
DELETE FROM written WHERE place = ?1 AND after IS NOT DISTINCT FROM ?2

-- written_folders: where there is something of which this conversation has not told yet, and how many files in all --
SELECT folder, count(*) FROM written
WHERE folder IN (SELECT folder FROM written WHERE session = ? AND NOT told) AND coalesce(after, before) NOT LIKE 'd%'
GROUP BY folder ORDER BY folder

-- written_sessions: those that have not told of what they changed --
SELECT DISTINCT session FROM written WHERE NOT told

-- written_told --
UPDATE written SET told = TRUE WHERE session = ? AND NOT told
