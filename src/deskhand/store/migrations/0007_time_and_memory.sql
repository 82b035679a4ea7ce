-- Memory: what is known, a row for each fact (memory/facts.py). A fact is never rewritten: it is closed (`valid_to`), and
-- what came in its place is named. `key` names the writing for ever, so that it happens once. `owner` is the person or
-- the agent whose it is, '' for all. `session` and `n` are the event that it comes from. `held`: it was written when
-- something from outside had been read, and is told nobody before a person said yes.
-- `replaces` are the ids that it comes in place of (JSON), once it is not held any more. `superseded_by` is an id.
-- `expires_at`: a candidate is dropped then.
CREATE TABLE fact(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  key TEXT NOT NULL UNIQUE,
  text TEXT NOT NULL,
  scope TEXT NOT NULL CHECK(scope IN ('user', 'agent', 'global')),
  owner TEXT NOT NULL CHECK((owner = '') = (scope = 'global')),
  session TEXT NOT NULL,
  n INTEGER NOT NULL,
  writer TEXT NOT NULL,
  label BLOB NOT NULL,
  confidence REAL NOT NULL,
  retention TEXT NOT NULL CHECK(retention IN ('candidate', 'durable')),
  pinned INTEGER NOT NULL,
  held INTEGER NOT NULL,
  replaces TEXT NOT NULL,
  at REAL NOT NULL,
  valid_from REAL NOT NULL,
  valid_to REAL,
  expires_at REAL,
  superseded_by INTEGER,
  closed_why TEXT NOT NULL DEFAULT '',
  used_at REAL,
  uses INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX fact_open ON fact(scope, owner, id) WHERE valid_to IS NULL;
CREATE INDEX fact_pinned ON fact(id) WHERE pinned AND valid_to IS NULL;
CREATE INDEX fact_expires ON fact(expires_at) WHERE expires_at IS NOT NULL AND valid_to IS NULL;
CREATE INDEX fact_superseded ON fact(superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX fact_session ON fact(session, n);

-- The words of those that are open.
CREATE VIRTUAL TABLE fact_words USING fts5(
  text, content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);

-- The meaning of a fact, as a model of this name has it: float16, of length one.
CREATE TABLE fact_vector(
  fact INTEGER NOT NULL,
  model TEXT NOT NULL,
  vector BLOB NOT NULL,
  PRIMARY KEY(fact, model)
) STRICT;

-- How many are open, and which have changed since somebody looked: the triggers see to both.
CREATE TABLE fact_count(
  scope TEXT NOT NULL,
  owner TEXT NOT NULL,
  facts INTEGER NOT NULL,
  PRIMARY KEY(scope, owner)
) STRICT, WITHOUT ROWID;
CREATE TABLE fact_change(seq INTEGER PRIMARY KEY AUTOINCREMENT, fact INTEGER NOT NULL) STRICT;
CREATE TRIGGER fact_added AFTER INSERT ON fact BEGIN
  INSERT INTO fact_words(rowid, text) VALUES(NEW.id, NEW.text);
  INSERT INTO fact_count VALUES(NEW.scope, NEW.owner, 1)
  ON CONFLICT(scope, owner) DO UPDATE SET facts = facts + 1;
  INSERT INTO fact_change(fact) VALUES(NEW.id);
END;
CREATE TRIGGER fact_closed AFTER UPDATE OF valid_to ON fact WHEN OLD.valid_to IS NULL AND NEW.valid_to IS NOT NULL BEGIN
  DELETE FROM fact_words WHERE rowid = NEW.id;
  UPDATE fact_count SET facts = facts - 1 WHERE scope = NEW.scope AND owner = NEW.owner;
END;
CREATE TRIGGER fact_reopened AFTER UPDATE OF valid_to ON fact WHEN OLD.valid_to IS NOT NULL AND NEW.valid_to IS NULL
BEGIN
  INSERT INTO fact_words(rowid, text) VALUES(NEW.id, NEW.text);
  UPDATE fact_count SET facts = facts + 1 WHERE scope = NEW.scope AND owner = NEW.owner;
END;
CREATE TRIGGER fact_changed AFTER UPDATE OF valid_to, held, pinned ON fact BEGIN
  INSERT INTO fact_change(fact) VALUES(NEW.id);
END;
CREATE TRIGGER fact_erased AFTER DELETE ON fact BEGIN
  DELETE FROM fact_words WHERE rowid = OLD.id;
  DELETE FROM fact_vector WHERE fact = OLD.id;
  UPDATE fact_count SET facts = facts - (OLD.valid_to IS NULL) WHERE scope = OLD.scope AND owner = OLD.owner;
  INSERT INTO fact_change(fact) VALUES(OLD.id);
END;
CREATE TRIGGER fact_embedded AFTER INSERT ON fact_vector BEGIN
  INSERT INTO fact_change(fact) VALUES(NEW.fact);
END;


-- Jobs: what was due and what came of it (runtime/jobs.py). JOB.md files say what a job is.

-- Tasks: what is to be done in a conversation, and in which order (runtime/tasks.py).

-- Budgets: what was used, by day and by whom (runtime/budgets.py).

-- Skills: proposals and how they did (runtime/proposals.py).
-- A proposal is never active: only one that a person took is written as a file. `key` names it for ever, so that it is
-- made once. `session` and `n` are the event that it comes from, `label` whose word it is. `findings` is what stands in
-- it (JSON), `card` how it did in replays (JSON, '' before). Of the turns before it was taken, so many had ended badly.
CREATE TABLE proposal(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  key TEXT NOT NULL UNIQUE,
  agent TEXT NOT NULL,
  name TEXT NOT NULL,
  description TEXT NOT NULL,
  body TEXT NOT NULL,
  session TEXT NOT NULL,
  n INTEGER NOT NULL,
  label BLOB NOT NULL,
  writer TEXT NOT NULL,
  at REAL NOT NULL,
  state TEXT NOT NULL CHECK(state IN ('proposed', 'refused', 'accepted', 'rejected', 'reverted', 'kept')),
  findings BLOB NOT NULL,
  card BLOB NOT NULL DEFAULT x'',
  decided_by TEXT NOT NULL DEFAULT '',
  decided_at REAL,
  why TEXT NOT NULL DEFAULT '',
  turns_before INTEGER NOT NULL DEFAULT 0,
  bad_before INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX proposal_state ON proposal(state, agent, name);

-- The turns in which a skill was read that had been proposed, by the event with which they ended.
CREATE TABLE skill_use(
  proposal INTEGER NOT NULL,
  session TEXT NOT NULL,
  n INTEGER NOT NULL,
  at REAL NOT NULL,
  bad INTEGER NOT NULL,
  why TEXT NOT NULL,
  PRIMARY KEY(proposal, session, n)
) STRICT, WITHOUT ROWID;

-- Moving in: what was taken over from another system (runtime/moving.py).
