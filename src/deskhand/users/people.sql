-- people_version --
SELECT version FROM people

-- people_changed --
UPDATE people SET version = version + 1

-- user_all --
SELECT name, created_at FROM user ORDER BY name

-- user_role_all --
SELECT user, role FROM user_role ORDER BY user, role

-- user_identity_all --
SELECT user, channel, external_id, account FROM user_identity ORDER BY user, channel, account, external_id

-- user_add --
INSERT INTO user(name, created_at) VALUES(?, ?)

-- user_remove: with all that is theirs --
DELETE FROM user WHERE name = ?

-- user_role_add --
INSERT INTO user_role(user, role) VALUES(?, ?)
ON CONFLICT DO NOTHING

-- user_role_remove --
DELETE FROM user_role WHERE user = ? AND role = ?

-- user_identity_add --
INSERT INTO user_identity(channel, account, external_id, user, address, at) VALUES(?, ?, ?, ?, ?, ?)

-- user_identity_remove --
DELETE FROM user_identity WHERE channel = ? AND account = ? AND external_id = ?

-- token_add --
INSERT INTO token(id, hash, user, name, kind, scopes, created_at, expires_at) VALUES(?, ?, ?, ?, ?, ?, ?, ?)

-- token_find --
SELECT id, user, kind, scopes, expires_at, last_used_at FROM token WHERE hash = ?

-- token_list --
SELECT id, user, name, kind, scopes, created_at, expires_at, last_used_at FROM token
WHERE ?1 = '' OR user = ?1 ORDER BY created_at, id

-- token_get --
SELECT id, user, name, kind, scopes, created_at, expires_at, last_used_at FROM token WHERE id = ?

-- token_used --
UPDATE token SET last_used_at = ? WHERE id = ?

-- token_drop --
DELETE FROM token WHERE id = ?

-- token_expire --
DELETE FROM token WHERE expires_at < ?

-- login_add --
INSERT INTO login(hash, user, expires_at) VALUES(?, ?, ?)

-- login_expire --
DELETE FROM login WHERE expires_at < ?

-- login_redeem: the credential of the browser, if the link holds --
INSERT INTO token(id, hash, user, name, kind, scopes, created_at, expires_at)
SELECT ?2, ?3, user, 'browser', 'browser', ?4, ?5, ?6 FROM login WHERE hash = ?1 AND expires_at > ?5

-- login_drop --
DELETE FROM login WHERE hash = ?

-- pairing_add: at most so many wait on a channel, and nobody asks twice --
INSERT INTO pairing(code, channel, account, external_id, address, at, expires_at, state)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, 'open'
WHERE NOT EXISTS(SELECT 1 FROM pairing WHERE channel = ?2 AND account = ?3 AND external_id = ?4
  AND (at + 600 > ?6 OR state = 'open' AND expires_at > ?6))
AND (SELECT count(*) FROM pairing WHERE channel = ?2 AND state = 'open' AND expires_at > ?6) < ?8
ON CONFLICT DO NOTHING

-- pairing_expire --
DELETE FROM pairing WHERE expires_at < ?

-- pairing_open: those that hold now --
SELECT code, channel, account, external_id, at, expires_at FROM pairing
WHERE state = 'open' AND expires_at > ? ORDER BY at

-- pairing_address --
SELECT address FROM pairing WHERE code = ?

-- pairing_settle --
UPDATE pairing SET state = ? WHERE code = ? AND state = 'open'

-- pairing_guess_add --
INSERT INTO pairing_guess(at) VALUES(?)

-- pairing_guesses --
SELECT count(*) FROM pairing_guess WHERE at > ?

-- pairing_guess_clear --
DELETE FROM pairing_guess

-- pairing_locked_until --
SELECT locked_until FROM people

-- pairing_lock --
UPDATE people SET locked_until = ?

-- people_note --
INSERT INTO people_audit(at, who, what, subject) VALUES(?, ?, ?, ?)

-- people_note_once: at most once a minute for the same --
INSERT INTO people_audit(at, who, what, subject) SELECT ?1, ?2, ?3, ?4
WHERE NOT EXISTS(SELECT 1 FROM people_audit WHERE who = ?2 AND what = ?3 AND subject = ?4 AND at + 60 > ?1
  AND id > (SELECT max(id) FROM people_audit) - 1000)

-- people_notes: the latest first --
SELECT at, who, what, subject FROM people_audit ORDER BY id DESC LIMIT ?

-- people_notes_trim --
DELETE FROM people_audit WHERE id <= (SELECT max(id) FROM people_audit) - ?

-- user_roles_of: the roles of a user; a row without one for who has none --
SELECT role FROM user LEFT JOIN user_role ON user = name WHERE name = ?
