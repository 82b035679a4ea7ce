-- Who may use this. `owner` sits at the machine and is always there. Identities are a platform's own ids, never names
-- that people choose; an identity without an account counts on every account of its channel.
CREATE TABLE user(
  name TEXT PRIMARY KEY CHECK(length(name) BETWEEN 1 AND 64 AND name NOT GLOB '*[^a-z0-9.-]*'),
  created_at REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE user_role(
  user TEXT NOT NULL REFERENCES user(name) ON DELETE CASCADE,
  role TEXT NOT NULL,
  PRIMARY KEY(user, role)
) STRICT, WITHOUT ROWID;
CREATE TABLE user_identity(
  channel TEXT NOT NULL,
  account TEXT NOT NULL,
  external_id TEXT NOT NULL CHECK(external_id <> ''),
  user TEXT NOT NULL REFERENCES user(name) ON DELETE CASCADE,
  address BLOB NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY(channel, account, external_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX user_identity_of ON user_identity(user);
INSERT INTO user VALUES('owner', 0);
INSERT INTO user_role VALUES('owner', 'owner');

-- `version` goes up with every change of the tables above; `locked_until`: no pairing code is taken before.
CREATE TABLE people(
  one INTEGER PRIMARY KEY CHECK(one = 1),
  version INTEGER NOT NULL,
  locked_until REAL NOT NULL
) STRICT;
INSERT INTO people VALUES(1, 1, 0);

-- Credentials and one-time links. Of a secret only its SHA-256 is kept: it has 256 random bits.
CREATE TABLE token(
  id TEXT PRIMARY KEY,
  hash BLOB NOT NULL UNIQUE,
  user TEXT NOT NULL REFERENCES user(name) ON DELETE CASCADE,
  name TEXT NOT NULL,
  kind TEXT NOT NULL CHECK(kind IN ('api', 'browser')),
  scopes TEXT NOT NULL,
  created_at REAL NOT NULL,
  expires_at REAL,
  last_used_at REAL
) STRICT, WITHOUT ROWID;
CREATE INDEX token_of ON token(user);
CREATE TABLE login(
  hash BLOB PRIMARY KEY,
  user TEXT NOT NULL REFERENCES user(name) ON DELETE CASCADE,
  expires_at REAL NOT NULL
) STRICT, WITHOUT ROWID;

-- Strangers who asked to be let in. A row outlives its answer, so that nobody asks again at once.
CREATE TABLE pairing(
  code TEXT PRIMARY KEY,
  channel TEXT NOT NULL,
  account TEXT NOT NULL,
  external_id TEXT NOT NULL,
  address BLOB NOT NULL,
  at REAL NOT NULL,
  expires_at REAL NOT NULL,
  state TEXT NOT NULL CHECK(state IN ('open', 'approved', 'refused'))
) STRICT, WITHOUT ROWID;
CREATE TABLE pairing_guess(at REAL NOT NULL) STRICT;

-- Who changed what about people, and who asked for what is not theirs.
CREATE TABLE people_audit(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at REAL NOT NULL,
  who TEXT NOT NULL,
  what TEXT NOT NULL,
  subject TEXT NOT NULL
) STRICT;
