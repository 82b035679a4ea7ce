-- Turns that programs began since a person last said something (runtime/machine_rounds.sql); `what` says which.
CREATE TABLE machine_round(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at REAL NOT NULL,
  what TEXT NOT NULL
) STRICT;
