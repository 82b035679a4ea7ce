-- effect_add: once, however often it is told --
INSERT INTO effect(key, agent, session, person, tool, folder, what, at, undoes)
VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT(key) DO NOTHING

-- effect_item_add: what is told again has gone further --
INSERT INTO effect_item(effect, place, before, after, blob)
SELECT n, ?2, ?3, ?4, ?5 FROM effect WHERE key = ?1
ON CONFLICT(effect, place) DO UPDATE SET after = excluded.after

-- effect_known --
SELECT n FROM effect WHERE key = ?

-- effect_list: the latest first; ?1 sees all, else what they did themselves; of one session, or all --
SELECT n, key, agent, session, person, tool, folder, what, at, undoes, undone_at,
  (SELECT count(*) FROM effect_item WHERE effect = n)
FROM effect WHERE (?1 OR person = ?2) AND (?3 = '' OR session = ?3) AND n < ?4 ORDER BY n DESC LIMIT ?5

-- effect_get --
SELECT n, key, agent, session, person, tool, folder, what, at, undoes, undone_at,
  (SELECT count(*) FROM effect_item WHERE effect = n)
FROM effect WHERE n = ?

-- effect_items --
SELECT place, before, after, blob FROM effect_item WHERE effect = ? ORDER BY place LIMIT ? OFFSET ?
