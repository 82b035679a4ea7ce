-- Up to which event (by seq) a person has seen what finished and what failed.
CREATE TABLE inbox_seen(
  person TEXT COLLATE "C" PRIMARY KEY,
  seq BIGINT NOT NULL
);
-- How a conversation is held is asked for when the page shows the end of a long one.
CREATE INDEX event_options ON event(session, n) WHERE kind = 'options_set';
