-- share_add --
INSERT INTO share(id, hash, session, last_n, person, at, until, files) VALUES(?, ?, ?, ?, ?, ?, ?, ?)

-- share_find: one that has not ended --
SELECT id, session, last_n, person, at, until, files FROM share WHERE hash = ? AND until > ?

-- share_list: those of a person that have not ended, the latest first --
SELECT id, session, last_n, person, at, until, files FROM share WHERE person = ? AND until > ? ORDER BY at DESC, id DESC LIMIT ?

-- share_drop --
DELETE FROM share WHERE id = ? AND person = ?

-- share_drop_of --
DELETE FROM share WHERE person = ?

-- share_trim: those that have ended --
DELETE FROM share WHERE until <= ?
