-- alert_add --
INSERT INTO alert(key, at, text, said_as) VALUES(?, ?, ?, ?)
ON CONFLICT DO NOTHING

-- alert_said: where a message of this key goes --
SELECT body FROM outbox WHERE key = ?

-- alert_send: once for each key; what is told again is on its way already --
INSERT INTO outbox(key, session, body, state, at, channel) VALUES(?, ?, ?, 'pending', ?, ?)
ON CONFLICT(key) DO NOTHING

-- alert_trim: the latest thousand stay --
DELETE FROM alert WHERE id <= (SELECT max(id) FROM alert) - 1000

-- alert_latest: with how many of its messages were sent, and how many are still to be sent; the latest first --
SELECT id, at, text, seen_at,
  (SELECT count(*) FROM outbox WHERE (outbox.key = said_as OR outbox.key >= 'alert:' || alert.key || ':' AND outbox.key < 'alert:' || alert.key || ';')
   AND state = 'sent'),
  (SELECT count(*) FROM outbox WHERE (outbox.key = said_as OR outbox.key >= 'alert:' || alert.key || ':' AND outbox.key < 'alert:' || alert.key || ';')
   AND state IN ('pending', 'sending'))
FROM alert ORDER BY id DESC LIMIT ?

-- alert_seen: all of them --
UPDATE alert SET seen_at = ? WHERE seen_at IS NULL

-- alert_owners --
SELECT DISTINCT user FROM user_role WHERE role = 'owner' ORDER BY user

-- alert_identities: as whom platforms know a person, and where that was let in --
SELECT channel, account, external_id, address FROM user_identity WHERE user = ? ORDER BY at DESC

-- alert_recent: what came in lately on these channels, the latest first --
SELECT body FROM inbox WHERE channel IN (SELECT value FROM json_each(?)) ORDER BY id DESC LIMIT 500

-- alert_sessions: those on these channels, the latest first --
SELECT session, last_at FROM session WHERE channel IN (SELECT value FROM json_each(?))
ORDER BY last_at DESC LIMIT 1000

-- alert_written: what came in there, the latest first --
SELECT event.at, inbox.body FROM event JOIN inbox ON inbox.id = CAST(json_extract(CAST(event.body AS TEXT), '$.inbox_id') AS BIGINT)
WHERE event.session = ? AND event.kind IN ('message_received', 'command_run') AND event.body IS NOT NULL
ORDER BY event.n DESC LIMIT 50
