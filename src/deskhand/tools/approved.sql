-- approved_files --
SELECT path, digest, by, at FROM approved_file ORDER BY path

-- approved_file_set --
INSERT INTO approved_file(path, digest, by, at) VALUES(?, ?, ?, ?)
ON CONFLICT(path) DO UPDATE SET digest = excluded.digest, by = excluded.by, at = excluded.at

-- approved_file_drop --
DELETE FROM approved_file WHERE path = ?

-- file_label_drop_beneath: of a file, or of a folder and what lies in it --
DELETE FROM file_label WHERE path = ?1 OR (path > ?1 || '/' AND path < ?1 || '0')

-- held_back: the marks of all files, and what is approved --
SELECT path, label, NULL FROM file_label WHERE path >= '/' AND path < '0'
UNION ALL SELECT path, NULL, digest FROM approved_file
