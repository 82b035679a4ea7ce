-- outbox_owed: how much is still to be sent, since when, and why the oldest was not --
SELECT count(*), min(at), coalesce((
  SELECT error FROM outbox WHERE state IN ('pending', 'sending') ORDER BY id LIMIT 1), '')
FROM outbox WHERE state IN ('pending', 'sending')

-- open_owed: conversations in which something is to be done now --
SELECT count(*) FROM open_session WHERE wake_at IS NULL
