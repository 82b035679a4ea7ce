-- named_get --
SELECT name FROM named_session WHERE place = ?

-- named_set --
INSERT INTO named_session(place, name) VALUES(?, ?) ON CONFLICT(place) DO UPDATE SET name = excluded.name

-- named_drop --
DELETE FROM named_session WHERE place = ?
