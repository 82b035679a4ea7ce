-- ledger_files: what tools changed in a conversation, the latest first --
SELECT place FROM effect_item JOIN effect ON n = effect
WHERE session = ?1 AND folder NOT IN ('', 'kv:', 'task:') AND undone_at IS NULL AND undoes IS NULL
GROUP BY place ORDER BY max(n) DESC LIMIT ?2

-- ledger_processes: what runs beside a conversation --
SELECT id || ' ' || command FROM process WHERE session = ?1 AND state IN ('wanted', 'running') LIMIT ?2
