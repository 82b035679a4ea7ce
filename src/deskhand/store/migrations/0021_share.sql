-- Links under which anybody may read a conversation (users/shares.py). `secret` is the SHA-256 of what the address holds.
CREATE TABLE share(
  id TEXT PRIMARY KEY,
  secret BLOB NOT NULL UNIQUE,
  session TEXT NOT NULL,
  last_n INTEGER NOT NULL,
  person TEXT NOT NULL,
  at REAL NOT NULL,
  until REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX share_session ON share(session);
