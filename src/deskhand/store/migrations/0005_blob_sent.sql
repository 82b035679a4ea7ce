-- Who sent a file that no conversation names yet: they alone may attach it.
CREATE TABLE blob_sent(
  digest TEXT NOT NULL,
  principal TEXT NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY(digest, principal)
) STRICT, WITHOUT ROWID;
