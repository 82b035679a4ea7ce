-- The processes that work. Each says again and again that it is there (`beat`, by the clock of the server alone); whoever
-- has lost its row can write no more. `alone` is the one conversation that it drives at the moment, after three crashes.
CREATE TABLE worker(
  id TEXT COLLATE "C" PRIMARY KEY,
  name TEXT COLLATE "C" NOT NULL,
  alone TEXT COLLATE "C" NOT NULL DEFAULT '',
  beat TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT clock_timestamp()
);

-- What only one of them does: `lead`, or drive the conversations of an agent (`agent/NAME`).
CREATE TABLE lease(
  duty TEXT COLLATE "C" PRIMARY KEY,
  worker TEXT COLLATE "C" NOT NULL REFERENCES worker(id) ON DELETE CASCADE
);
CREATE INDEX lease_worker ON lease(worker);

DROP TABLE driver;
