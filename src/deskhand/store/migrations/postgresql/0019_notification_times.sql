-- When somebody wants to be told what nobody waits for (users/notification_times.py): `quiet` are hours, as 22:00-07:00, and
-- `digest` times of a day, as 08:00 18:00; '' for none.
CREATE TABLE notification_times(
  person TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  quiet TEXT COLLATE "C" NOT NULL DEFAULT '',
  digest TEXT COLLATE "C" NOT NULL DEFAULT ''
);

-- A message may also be `deferred`: it waits for the time at which its reader wants to be told. What is behind it goes on.
ALTER TABLE outbox DROP CONSTRAINT outbox_state_check;
ALTER TABLE outbox ADD CONSTRAINT outbox_state_check
  CHECK(state IN ('drafting', 'deferred', 'pending', 'sending', 'sent', 'failed'));
CREATE INDEX outbox_deferred ON outbox(id) WHERE state = 'deferred';
