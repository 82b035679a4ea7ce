-- named_get --
SELECT name FROM named_session WHERE place = ?

-- named_set --
INSERT INTO named_session(place, name) VALUES(?, ?) ON CONFLICT(place) DO UPDATE SET name = excluded.name

-- named_drop --
DELETE FROM named_session WHERE place = ?

-- named_return: what goes on elsewhere goes on there no longer --
DELETE FROM named_session WHERE name = ?

-- named_elsewhere: the places where this session goes on, besides its own --
SELECT place FROM named_session WHERE name = ?

-- named_home: the first message of this session --
SELECT body FROM event WHERE session = ? AND kind = 'message_received' AND body IS NOT NULL ORDER BY n LIMIT 1
