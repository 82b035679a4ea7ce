-- Whose word a file is, where it is not simply this machine's: what an agent wrote after it had read something from
-- outside, or for few readers. By the real path.
CREATE TABLE file_label(
  path TEXT PRIMARY KEY,
  label BLOB NOT NULL,
  session TEXT NOT NULL,
  at REAL NOT NULL
) STRICT, WITHOUT ROWID;
ALTER TABLE kv ADD COLUMN label BLOB;
