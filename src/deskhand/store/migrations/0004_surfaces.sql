-- Projections of the log for surfaces. What waits for a person: one row for each open ask, made of event n.
CREATE TABLE ask(
  ask_id TEXT PRIMARY KEY,
  session TEXT NOT NULL,
  n INTEGER NOT NULL,
  call_id TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX ask_of ON ask(session, call_id);
INSERT INTO ask
SELECT json_extract(CAST(body AS TEXT), '$.ask_id'), session, n, json_extract(CAST(body AS TEXT), '$.call_id')
FROM event AS asked WHERE kind IN ('approval_asked', 'question_asked') AND body IS NOT NULL AND NOT EXISTS(
  SELECT 1 FROM event WHERE session = asked.session AND n > asked.n AND kind IN
  ('approval_answered', 'question_answered', 'call_closed', 'tool_finished', 'turn_ended', 'erased')
);

-- The words of people and models, found by the `seq` of their event; the text itself stands only in the log. What a
-- model has used, by day since the epoch (UTC). Both are made when somebody asks, up to event `seq`.
CREATE VIRTUAL TABLE said USING fts5(words, content = '', contentless_delete = 1, tokenize = 'unicode61');
CREATE TABLE usage(
  session TEXT NOT NULL,
  model TEXT NOT NULL,
  day INTEGER NOT NULL,
  calls INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  cached_tokens INTEGER NOT NULL,
  cache_write_tokens INTEGER NOT NULL,
  PRIMARY KEY(session, model, day)
) STRICT, WITHOUT ROWID;
CREATE TABLE looked_up(
  one INTEGER PRIMARY KEY CHECK(one = 1),
  seq INTEGER NOT NULL
) STRICT;
INSERT INTO looked_up VALUES(1, 0);
