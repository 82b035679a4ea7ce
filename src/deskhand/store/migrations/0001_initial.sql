-- The log. `body` and `salt` go when a row is erased; `digest` then keeps the chain verifiable.
CREATE TABLE event(
  seq INTEGER PRIMARY KEY,
  session TEXT NOT NULL,
  n INTEGER NOT NULL,
  at REAL NOT NULL,
  kind TEXT NOT NULL,
  body BLOB,
  salt BLOB,
  digest BLOB,
  hash BLOB NOT NULL,
  UNIQUE(session, n)
) STRICT;

-- What came in. A row waits while `n` is null; then it names the event that took it in. No row is ever deleted, so an
-- id is never given twice.
CREATE TABLE inbox(
  id INTEGER PRIMARY KEY,
  channel TEXT NOT NULL,
  account TEXT NOT NULL,
  external_id TEXT NOT NULL,
  session TEXT NOT NULL,
  body BLOB NOT NULL,
  n INTEGER,
  UNIQUE(channel, account, external_id)
) STRICT;
CREATE INDEX inbox_waiting ON inbox(session, id) WHERE n IS NULL;

-- What must go out. pending -> sending -> sent | failed; `drafting` is an answer that a channel still edits in place.
CREATE TABLE outbox(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  key TEXT NOT NULL UNIQUE,
  session TEXT NOT NULL,
  body BLOB NOT NULL,
  state TEXT NOT NULL CHECK(state IN ('drafting', 'pending', 'sending', 'sent', 'failed')),
  attempts INTEGER NOT NULL DEFAULT 0,
  at REAL NOT NULL,
  due_at REAL NOT NULL DEFAULT 0,
  channel TEXT NOT NULL,
  sent_id TEXT NOT NULL DEFAULT '',
  mark TEXT NOT NULL DEFAULT '',
  error TEXT NOT NULL DEFAULT '',
  reported INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX outbox_due ON outbox(due_at, id) WHERE state IN ('pending', 'sending');
CREATE INDEX outbox_drafting ON outbox(session) WHERE state = 'drafting';
CREATE INDEX outbox_said ON outbox(channel, sent_id) WHERE sent_id <> '';
CREATE INDEX outbox_unreported ON outbox(session) WHERE state = 'sent' AND reported = 0;

-- Sessions in which something is owed. `wake_at` null: drive now; else it rests until then or until news.
-- `attempts` counts crashes since its last commit.
CREATE TABLE open_session(
  session TEXT PRIMARY KEY,
  wake_at REAL,
  attempts INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- Sessions given up after crashes, for a person to look at.
CREATE TABLE dead_letter(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  session TEXT NOT NULL,
  n INTEGER NOT NULL,
  at REAL NOT NULL,
  reason TEXT NOT NULL
) STRICT;

-- Projections of the log: dropped and rebuilt at will.
CREATE TABLE session(
  session TEXT PRIMARY KEY,
  agent TEXT NOT NULL,
  channel TEXT NOT NULL,
  chat TEXT NOT NULL,
  title TEXT NOT NULL,
  opened_at REAL NOT NULL,
  last_at REAL NOT NULL,
  turns INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE TABLE session_member(
  session TEXT NOT NULL,
  principal TEXT NOT NULL,
  PRIMARY KEY(session, principal)
) STRICT, WITHOUT ROWID;
CREATE INDEX session_member_of ON session_member(principal);
CREATE TABLE blob_use(
  digest TEXT NOT NULL,
  session TEXT NOT NULL,
  n INTEGER NOT NULL,
  PRIMARY KEY(digest, session, n)
) STRICT, WITHOUT ROWID;

-- The process that drives: `clean` is 0 while it runs; `alone` is the session that it drives by itself after crashes.
CREATE TABLE run(
  one INTEGER PRIMARY KEY CHECK(one = 1),
  clean INTEGER NOT NULL,
  alone TEXT NOT NULL
) STRICT;
INSERT INTO run VALUES(1, 1, '');

-- Key-values of an agent, by namespace.
CREATE TABLE kv(
  agent TEXT NOT NULL,
  namespace TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  expires_at REAL,
  PRIMARY KEY(agent, namespace, key)
) STRICT, WITHOUT ROWID;
-- Folders beside the workspace that an agent may reach.
CREATE TABLE path_grant(
  agent TEXT NOT NULL,
  path TEXT NOT NULL,
  write INTEGER NOT NULL,
  at REAL NOT NULL,
  by TEXT NOT NULL,
  PRIMARY KEY(agent, path)
) STRICT, WITHOUT ROWID;

-- Calls that a person allowed or refused for good: exactly these bytes, by this person (policy/approval.py, standing).
CREATE TABLE call_grant(
  hash TEXT PRIMARY KEY,
  verdict TEXT NOT NULL CHECK(verdict IN ('always', 'never')),
  agent TEXT NOT NULL,
  tool TEXT NOT NULL,
  shown TEXT NOT NULL,
  at REAL NOT NULL,
  by TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What a file was before a tool touched it; `digest` is null where there was none. The bytes are in the blob store.
CREATE TABLE undo(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  agent TEXT NOT NULL,
  session TEXT NOT NULL,
  call TEXT NOT NULL,
  path TEXT NOT NULL,
  digest TEXT,
  at REAL NOT NULL
) STRICT;
CREATE INDEX undo_digest ON undo(digest) WHERE digest IS NOT NULL;
