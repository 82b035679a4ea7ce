-- Where a row is said. What is behind an unsent row of the same place waits for it.
ALTER TABLE outbox ADD COLUMN place TEXT GENERATED ALWAYS AS (json_array(
  json_extract(CAST(body AS TEXT), '$.address.channel'),
  json_extract(CAST(body AS TEXT), '$.address.account'),
  json_extract(CAST(body AS TEXT), '$.address.chat'),
  json_extract(CAST(body AS TEXT), '$.address.thread')
)) VIRTUAL;
CREATE INDEX outbox_waiting ON outbox(place, id) WHERE state IN ('pending', 'sending');

-- Whether the conversation is over: the next message in it begins another, which is for those who take part from then on.
-- In a group, those who were there read on.
ALTER TABLE session ADD COLUMN over INTEGER NOT NULL DEFAULT 0;
CREATE TRIGGER session_begins AFTER UPDATE OF over ON session WHEN OLD.over AND NOT NEW.over BEGIN
  DELETE FROM session_member WHERE session = NEW.session;
END;
