-- Links under which anybody may read a conversation (users/shares.py). `hash` is the SHA-256 of what the address holds.
CREATE TABLE share(
  id TEXT COLLATE "C" PRIMARY KEY,
  hash BYTEA NOT NULL UNIQUE,
  session TEXT COLLATE "C" NOT NULL,
  last_n BIGINT NOT NULL,
  person TEXT COLLATE "C" NOT NULL,
  at DOUBLE PRECISION NOT NULL,
  until DOUBLE PRECISION NOT NULL
);
CREATE INDEX share_session ON share(session);
