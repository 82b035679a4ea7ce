-- What owners were told unasked (runtime/alerts.sql). That it was sent is seen in the outbox, by its key; `said_as`
-- is the key of a message there that says the same. `seen_at`: an owner has seen it elsewhere.
CREATE TABLE alert(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  key TEXT NOT NULL UNIQUE,
  at REAL NOT NULL,
  text TEXT NOT NULL,
  said_as TEXT NOT NULL,
  seen_at REAL
) STRICT;
