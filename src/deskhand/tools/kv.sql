-- kv_set --
INSERT INTO kv(agent, namespace, key, value, expires_at) VALUES(?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at

-- kv_get: ?4 is the time now, in seconds since the epoch --
SELECT value FROM kv WHERE agent = ?1 AND namespace = ?2 AND key = ?3 AND (expires_at IS NULL OR expires_at > ?4)

-- kv_delete --
DELETE FROM kv WHERE agent = ? AND namespace = ? AND key = ?

-- kv_list: keys that begin with ?3 --
SELECT key, value FROM kv WHERE agent = ?1 AND namespace = ?2 AND substr(key, 1, length(?3)) = ?3
AND (expires_at IS NULL OR expires_at > ?4) ORDER BY key

-- kv_sweep: forget what has expired by ? --
DELETE FROM kv WHERE expires_at <= ?
