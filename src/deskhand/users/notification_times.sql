-- notification_get --
SELECT quiet, digest FROM notification_times WHERE person = ?

-- notification_quiet --
INSERT INTO notification_times(person, quiet) VALUES(?, ?) ON CONFLICT(person) DO UPDATE SET quiet = excluded.quiet

-- notification_digest --
INSERT INTO notification_times(person, digest) VALUES(?, ?) ON CONFLICT(person) DO UPDATE SET digest = excluded.digest

-- notification_drop --
DELETE FROM notification_times WHERE person = ?

-- notification_reader: whose chats on a channel are known --
SELECT user, external_id, address FROM user_identity WHERE channel = ?1 AND account IN ('', ?2)
