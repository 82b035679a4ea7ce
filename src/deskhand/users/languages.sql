-- language_get --
SELECT chosen, reported FROM person_language WHERE person = ?

-- language_choose --
INSERT INTO person_language(person, chosen) VALUES(?, ?) ON CONFLICT(person) DO UPDATE SET chosen = excluded.chosen

-- language_report --
INSERT INTO person_language(person, reported) VALUES(?, ?) ON CONFLICT(person) DO UPDATE SET reported = excluded.reported

-- language_drop --
DELETE FROM person_language WHERE person = ?
