-- effect_add: once, however often it is told --
INSERT INTO effect(key, agent, session, person, tool, folder, what, at, undoes)
VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT(key) DO NOTHING

-- effect_item_add: what is told again has gone further --
INSERT INTO effect_item(effect, place, before, after, blob)
SELECT n, ?2, ?3, ?4, ?5 FROM effect WHERE key = ?1
ON CONFLICT(effect, place) DO UPDATE SET after = excluded.after

-- effect_known --
SELECT n FROM effect WHERE key = ?

-- effect_of_call: what a call changed, in the workspace (?1) and in folders beside it (from ?2, to ?3) --
SELECT n FROM effect WHERE key = ?1 OR (key >= ?2 AND key < ?3) ORDER BY length(key), key

-- effect_list: the latest first; ?1 sees all, else what they did themselves; of one session, or all --
SELECT n, key, agent, session, person, tool, folder, what, at, undoes, undone_at,
  (SELECT count(*) FROM effect_item WHERE effect = n)
FROM effect WHERE (?1 OR person = ?2) AND (?3 = '' OR session = ?3) AND n < ?4 AND folder <> 'task:'
ORDER BY n DESC LIMIT ?5

-- effect_get --
SELECT n, key, agent, session, person, tool, folder, what, at, undoes, undone_at,
  (SELECT count(*) FROM effect_item WHERE effect = n)
FROM effect WHERE n = ?

-- effect_files: what was changed in files since then and is not undone, the latest first --
SELECT n, session, folder, place FROM effect JOIN effect_item ON effect = n
WHERE at > ? AND undone_at IS NULL AND undoes IS NULL AND folder NOT IN ('', 'kv:', 'task:') ORDER BY n DESC, place

-- effect_made_here: the files that were made in this conversation, and not by a person --
SELECT DISTINCT place FROM effect JOIN effect_item ON effect = n
WHERE session = ? AND folder = ? AND before IS NULL AND undone_at IS NULL AND undoes IS NULL

-- effect_of_file: what changed a file, the latest first; ?1 sees all, else what they did themselves --
SELECT n, key, agent, session, person, tool, folder, what, at, undoes, undone_at,
  (SELECT count(*) FROM effect_item WHERE effect = n), place, before, after, blob
FROM effect JOIN effect_item ON effect = n
WHERE (?1 OR person = ?2) AND agent = ?3 AND folder = ?4 AND place = ?5 ORDER BY n DESC LIMIT ?6

-- effect_made: the files of a folder that a conversation made or changed, the latest first --
SELECT place, max(at) FROM effect JOIN effect_item ON effect = n
WHERE session = ?1 AND folder = ?2 AND undone_at IS NULL AND undoes IS NULL AND after IS NOT NULL
GROUP BY place ORDER BY max(n) DESC LIMIT ?3

-- effect_items --
SELECT place, before, after, blob FROM effect_item WHERE effect = ? ORDER BY place LIMIT ? OFFSET ?

-- effect_kv_before: what the key holds, before it is changed in the same transaction --
INSERT INTO effect_item(effect, place, before)
SELECT n, ?2, (SELECT 'k ' || json_array(value, expires_at, lower(hex(label))) FROM kv
  WHERE kv.agent = effect.agent AND namespace = ?3 AND kv.key = ?4) FROM effect WHERE effect.key = ?1
ON CONFLICT DO NOTHING

-- effect_kv_before on postgresql --
INSERT INTO effect_item(effect, place, before)
SELECT n, $2, (SELECT kv_state(kv) FROM kv WHERE kv.agent = effect.agent AND namespace = $3 AND kv.key = $4)
FROM effect WHERE effect.key = $1
ON CONFLICT DO NOTHING

-- effect_kv_after: and what it holds now --
UPDATE effect_item SET after = (SELECT 'k ' || json_array(value, expires_at, lower(hex(label))) FROM kv
  WHERE kv.agent = (SELECT agent FROM effect WHERE n = effect_item.effect) AND namespace = ?3 AND kv.key = ?4)
WHERE effect = (SELECT n FROM effect WHERE key = ?1) AND place = ?2

-- effect_kv_after on postgresql --
UPDATE effect_item SET after = (SELECT kv_state(kv) FROM kv
  WHERE kv.agent = (SELECT agent FROM effect WHERE n = effect_item.effect) AND namespace = $3 AND kv.key = $4)
WHERE effect = (SELECT n FROM effect WHERE key = $1) AND place = $2

-- effect_kv_now on postgresql --
SELECT kv_state(kv) FROM kv WHERE agent = $1 AND namespace = $2 AND key = $3

-- effect_kv_now --
SELECT 'k ' || json_array(value, expires_at, lower(hex(label))) FROM kv WHERE agent = ? AND namespace = ? AND key = ?

-- effect_task_before: as effect_kv_before, of task ?3 of the conversation --
INSERT INTO effect_item(effect, place, before)
SELECT n, ?2, (SELECT 't ' || CAST(body AS TEXT) FROM task WHERE task.session = effect.session AND task.id = ?3)
FROM effect WHERE effect.key = ?1
ON CONFLICT DO NOTHING

-- effect_task_after --
UPDATE effect_item SET after = (SELECT 't ' || CAST(body AS TEXT) FROM task
  WHERE session = (SELECT session FROM effect WHERE n = effect_item.effect) AND id = ?3)
WHERE effect = (SELECT n FROM effect WHERE key = ?1) AND place = ?2

-- effect_task_now --
SELECT 't ' || CAST(body AS TEXT) FROM task WHERE session = ? AND id = ?

-- effect_same: what has changed nothing is no effect --
DELETE FROM effect_item WHERE effect = (SELECT n FROM effect WHERE key = ?) AND before IS NOT DISTINCT FROM after

-- effect_none --
DELETE FROM effect WHERE key = ?1 AND NOT EXISTS(SELECT 1 FROM effect_item WHERE effect = effect.n)

-- effect_undone: by an undo, or no longer, when that is taken back (null) --
UPDATE effect SET undone_at = ?2 WHERE n = ?1

-- effect_live: what may be undone, the latest first; as effect_list --
SELECT n, key, agent, session, person, tool, folder, what, at, undoes, undone_at,
  (SELECT count(*) FROM effect_item WHERE effect = n)
FROM effect WHERE (?1 OR person = ?2) AND (?3 = '' OR session = ?3) AND undone_at IS NULL AND undoes IS NULL
  AND folder <> 'task:' ORDER BY n DESC LIMIT ?4

-- effect_turns: what the turns of a conversation did that is not undone, tasks as well --
SELECT n, key, agent, session, person, tool, folder, what, at, undoes, undone_at,
  (SELECT count(*) FROM effect_item WHERE effect = n)
FROM effect WHERE session = ? AND undone_at IS NULL AND undoes IS NULL ORDER BY n DESC LIMIT ?

-- effect_files_since: whether calls of a conversation changed files since then, which are not undone; among its latest --
SELECT 1 FROM (
  SELECT at, folder, undone_at, undoes FROM effect WHERE session = ? ORDER BY n DESC LIMIT 200
) AS latest
WHERE at >= ? AND folder NOT IN (?, ?) AND undone_at IS NULL AND undoes IS NULL LIMIT 1

-- effect_again: undos that may be taken back, the latest first --
SELECT e.n, e.key, e.agent, e.session, e.person, e.tool, e.folder, e.what, e.at, e.undoes, e.undone_at,
  (SELECT count(*) FROM effect_item WHERE effect = e.n)
FROM effect AS e JOIN effect AS of ON of.n = e.undoes
WHERE (?1 OR e.person = ?2) AND (?3 = '' OR e.session = ?3) AND e.undone_at IS NULL AND of.undoes IS NULL
  AND e.folder <> 'task:' ORDER BY e.n DESC LIMIT ?4

-- effect_since: what changed this place after that effect, the latest first; tasks are those of a conversation --
SELECT n, tool, what, coalesce(after, '') FROM effect JOIN effect_item ON effect = n
WHERE place = ?1 AND folder = ?2 AND n > ?3 AND agent = ?4 AND (folder <> 'task:' OR session = ?5)
  AND undone_at IS NULL ORDER BY n DESC LIMIT 1

-- effect_expire: from before then, or up to that one --
DELETE FROM effect WHERE at < ?1 OR n <= ?2

-- effect_label_expire --
DELETE FROM file_label WHERE path >= 'effect:' AND path < 'effect;' AND substr(path, 8) NOT IN (SELECT key FROM effect)

-- effect_item_expire --
DELETE FROM effect_item WHERE effect NOT IN (SELECT n FROM effect)

-- effect_blobs: the latest first --
SELECT effect, blob FROM effect_item WHERE blob IS NOT NULL ORDER BY effect DESC

-- ledger_files: what tools changed in a conversation, the latest first --
SELECT place FROM effect_item JOIN effect ON n = effect
WHERE session = ?1 AND folder NOT IN ('', 'kv:', 'task:') AND undone_at IS NULL AND undoes IS NULL
GROUP BY place ORDER BY max(n) DESC LIMIT ?2
