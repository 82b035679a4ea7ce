-- attention_get --
SELECT quiet, digest FROM attention WHERE person = ?

-- attention_quiet --
INSERT INTO attention(person, quiet) VALUES(?, ?) ON CONFLICT(person) DO UPDATE SET quiet = excluded.quiet

-- attention_digest --
INSERT INTO attention(person, digest) VALUES(?, ?) ON CONFLICT(person) DO UPDATE SET digest = excluded.digest

-- attention_drop --
DELETE FROM attention WHERE person = ?

-- attention_reader: whose chats on a channel are known --
SELECT user, external_id, address FROM user_identity WHERE channel = ?1 AND account IN ('', ?2)
