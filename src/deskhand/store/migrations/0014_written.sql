-- What agents changed in folders of the owner and the owner has not reviewed (tools/written.py). `place` is the path
-- (bytes); `before` is its state at the last review and `blob` holds its bytes, `after` is what an agent left there.
-- `outside`: words from outside may have gone into it. `told`: the owner was told that there is something to review.
CREATE TABLE written(
  place BLOB PRIMARY KEY,
  folder TEXT NOT NULL,
  before TEXT,
  after TEXT,
  blob TEXT,
  agent TEXT NOT NULL,
  session TEXT NOT NULL,
  at REAL NOT NULL,
  outside INTEGER NOT NULL,
  told INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX written_blob ON written(blob) WHERE blob IS NOT NULL;
CREATE INDEX written_untold ON written(session) WHERE NOT told;

-- A folder may be allowed for writing also to conversations that have read something from outside.
ALTER TABLE path_grant ADD COLUMN outside INTEGER NOT NULL DEFAULT 0;
