-- Whose word a file is, where it is not simply this machine's: what an agent wrote after it had read something from
-- outside, or for few readers. By the real path.
CREATE TABLE file_label(
  path TEXT PRIMARY KEY,
  label BLOB NOT NULL,
  session TEXT NOT NULL,
  at REAL NOT NULL
) STRICT, WITHOUT ROWID;
ALTER TABLE kv ADD COLUMN label BLOB;

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
