-- When somebody wants to be told what nobody waits for (users/notification_times.py): `quiet` are hours, as 22:00-07:00, and
-- `digest` times of a day, as 08:00 18:00; '' for none.
CREATE TABLE notification_times(
  person TEXT PRIMARY KEY,
  quiet TEXT NOT NULL DEFAULT '',
  digest TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;

-- A message may also be `deferred`: it waits for the time at which its reader wants to be told. What is behind it goes on.
CREATE TABLE outbox_next(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  key TEXT NOT NULL UNIQUE,
  session TEXT NOT NULL,
  body BLOB NOT NULL,
  state TEXT NOT NULL CHECK(state IN ('drafting', 'deferred', 'pending', 'sending', 'sent', 'failed')),
  attempts INTEGER NOT NULL DEFAULT 0,
  at REAL NOT NULL,
  due_at REAL NOT NULL DEFAULT 0,
  channel TEXT NOT NULL,
  sent_id TEXT NOT NULL DEFAULT '',
  mark TEXT NOT NULL DEFAULT '',
  error TEXT NOT NULL DEFAULT '',
  reported INTEGER NOT NULL DEFAULT 0,
  place TEXT GENERATED ALWAYS AS (json_array(
    json_extract(CAST(body AS TEXT), '$.address.channel'),
    json_extract(CAST(body AS TEXT), '$.address.account'),
    json_extract(CAST(body AS TEXT), '$.address.chat'),
    json_extract(CAST(body AS TEXT), '$.address.thread')
  )) VIRTUAL
) STRICT;
INSERT INTO outbox_next(id, key, session, body, state, attempts, at, due_at, channel, sent_id, mark, error, reported)
SELECT id, key, session, body, state, attempts, at, due_at, channel, sent_id, mark, error, reported FROM outbox;
DELETE FROM sqlite_sequence WHERE name = 'outbox_next';
INSERT INTO sqlite_sequence(name, seq) SELECT 'outbox_next', seq FROM sqlite_sequence WHERE name = 'outbox';
DROP TABLE outbox;
ALTER TABLE outbox_next RENAME TO outbox;
CREATE INDEX outbox_due ON outbox(due_at, id) WHERE state IN ('pending', 'sending');
CREATE INDEX outbox_drafting ON outbox(session) WHERE state = 'drafting';
CREATE INDEX outbox_said ON outbox(channel, sent_id) WHERE sent_id <> '';
CREATE INDEX outbox_unreported ON outbox(session) WHERE state = 'sent' AND reported = 0;
CREATE INDEX outbox_waiting ON outbox(place, id) WHERE state IN ('pending', 'sending');
CREATE INDEX outbox_deferred ON outbox(id) WHERE state = 'deferred';
