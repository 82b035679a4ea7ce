-- draft_open: not while something older is still to be sent there, nor beside another draft of the session --
INSERT INTO outbox(key, session, body, state, at, channel)
SELECT ?1, ?2, ?3, 'drafting', ?4, ?5
WHERE NOT EXISTS(SELECT 1 FROM outbox WHERE session = ?2 AND state = 'drafting')
AND NOT EXISTS(SELECT 1 FROM outbox WHERE session = ?2 AND state IN ('pending', 'sending'))
AND NOT EXISTS(SELECT 1 FROM outbox WHERE state IN ('pending', 'sending') AND place = json_array(
  json_extract(CAST(?3 AS TEXT), '$.address.channel'), json_extract(CAST(?3 AS TEXT), '$.address.account'),
  json_extract(CAST(?3 AS TEXT), '$.address.chat'), json_extract(CAST(?3 AS TEXT), '$.address.thread')
))
ON CONFLICT DO NOTHING

-- draft_open on postgresql --
INSERT INTO outbox(key, session, body, state, at, channel)
SELECT $1, $2, $3, 'drafting', $4, $5
WHERE NOT EXISTS(SELECT 1 FROM outbox WHERE session = $2 AND state = 'drafting')
AND NOT EXISTS(SELECT 1 FROM outbox WHERE session = $2 AND state IN ('pending', 'sending'))
AND NOT EXISTS(SELECT 1 FROM outbox WHERE state IN ('pending', 'sending') AND place = place_of($3))
ON CONFLICT DO NOTHING

-- draft_waits: whether something of this session, which may complete its draft, or at its place is still to be sent --
SELECT EXISTS(SELECT 1 FROM outbox WHERE session = ?1 AND state IN ('pending', 'sending'))
OR EXISTS(SELECT 1 FROM outbox WHERE state IN ('pending', 'sending') AND place = json_array(
  json_extract(CAST(?2 AS TEXT), '$.address.channel'), json_extract(CAST(?2 AS TEXT), '$.address.account'),
  json_extract(CAST(?2 AS TEXT), '$.address.chat'), json_extract(CAST(?2 AS TEXT), '$.address.thread')
))

-- draft_waits on postgresql --
SELECT EXISTS(SELECT 1 FROM outbox WHERE session = $1 AND state IN ('pending', 'sending'))
OR EXISTS(SELECT 1 FROM outbox WHERE state IN ('pending', 'sending') AND place = place_of($2))

-- draft_posted --
UPDATE outbox SET sent_id = ? WHERE id = ? AND state = 'drafting'

-- draft_before: the draft of this session that a row with this id may complete --
SELECT id, sent_id, body FROM outbox WHERE session = ? AND state = 'drafting' AND id < ? ORDER BY id DESC LIMIT 1

-- draft_close: it is a message like any other now, or there is none --
UPDATE outbox SET state = 'sent', reported = 1 WHERE id = ? AND state = 'drafting'

-- draft_drop: nothing was posted --
DELETE FROM outbox WHERE id = ? AND state = 'drafting'

-- drafts_left: those that nothing will complete any more --
SELECT id, sent_id, body FROM outbox AS draft WHERE state = 'drafting'
AND NOT EXISTS(SELECT 1 FROM open_session WHERE session = draft.session)
AND NOT EXISTS(SELECT 1 FROM outbox WHERE session = draft.session AND state IN ('pending', 'sending'))

-- ask_said: the messages that asked this, or are to ask it. Keys of a session stand together --
SELECT state, sent_id, body FROM outbox WHERE key > ?1 || '#' AND key < ?1 || '$'
AND instr(CAST(body AS TEXT), '"ask_id":"' || ?2 || '"') > 0
