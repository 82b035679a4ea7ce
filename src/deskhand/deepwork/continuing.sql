-- restart_add --
INSERT INTO restart_owed(key, session, principal, address, text, label, run, at) VALUES(?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING

-- restart_owed --
SELECT key, session, principal, address, text, label, run, at FROM restart_owed ORDER BY at

-- restart_done --
DELETE FROM restart_owed WHERE key = ?
