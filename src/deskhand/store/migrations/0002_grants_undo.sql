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
