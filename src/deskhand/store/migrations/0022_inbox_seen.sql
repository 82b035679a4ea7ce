-- Up to which event (by seq) a person has seen what finished and what failed.
CREATE TABLE inbox_seen(
  person TEXT PRIMARY KEY,
  seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
