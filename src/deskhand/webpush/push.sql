-- push_put: a browser is told for one person, the last that wanted it --
INSERT INTO push_device(endpoint, id, person, token, key, auth, label, contact, at, asked_at, ended_seq)
VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT(endpoint) DO UPDATE SET id = excluded.id, person = excluded.person, token = excluded.token,
key = excluded.key, auth = excluded.auth, label = excluded.label, contact = excluded.contact, at = excluded.at,
asked_at = excluded.asked_at, ended_seq = excluded.ended_seq

-- push_list: of everybody, or of one person; the latest first --
SELECT id, person, token, endpoint, key, auth, label, contact, at, asked_at, ended_seq FROM push_device
WHERE ?1 = '' OR person = ?1 ORDER BY at DESC, id

-- push_told: what it was told up to --
UPDATE push_device SET asked_at = ?, ended_seq = ? WHERE id = ?

-- push_drop --
DELETE FROM push_device WHERE id = ?
