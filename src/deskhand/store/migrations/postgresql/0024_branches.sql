-- Sessions that began as a branch of another one, after its event `from_n`; `turns` had ended there until then. A
-- projection of the events `branched`.
CREATE TABLE branch(
  session TEXT COLLATE "C" PRIMARY KEY,
  origin TEXT COLLATE "C" NOT NULL,
  from_n BIGINT NOT NULL,
  turns BIGINT NOT NULL
);
CREATE INDEX branch_origin ON branch(origin);
INSERT INTO branch SELECT begun.session, begun.origin, begun.from_n,
  (SELECT count(*) FROM event WHERE session = begun.origin AND n <= begun.from_n AND kind = 'turn_ended')
FROM (
  SELECT session, json_extract(body, '$.of') AS origin, CAST(json_extract(body, '$.at_n') AS BIGINT) AS from_n
  FROM event WHERE kind = 'branched' AND body IS NOT NULL
) AS begun;
