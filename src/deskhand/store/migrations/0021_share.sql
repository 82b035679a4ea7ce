-- Links under which anybody may read a conversation (users/shares.py). `hash` is the SHA-256 of what the address holds.
CREATE TABLE share(
  id TEXT PRIMARY KEY,
  hash BLOB NOT NULL UNIQUE,
  session TEXT NOT NULL,
  last_n INTEGER NOT NULL,
  person TEXT NOT NULL,
  at REAL NOT NULL,
  until REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX share_session ON share(session);
