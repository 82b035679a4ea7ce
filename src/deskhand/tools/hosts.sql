-- egress_grant_set: what a person knew that had been read, something from outside (1) or private (2), stays known --
INSERT INTO egress_grant(agent, session, host, knowing, at, by) VALUES(?, ?, ?, ?, ?, ?)
ON CONFLICT(agent, session, host) DO UPDATE SET
  knowing = CASE WHEN 1 IN (egress_grant.knowing, excluded.knowing) THEN 1
    ELSE max(egress_grant.knowing, excluded.knowing) END,
  at = excluded.at, by = excluded.by

-- secret_uses_said: what was said for good to skills of an agent, or of all, that want a secret --
SELECT verdict, shown FROM call_grant WHERE tool = 'secret of a skill' AND agent IN (?, '')
