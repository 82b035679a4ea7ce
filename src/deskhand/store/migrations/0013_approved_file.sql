-- What a person approved, by its real path: it speaks in prompts as long as its content has this digest.
CREATE TABLE approved_file(
  path TEXT PRIMARY KEY,
  digest BLOB NOT NULL,
  by TEXT NOT NULL,
  at REAL NOT NULL
) STRICT;
