-- Browsers that are told what waits for their person (webpush/devices.py), as long as the login `token` holds. `key` and
-- `auth` encrypt what they are told; they were told of questions up to `asked_at`, and of turns up to `ended_seq`.
CREATE TABLE push_device(
  endpoint TEXT COLLATE "C" PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL UNIQUE,
  person TEXT COLLATE "C" NOT NULL,
  token TEXT COLLATE "C" NOT NULL,
  key BYTEA NOT NULL,
  auth BYTEA NOT NULL,
  label TEXT COLLATE "C" NOT NULL,
  contact TEXT COLLATE "C" NOT NULL,
  at DOUBLE PRECISION NOT NULL,
  asked_at DOUBLE PRECISION NOT NULL,
  ended_seq BIGINT NOT NULL
);
