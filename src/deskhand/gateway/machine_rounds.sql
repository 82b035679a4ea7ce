-- machine_round_add --
INSERT INTO machine_round(at, what) VALUES(?, ?)

-- machine_round_trim: what is older than an hour, or lies in the future as a clock was set back, counts no more --
DELETE FROM machine_round WHERE at <= ? OR at > ?

-- machine_rounds_are_of: all of them --
UPDATE machine_round SET at = ?

-- machine_round_clear --
DELETE FROM machine_round

-- machine_rounds_since: how many, and the first of them --
SELECT count(*), coalesce(min(id), 0) FROM machine_round WHERE at > ? AND at <= ?

-- machine_rounds_by: who began most of them --
SELECT what, count(*) FROM machine_round GROUP BY what ORDER BY count(*) DESC, what LIMIT ?
