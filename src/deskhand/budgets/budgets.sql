-- budget_use: a call is counted for everybody that it is counted for. ?1 day, ?2 tokens, ?3 millionths, ?4.. names --
INSERT INTO budget_used(scope, name, day, tokens, micros, calls)
SELECT column1, column2, ?1, ?2, ?3, 1
FROM (VALUES('all', ''), ('person', ?4), ('agent', ?5), ('job', ?6), ('session', ?7)) AS counted
WHERE column1 = 'all' OR column2 <> ''
ON CONFLICT(scope, name, day) DO UPDATE
SET tokens = budget_used.tokens + excluded.tokens, micros = budget_used.micros + excluded.micros,
  calls = budget_used.calls + 1

-- budget_settle: as budget_use, in place of hold ?8; where that is gone, what it held (?9, ?10) was counted in full --
INSERT INTO budget_used(scope, name, day, tokens, micros, calls)
SELECT column1, column2, ?1, ?2 - counted * ?9, ?3 - counted * ?10, 1 - counted
FROM (VALUES('all', ''), ('person', ?4), ('agent', ?5), ('job', ?6), ('session', ?7)) AS names,
  (SELECT CASE WHEN EXISTS(SELECT 1 FROM budget_hold WHERE key = ?8) THEN 0 ELSE 1 END AS counted) AS hold
WHERE (column1 = 'all' OR column2 <> '') AND (counted = 1 OR ?2 <> 0 OR ?3 <> 0)
ON CONFLICT(scope, name, day) DO UPDATE
SET tokens = budget_used.tokens + excluded.tokens, micros = budget_used.micros + excluded.micros,
  calls = budget_used.calls + excluded.calls

-- budget_hold --
INSERT INTO budget_hold(key, day, tokens, micros, charge) VALUES(?, ?, ?, ?, ?)
ON CONFLICT(key) DO UPDATE
SET day = excluded.day, tokens = excluded.tokens, micros = excluded.micros, charge = excluded.charge

-- budget_drop --
DELETE FROM budget_hold WHERE key = ?

-- budget_holds --
SELECT key, day, tokens, micros, charge FROM budget_hold

-- budget_sum --
SELECT coalesce(sum(tokens), 0), coalesce(sum(micros), 0) FROM budget_used
WHERE scope = ? AND name = ? AND day BETWEEN ? AND ?

-- budget_names: who used anything since then, the most first --
SELECT name, sum(tokens), sum(micros) FROM budget_used WHERE scope = ? AND day >= ? GROUP BY name ORDER BY 2 DESC LIMIT ?

-- budget_lift --
INSERT INTO budget_lift(scope, name, field, since, extra) VALUES(?, ?, ?, ?, ?)
ON CONFLICT(scope, name, field, since) DO UPDATE
SET extra = budget_lift.extra + excluded.extra

-- budget_lifted --
SELECT extra FROM budget_lift WHERE scope = ? AND name = ? AND field = ? AND since = ?

-- budget_warn: nobody is warned twice of the same --
INSERT INTO budget_warned(scope, name, field, since, most) VALUES(?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING

-- budget_warned --
SELECT 1 FROM budget_warned WHERE scope = ? AND name = ? AND field = ? AND since = ? AND most = ?

-- budget_runs: conversations of a job's runs since then that used anything, and how much of it they were --
SELECT count(DISTINCT name), coalesce(sum(tokens), 0), coalesce(sum(micros), 0) FROM budget_used
WHERE scope = 'session' AND day >= ? AND instr(name, ?) > 0
