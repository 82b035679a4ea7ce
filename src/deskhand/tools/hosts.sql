-- egress_grant_set: what a person knew that had been read, something from outside (1) or private (2), stays known --
INSERT INTO egress_grant(agent, session, host, knowing, at, by) VALUES(?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
  knowing = CASE WHEN 1 IN (knowing, excluded.knowing) THEN 1 ELSE max(knowing, excluded.knowing) END,
  at = excluded.at, by = excluded.by
