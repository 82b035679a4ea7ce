-- egress_grant_drop: of an agent, or in all of its sessions; '' is every agent --
DELETE FROM egress_grant WHERE host = ?1 AND (?2 = '' OR agent = ?2) AND (?3 = '*' OR session = ?3)

-- egress_grants_of: what holds in a session --
SELECT host, session, knowing FROM egress_grant WHERE agent IN (?1, '') AND session IN (?2, '')

-- egress_grants --
SELECT agent, session, host, knowing, at, by FROM egress_grant ORDER BY agent, session, host

-- egress_use_add --
INSERT INTO egress_use(session, host, port, refused, requests, up, down, first_at, last_at)
VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8)
ON CONFLICT(session, host, port, refused) DO UPDATE SET
  requests = egress_use.requests + excluded.requests, up = egress_use.up + excluded.up,
  down = egress_use.down + excluded.down, last_at = excluded.last_at

-- egress_uses: the latest first --
SELECT session, host, port, refused, requests, up, down, first_at, last_at FROM egress_use ORDER BY last_at DESC LIMIT ?

-- egress_uses_trim --
DELETE FROM egress_use WHERE last_at < (SELECT last_at FROM egress_use ORDER BY last_at DESC LIMIT 1 OFFSET ?)

-- egress_said: what was said for good when a tool asked for a host --
SELECT verdict, shown FROM call_grant WHERE tool = 'request_host' AND agent = ?
