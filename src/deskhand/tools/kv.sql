-- value_get: what has expired is not there --
SELECT value, expires_at, label FROM kv
WHERE agent = ? AND namespace = ? AND key = ? AND (expires_at IS NULL OR expires_at > ?)

-- value_set --
INSERT INTO kv(agent, namespace, key, value, expires_at, label) VALUES(?, ?, ?, ?, ?, ?)
ON CONFLICT(agent, namespace, key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at,
  label = excluded.label

-- value_delete --
DELETE FROM kv WHERE agent = ? AND namespace = ? AND key = ?

-- value_list: by prefix, taken literally --
SELECT key, value, expires_at, label FROM kv
WHERE agent = ?1 AND namespace = ?2 AND substr(key, 1, length(?3)) = ?3 AND (expires_at IS NULL OR expires_at > ?4)
ORDER BY key

-- value_expire: room made by every write --
DELETE FROM kv WHERE expires_at <= ?
