-- file_labels: of all files --
SELECT path, label FROM file_label WHERE path >= '/' AND path < '0'

-- file_label_get --
SELECT label FROM file_label WHERE path = ?

-- file_label_set --
INSERT INTO file_label(path, label, session, at) VALUES(?, ?, ?, ?)
ON CONFLICT(path) DO UPDATE SET label = excluded.label, session = excluded.session, at = excluded.at

-- file_label_drop --
DELETE FROM file_label WHERE path = ?

-- file_label_keep: what is at a path is also what these bytes are, until the journal says that they are gone from it --
INSERT INTO file_label(path, label, session, at) SELECT 'blob:' || ?2, label, session, at
FROM file_label WHERE path = ?1
  AND NOT EXISTS(SELECT 1 FROM effect JOIN effect_item ON effect = n WHERE key = ?3 AND place = ?4)
ON CONFLICT(path) DO UPDATE SET label = excluded.label, session = excluded.session, at = excluded.at

-- file_label_restore: these bytes are at this path again --
INSERT INTO file_label(path, label, session, at) SELECT ?1, label, session, ?3
FROM file_label WHERE path = 'blob:' || ?2
ON CONFLICT(path) DO UPDATE SET label = excluded.label, session = excluded.session, at = excluded.at
