-- Sessions that began as a branch of another one, after its event `from_n`; `turns` had ended there until then. A
-- projection of the events `branched`.
CREATE TABLE branch(
  session TEXT PRIMARY KEY,
  origin TEXT NOT NULL,
  from_n INTEGER NOT NULL,
  turns INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX branch_origin ON branch(origin);
INSERT INTO branch SELECT begun.session, begun.origin, begun.from_n,
  (SELECT count(*) FROM event WHERE session = begun.origin AND n <= begun.from_n AND kind = 'turn_ended')
FROM (
  SELECT session, json_extract(CAST(body AS TEXT), '$.of') AS origin, CAST(json_extract(CAST(body AS TEXT), '$.at_n') AS INTEGER) AS from_n
  FROM event WHERE kind = 'branched' AND body IS NOT NULL
) AS begun;
