-- A row for each table that is empty in golden/schema_16.sql.
INSERT INTO fact(key, text, scope, owner, session, n, writer, label, confidence, retention, pinned, held, replaces, at,
  valid_from, valid_to) VALUES
  ('k1', 'Ann drinks tea', 'user', 'ann', 's', 1, 'ann', x'7b7d', 0.5, 'durable', 1, 0, '[]', 1.5, 1.5, NULL),
  ('k2', 'Ann drinks coffee', 'user', 'ann', 's', 2, 'ann', x'7b7d', 1.0, 'durable', 0, 0, '[1]', 1.5, 1.5, 3.0),
  ('k3', 'Bob has a Zürich flat', 'user', 'bob', 's', 3, 'bob', x'7b7d', 1.0, 'candidate', 0, 1, '[]', 2.5, 2.5, NULL);
DELETE FROM fact WHERE key = 'k3';
INSERT INTO fact_vector VALUES(1, 'm', x'00ff');
INSERT INTO fact_source VALUES(1, 't', 4);
INSERT INTO kv VALUES('a', 'n', 'k', 'v' || char(0) || 'w', NULL, x'7b7d');
INSERT INTO path_grant VALUES('a', '/x', 1, 1.0, 'ann', 1);
INSERT INTO call_grant VALUES('h', 'always', 'a', 't', '{}', 1.0, 'ann');
INSERT INTO file_label VALUES('/f', x'7b7d', 's', 1.0);
INSERT INTO approved_file VALUES('/f', x'00', 'ann', 1.0);
INSERT INTO effect(key, agent, session, person, tool, folder, what, at) VALUES('e', 'a', 's', 'p', 't', 'f', 'w', 1.0);
INSERT INTO effect_item VALUES(1, x'2fff', NULL, 'f0644 aa', NULL);
INSERT INTO written VALUES(x'2f61', '/', NULL, 'f', NULL, 'a', 's', 1.0, 1, 0);
INSERT INTO egress_grant VALUES('a', 's', 'h', 2, 1.0, 'ann');
INSERT INTO egress_use VALUES('s', 'h', 443, '', 1, 2, 3, 1.0, 2.0);
INSERT INTO process VALUES('p', 's', 'a', 'background', 'c', 'n', 1.0, x'7b7d', 'running', 1.0, 1.0, NULL, NULL, '', '',
  NULL, 0, '');
INSERT INTO subagent VALUES('i', 1, 's', 'a/subagent:i', 't', 'running', 0, '', 1.0, NULL, 3, 4, x'7b7d', '', NULL);
INSERT INTO teammate VALUES('s', 'ann', 'reader', 'i', 'active', 1.0, NULL);
INSERT INTO mail VALUES('m', 's', 'ann', 'lead', 'message', 't', x'7b7d', NULL, '', '', 'given', 1.0);
INSERT INTO mcp_tool VALUES('s', 'add', x'7b7d', NULL, 1.0);
INSERT INTO task VALUES('s', 1, 'pending', 't', x'7b7d', 1.0);
INSERT INTO long_work VALUES('s', 1, 0);
INSERT INTO gathered VALUES('harvest', 's', 1, 1, 1.0, 'processed', '', 0);
INSERT INTO memory_file VALUES('/m', x'61', 1.0);
INSERT INTO job_run(job, slot, state, due_at, body) VALUES('j', 's', 'done', 1.0, x'7b7d');
INSERT INTO job_state(job, seen_at, plan) VALUES('j', 1.0, 'p');
INSERT INTO job_boot VALUES(1.0), (2.0);
INSERT INTO job_pause VALUES(1, 'w', 1.0);
INSERT INTO trigger_seen VALUES('j', 'l', 'v', 1.0);
INSERT INTO budget_used VALUES('all', '', 1, 2, 3, 4);
INSERT INTO budget_hold VALUES('k', 1, 2, 3, x'7b7d');
INSERT INTO budget_lift VALUES('all', '', 'tokens', 1, 5);
INSERT INTO budget_warned VALUES('all', '', 'tokens', 1, 5);
INSERT INTO restart_owed VALUES('k', 's', x'7b7d', x'7b7d', 't', x'7b7d', 'r', 1.0);
INSERT INTO proposal(key, agent, name, description, body, session, n, label, writer, at, state, findings)
  VALUES('k', 'a', 'n', 'd', 'b', 's', 1, x'7b7d', 'w', 1.0, 'proposed', x'5b5d');
INSERT INTO skill_use VALUES(1, 's', 1, 1.0, 1, 'w');
INSERT INTO moved VALUES('x', 'k', 'k', 'h', 0, '', 1.0);
INSERT INTO alert(key, at, text, said_as) VALUES('k', 1.0, 't', '');
INSERT INTO machine_round(at, what) VALUES(1.0, 'w');
INSERT INTO login VALUES(x'00', 'owner', 9.0);
INSERT INTO pairing_guess VALUES(1.0);
INSERT INTO person_language VALUES('ann', 'de', 'en');
INSERT INTO notification_times VALUES('ann', '22:00-07:00', '08:00 18:00');
INSERT INTO share VALUES('s1', x'00', 's', 3, 'ann', 1.0, 2.0, 1);
INSERT INTO inbox_seen VALUES('ann', 7);
INSERT INTO push_device VALUES('https://push.example/1', 'd', 'ann', 't', x'04', x'00', 'l', 'mailto:a@b.c', 1.0, 2.0, 3);
INSERT INTO branch VALUES('b', 's', 3, 1);
