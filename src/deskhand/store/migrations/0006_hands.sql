-- Whose word a file is, where it is not simply this machine's: what an agent wrote after it had read something from
-- outside, or for few readers. By the real path.
CREATE TABLE file_label(
  path TEXT PRIMARY KEY,
  label BLOB NOT NULL,
  session TEXT NOT NULL,
  at REAL NOT NULL
) STRICT, WITHOUT ROWID;
ALTER TABLE kv ADD COLUMN label BLOB;

-- What tools did that can be undone: one row for each call that changed something, and for each undo, which names the
-- effect that it took back. `folder` is the real path of the folder beneath which its files lie; '' for key-values, and
-- for rows from before this table.
CREATE TABLE effect(
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  key TEXT NOT NULL UNIQUE,
  agent TEXT NOT NULL,
  session TEXT NOT NULL,
  person TEXT NOT NULL,
  tool TEXT NOT NULL,
  folder TEXT NOT NULL,
  what TEXT NOT NULL,
  at REAL NOT NULL,
  undoes INTEGER,
  undone_at REAL
) STRICT;
CREATE INDEX effect_session ON effect(session, n);
CREATE INDEX effect_person ON effect(person, n);
CREATE INDEX effect_undoes ON effect(undoes) WHERE undoes IS NOT NULL;

-- What it changed: the path (bytes), or a key-value as JSON [namespace, key]. `before` and `after` are states, null for
-- nothing: tools/shadow.py says how they are written. `blob` holds the bytes of `before`, where they are kept.
CREATE TABLE effect_item(
  effect INTEGER NOT NULL,
  place BLOB NOT NULL,
  before TEXT,
  after TEXT,
  blob TEXT,
  PRIMARY KEY(effect, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX effect_item_blob ON effect_item(blob) WHERE blob IS NOT NULL;
CREATE INDEX effect_item_place ON effect_item(place, effect);

INSERT INTO effect(key, agent, session, person, tool, folder, what, at)
SELECT call, agent, session, '', '', '', min(path) || CASE count(*) WHEN 1 THEN '' ELSE ' and more' END, min(at)
FROM undo GROUP BY call, agent, session ORDER BY min(id);
INSERT OR IGNORE INTO effect_item(effect, place, before, after, blob)
SELECT effect.n, CAST(undo.path AS BLOB), 'f0644 ' || substr(undo.digest, 8), '?', undo.digest
FROM undo JOIN effect ON effect.key = undo.call ORDER BY undo.id;
DROP TABLE undo;

-- Hosts that commands may reach. No agent: all of them; no session: each. `knowing`: it was given when something from
-- outside had been read.
CREATE TABLE egress_grant(
  agent TEXT NOT NULL,
  session TEXT NOT NULL,
  host TEXT NOT NULL,
  knowing INTEGER NOT NULL,
  at REAL NOT NULL,
  by TEXT NOT NULL,
  PRIMARY KEY(agent, session, host)
) STRICT, WITHOUT ROWID;

-- What commands reached, and what they did not, with why: bytes of content each way.
CREATE TABLE egress_use(
  session TEXT NOT NULL,
  host TEXT NOT NULL,
  port INTEGER NOT NULL,
  refused TEXT NOT NULL,
  requests INTEGER NOT NULL,
  up INTEGER NOT NULL,
  down INTEGER NOT NULL,
  first_at REAL NOT NULL,
  last_at REAL NOT NULL,
  PRIMARY KEY(session, host, port, refused)
) STRICT, WITHOUT ROWID;

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
  label BLOB,
  told INTEGER NOT NULL DEFAULT 0,
  stop TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;
CREATE INDEX process_open ON process(told) WHERE told = 0;
CREATE INDEX process_of ON process(session);
