-- Browsers that are told what waits for their person (webpush/devices.py), as long as the login `token` holds. `key` and
-- `auth` encrypt what they are told; they were told of questions up to `asked_at`, and of turns up to `ended_seq`.
CREATE TABLE push_device(
  endpoint TEXT PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  person TEXT NOT NULL,
  token TEXT NOT NULL,
  key BLOB NOT NULL,
  auth BLOB NOT NULL,
  label TEXT NOT NULL,
  contact TEXT NOT NULL,
  at REAL NOT NULL,
  asked_at REAL NOT NULL,
  ended_seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
