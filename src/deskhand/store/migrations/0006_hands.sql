-- Whose word a file is, where it is not simply this machine's: what an agent wrote after it had read something from
-- outside, or for few readers. By the real path.
CREATE TABLE file_label(
  path TEXT PRIMARY KEY,
  label BLOB NOT NULL,
  session TEXT NOT NULL,
  at REAL NOT NULL
) STRICT, WITHOUT ROWID;
ALTER TABLE kv ADD COLUMN label BLOB;
-- What runs beside conversations (runtime/background.py): commands in the background, whose end is told once, and
-- sessions at a terminal. `context` is the call that it was, as JSON; `stop` says who wants it ended.
CREATE TABLE process(
  id TEXT PRIMARY KEY,
  session TEXT NOT NULL,
  agent TEXT NOT NULL,
  kind TEXT NOT NULL CHECK(kind IN ('background', 'session')),
  command TEXT NOT NULL,
  name TEXT NOT NULL,
  timeout_s REAL NOT NULL,
  context BLOB NOT NULL,
  state TEXT NOT NULL CHECK(state IN ('wanted', 'running', 'completed', 'timeout', 'error')),
  at REAL NOT NULL,
  started_at REAL,
  ended_at REAL,
  code INTEGER,
  detail TEXT NOT NULL DEFAULT '',
  said TEXT NOT NULL DEFAULT '',
  told INTEGER NOT NULL DEFAULT 0,
  stop TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;
CREATE INDEX process_open ON process(told) WHERE told = 0;
CREATE INDEX process_of ON process(session);
