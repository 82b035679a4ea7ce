-- vector_add: in place of one of another length; what has been erased meanwhile gets none --
INSERT OR REPLACE INTO fact_vector(fact, model, vector) SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM fact WHERE id = ?1)

-- vector_add on postgresql --
INSERT INTO fact_vector(fact, model, vector) SELECT $1, $2, $3 WHERE EXISTS (SELECT 1 FROM fact WHERE id = $1)
ON CONFLICT(fact, model) DO UPDATE SET vector = excluded.vector

-- vector_load: a page of those that are open --
SELECT fact.id, fact.scope, fact.owner, fact.held, fact_vector.vector
FROM fact JOIN fact_vector ON fact_vector.fact = fact.id AND fact_vector.model = ?1
WHERE fact.id > ?2 AND fact.valid_to IS NULL ORDER BY fact.id LIMIT ?3

-- vector_state: how these are now --
SELECT fact.id, fact.scope, fact.owner, fact.held, fact_vector.vector
FROM fact JOIN fact_vector ON fact_vector.fact = fact.id AND fact_vector.model = ?1
WHERE fact.id IN (SELECT CAST(value AS BIGINT) FROM json_each(?2)) AND fact.valid_to IS NULL

-- vector_fetch --
SELECT fact, vector FROM fact_vector WHERE model = ?1 AND fact IN (SELECT CAST(value AS BIGINT) FROM json_each(?2))

-- vector_missing: a page of those that have none of this length (0: of any), the latest first --
SELECT fact.id, fact.text FROM fact
WHERE fact.id < ?2 AND fact.valid_to IS NULL
  AND NOT EXISTS (SELECT 1 FROM fact_vector WHERE fact_vector.fact = fact.id AND fact_vector.model = ?1
    AND (?4 = 0 OR length(vector) = ?4))
ORDER BY fact.id DESC LIMIT ?3

-- vector_missing_of: those of these that have none of this length --
SELECT fact.id, fact.text FROM fact
WHERE fact.id IN (SELECT CAST(value AS BIGINT) FROM json_each(?2)) AND fact.valid_to IS NULL
  AND NOT EXISTS (SELECT 1 FROM fact_vector WHERE fact_vector.fact = fact.id AND fact_vector.model = ?1
    AND (?3 = 0 OR length(vector) = ?3))
ORDER BY fact.id DESC

-- vector_counts: how many each model has made --
SELECT model, count(*) FROM fact_vector JOIN fact ON fact.id = fact_vector.fact WHERE fact.valid_to IS NULL
GROUP BY model ORDER BY model
