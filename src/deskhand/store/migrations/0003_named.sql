-- Which conversation goes on at a place, where somebody has begun one by name: `/start NAME`.
CREATE TABLE named_session(
  place TEXT PRIMARY KEY,
  name TEXT NOT NULL
) STRICT, WITHOUT ROWID;
