-- moved_all: what was taken from a system before --
SELECT kind, key, here, lines, mark FROM moved WHERE system = ?

-- moved_once --
INSERT INTO moved(system, kind, key, here, at) VALUES(?, ?, ?, ?, ?) ON CONFLICT(system, kind, key) DO NOTHING

-- moved_begun: of what takes more than one write, before the first --
INSERT INTO moved(system, kind, key, here, mark, at) VALUES(?, ?, ?, ?, 'begun', ?)
ON CONFLICT(system, kind, key) DO NOTHING

-- moved_done: all of it is there --
UPDATE moved SET mark = '' WHERE system = ? AND kind = ? AND key = ?

-- moved_so_far: of a conversation --
INSERT INTO moved(system, kind, key, here, lines, mark, at) VALUES(?, 'talk', ?, ?, ?, ?, ?)
ON CONFLICT(system, kind, key) DO UPDATE SET lines = excluded.lines, mark = excluded.mark, at = excluded.at

-- moved_kv: what is there already stays as it is --
INSERT INTO kv(agent, namespace, key, value, expires_at) VALUES(?, ?, ?, ?, ?)
ON CONFLICT(agent, namespace, key) DO NOTHING
