-- usage_members: who takes part in conversations that have used anything from that day on --
SELECT session, principal FROM session_member WHERE session IN (SELECT session FROM usage WHERE day >= ?)
ORDER BY session, principal
