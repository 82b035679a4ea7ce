-- fact_add: once by its key, while there is room (for one that comes in place of others always); of no erased event --
INSERT INTO fact(key, text, scope, owner, session, n, writer, label, confidence, retention, pinned, held, replaces, at,
  valid_from, expires_at)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?14, ?15
WHERE (?16 OR coalesce((SELECT facts FROM fact_count WHERE scope = ?3 AND owner = ?4), 0) < ?17)
  AND NOT EXISTS (SELECT 1 FROM event WHERE session = ?5 AND n = ?6 AND body IS NULL)
ON CONFLICT(key) DO NOTHING

-- fact_supersede: those of the same owner that this one names, unless it is held or has been closed --
UPDATE fact SET valid_to = ?2, closed_why = 'superseded',
  superseded_by = (SELECT id FROM fact AS new WHERE new.key = ?1)
WHERE valid_to IS NULL AND id IN (
  SELECT CAST(old.value AS BIGINT) FROM fact AS new, json_each(new.replaces) AS old
  WHERE new.key = ?1 AND NOT new.held AND new.valid_to IS NULL
) AND (scope, owner) = (SELECT scope, owner FROM fact AS new WHERE new.key = ?1)
  AND key != ?1

-- fact_close --
UPDATE fact SET valid_to = ?2, closed_why = ?3, superseded_by = ?4 WHERE id = ?1 AND valid_to IS NULL

-- fact_moved: to the one that says the same to others, unless that is held or was not written --
UPDATE fact SET valid_to = ?3, closed_why = ?4, superseded_by = (SELECT id FROM fact AS new WHERE new.key = ?2)
WHERE id = ?1 AND valid_to IS NULL
  AND EXISTS (SELECT 1 FROM fact AS new WHERE new.key = ?2 AND NOT new.held AND new.valid_to IS NULL)

-- fact_reopen --
UPDATE fact SET valid_to = NULL, closed_why = '', superseded_by = NULL, expires_at = NULL
WHERE id = ?1 AND valid_to IS NOT NULL

-- fact_reopen_replaced: what this one came in place of --
UPDATE fact SET valid_to = NULL, closed_why = '', superseded_by = NULL WHERE superseded_by = ?1 AND valid_to IS NOT NULL

-- fact_since_open: what held then holds again --
UPDATE fact SET valid_to = NULL, closed_why = '', superseded_by = NULL
WHERE at <= ?1 AND valid_to > ?1 AND closed_why <> 'expired'
  AND (?2 = '' OR scope = ?2) AND (?3 = '' OR owner = ?3)
  AND (?4 = '' OR EXISTS (SELECT 1 FROM fact AS by WHERE by.id = fact.superseded_by AND by.writer = ?4 AND by.at > ?1)
    OR (?4 = 'cleaner' AND closed_why LIKE 'cleaner:%'))

-- fact_since_close: what was written after it is taken back --
UPDATE fact SET valid_to = ?5, closed_why = 'undone'
WHERE at > ?1 AND valid_to IS NULL
  AND (?2 = '' OR scope = ?2) AND (?3 = '' OR owner = ?3) AND (?4 = '' OR writer = ?4)

-- fact_promote: a person has seen it: it is told from now on --
UPDATE fact SET held = FALSE, expires_at = NULL, retention = 'durable', label = ?2 WHERE id = ?1 AND valid_to IS NULL

-- fact_keep --
UPDATE fact SET expires_at = NULL, retention = 'durable' WHERE id = ?1 AND valid_to IS NULL

-- fact_supersede_by: as it would have done when it was written --
UPDATE fact SET valid_to = ?2, closed_why = 'superseded', superseded_by = ?1
WHERE valid_to IS NULL AND id != ?1 AND id IN (
  SELECT CAST(old.value AS BIGINT) FROM fact AS new, json_each(new.replaces) AS old
  WHERE new.id = ?1 AND NOT new.held AND new.valid_to IS NULL
) AND (scope, owner) = (SELECT scope, owner FROM fact AS new WHERE new.id = ?1)

-- fact_pin --
UPDATE fact SET pinned = ?2, expires_at = CASE WHEN ?2 THEN NULL ELSE expires_at END WHERE id = ?1 AND valid_to IS NULL

-- fact_used --
UPDATE fact SET used_at = ?2, uses = uses + 1 WHERE id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1))

-- fact_expire: candidates that nobody took up --
UPDATE fact SET valid_to = ?1, closed_why = 'expired' WHERE expires_at <= ?1 AND valid_to IS NULL

-- fact_erase --
DELETE FROM fact WHERE id = ?1

-- fact_also: what it says was also said there --
INSERT INTO fact_source(fact, session, n)
SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM fact WHERE id = ?1 AND session <> ?2 AND session <> '') AND ?2 <> ''
  AND NOT EXISTS (SELECT 1 FROM event WHERE session = ?2 AND n = ?3 AND body IS NULL)
ON CONFLICT DO NOTHING

-- fact_sources_forget: nothing was said there any more --
DELETE FROM fact_source WHERE session = ?1

-- fact_source_instead: what was also said elsewhere comes from there from now on --
UPDATE fact SET (session, n) = (SELECT s.session, s.n FROM fact_source AS s WHERE s.fact = fact.id ORDER BY 1 LIMIT 1)
WHERE session = ?1 AND EXISTS (SELECT 1 FROM fact_source AS s WHERE s.fact = fact.id)

-- fact_erase_of: what was made of this conversation alone, everybody's (?2) or a person's; of what was merged or corrected, all of it --
DELETE FROM fact WHERE session = ?1 AND (?2 OR (scope = 'user' AND owner = ?3)) AND NOT EXISTS (
  WITH RECURSIVE part(id) AS (
    SELECT CAST(value AS BIGINT) FROM json_each(fact.replaces) WHERE fact.writer IN ('cleaner', 'person')
    UNION
    SELECT CAST(deeper.value AS BIGINT) FROM part JOIN fact AS whole ON whole.id = part.id AND whole.writer IN ('cleaner', 'person'),
      json_each(whole.replaces) AS deeper
  )
  SELECT 1 FROM part JOIN fact AS made ON made.id = part.id AND made.writer NOT IN ('cleaner', 'person') AND made.session <> ?1
)

-- fact_part_instead: what was put together of several comes from one that is left --
UPDATE fact SET (session, n) = (
  SELECT made.session, made.n FROM json_each(fact.replaces) AS part JOIN fact AS made
  ON made.id = CAST(part.value AS BIGINT)
  WHERE made.session <> ?1 ORDER BY made.id DESC LIMIT 1
)
WHERE session = ?1 AND writer IN ('cleaner', 'person') AND EXISTS (
  SELECT 1 FROM json_each(fact.replaces) AS part JOIN fact AS made
  ON made.id = CAST(part.value AS BIGINT) WHERE made.session <> ?1
)

-- fact_of_session: what is known of what was said there --
SELECT id FROM fact WHERE session = ?1 UNION SELECT fact FROM fact_source WHERE session = ?1

-- fact_words_tidy: what was deleted leaves the pages of the index --
INSERT INTO fact_words(fact_words) VALUES('optimize')

-- fact_words_tidy on postgresql: vacuum does it --
SELECT 1

-- fact_get: by the ids in a list, whatever has become of them --
SELECT id, key, text, scope, owner, session, n, writer, label, confidence, retention, pinned, held, at, valid_from,
  valid_to, expires_at, superseded_by, closed_why, used_at, uses, replaces
FROM fact WHERE id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1))

-- fact_list: of the owners in a list of [scope, owner], or all (null), the latest first; ?7 to ?10 choose among them --
SELECT id, key, text, scope, owner, session, n, writer, label, confidence, retention, pinned, held, at, valid_from,
  valid_to, expires_at, superseded_by, closed_why, used_at, uses, replaces
FROM fact
WHERE valid_to IS NULL AND (expires_at IS NULL OR expires_at > ?2) AND (?3 OR NOT held) AND (?4 = 0 OR pinned)
  AND (CAST(?1 AS TEXT) IS NULL OR (scope, owner) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?1)))
  AND (?7 = '' OR scope = ?7) AND (?8 = '' OR owner = ?8) AND (?9 = 0 OR held) AND id < ?10
ORDER BY id DESC LIMIT ?5 OFFSET ?6

-- fact_closed: what these owners had and nothing came in place of, the last closed first; ?3 is in its text, and it was closed before ?2 --
SELECT id, key, text, scope, owner, session, n, writer, label, confidence, retention, pinned, held, at, valid_from,
  valid_to, expires_at, superseded_by, closed_why, used_at, uses, replaces
FROM fact
WHERE valid_to IS NOT NULL AND superseded_by IS NULL
  AND (scope, owner) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?1))
  AND (?2 = 0 OR (valid_to, id) < (SELECT last.valid_to, last.id FROM fact AS last WHERE last.id = ?2))
  AND (?3 = '' OR instr(lower(text), ?3) > 0)
ORDER BY valid_to DESC, id DESC LIMIT ?4

-- fact_pinned: all that is always told --
SELECT id, key, text, scope, owner, session, n, writer, label, confidence, retention, pinned, held, at, valid_from,
  valid_to, expires_at, superseded_by, closed_why, used_at, uses, replaces
FROM fact WHERE pinned AND valid_to IS NULL AND NOT held ORDER BY id

-- fact_find: by words, the best first --
SELECT fact.id, fact.text FROM fact_words JOIN fact ON fact.id = fact_words.rowid
WHERE fact_words MATCH ?1 AND fact.valid_to IS NULL AND (fact.expires_at IS NULL OR fact.expires_at > ?3)
  AND (?4 OR NOT fact.held)
  AND (?2 IS NULL OR (fact.scope, fact.owner) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?2)))
ORDER BY bm25(fact_words), fact.id DESC LIMIT ?5

-- fact_find on postgresql --
SELECT fact.id, fact.text FROM fact_words JOIN fact ON fact.id = fact_words.fact
WHERE fact_words.words @@ match_query('stems', $1) AND fact.valid_to IS NULL
  AND (fact.expires_at IS NULL OR fact.expires_at > $3) AND ($4 OR NOT fact.held)
  AND (CAST($2 AS TEXT) IS NULL OR (fact.scope, fact.owner) IN (SELECT value ->> 0, value ->> 1 FROM json_each($2)))
ORDER BY ts_rank(fact_words.words, match_query('stems', $1), 1) DESC, fact.id DESC LIMIT $5

-- fact_history: what it came in place of, and what came in its place, over any number of steps --
WITH RECURSIVE
  before(id) AS (SELECT CAST(?1 AS BIGINT) UNION SELECT fact.id FROM fact JOIN before ON fact.superseded_by = before.id),
  after(id) AS (SELECT CAST(?1 AS BIGINT) UNION SELECT fact.superseded_by FROM fact JOIN after ON fact.id = after.id
    WHERE fact.superseded_by IS NOT NULL)
SELECT id, key, text, scope, owner, session, n, writer, label, confidence, retention, pinned, held, at, valid_from,
  valid_to, expires_at, superseded_by, closed_why, used_at, uses, replaces
FROM fact WHERE id IN (SELECT id FROM before UNION SELECT id FROM after) ORDER BY id

-- fact_counts: by owner: open, held, pinned, candidates, and closed --
SELECT scope, owner, sum(valid_to IS NULL), sum(valid_to IS NULL AND held), sum(valid_to IS NULL AND pinned),
  sum(valid_to IS NULL AND retention = 'candidate'), sum(valid_to IS NOT NULL)
FROM fact GROUP BY scope, owner ORDER BY scope, owner

-- fact_room: how many are open of each owner --
SELECT scope, owner, facts FROM fact_count WHERE facts > 0

-- fact_last_change --
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'fact_change'), 0)

-- fact_last_change on postgresql: the last ones are always kept --
SELECT coalesce(max(seq), 0) FROM fact_change

-- fact_changes: which facts changed after that, each once, with its last change and its first --
SELECT max(seq), fact, min(seq) FROM fact_change WHERE seq > ?1 GROUP BY fact ORDER BY 1 LIMIT ?2

-- fact_changes_from: the first that is kept --
SELECT coalesce(min(seq), 0) FROM fact_change

-- fact_changes_forget: but the last so many --
DELETE FROM fact_change WHERE seq <= (SELECT coalesce(max(seq), 0) FROM fact_change) - ?1

-- fact_latest: to which something happened last --
SELECT id FROM fact ORDER BY max(at, coalesce(valid_to, 0)) DESC, id DESC LIMIT 1

-- fact_place_erased: whether what was said there is erased --
SELECT count(*) FROM event WHERE session = ?1 AND n = ?2 AND body IS NULL

-- fact_said: the last message before it was noted --
SELECT n, at, body FROM event WHERE session = ?1 AND n <= ?2 AND kind = 'message_received' AND body IS NOT NULL
ORDER BY n DESC LIMIT 1

-- fact_latest_of: of this owner, to which something happened last --
SELECT id FROM fact WHERE scope = ?1 AND owner = ?2 ORDER BY max(at, coalesce(valid_to, 0)) DESC, id DESC LIMIT 1
