-- Where else the same was said that a fact says, beside the event that it was made of (memory/facts.sql): such a fact
-- stays when one of its conversations is erased.
CREATE TABLE fact_source(
  fact INTEGER NOT NULL,
  session TEXT NOT NULL,
  n INTEGER NOT NULL,
  PRIMARY KEY(fact, session)
) STRICT, WITHOUT ROWID;
CREATE INDEX fact_source_session ON fact_source(session);
CREATE TRIGGER fact_source_erased AFTER DELETE ON fact BEGIN
  DELETE FROM fact_source WHERE fact = OLD.id;
END;
