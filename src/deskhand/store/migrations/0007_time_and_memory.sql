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


-- Gathering: how far something has been read (memory/gathered.sql). `kind` is harvest or reflect of a session, clean of
-- facts (`scope:owner`), promote of an agent's notes; `n` is the last event or fact that was read, in the commit that
-- holds what came of it; up to `seen` there is nothing to read for now. `failures`: so often in a row it came to nothing,
-- the last time `at` then.
CREATE TABLE gathered(
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  n INTEGER NOT NULL,
  seen INTEGER NOT NULL,
  at REAL NOT NULL,
  status TEXT NOT NULL CHECK(status IN ('processed', 'too_short', 'error')),
  note TEXT NOT NULL DEFAULT '',
  failures INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY(kind, subject)
) STRICT, WITHOUT ROWID;

-- What files that show facts said when they were last looked at, by their real path (memory/project.py).
CREATE TABLE memory_file(
  path TEXT PRIMARY KEY,
  base BLOB NOT NULL,
  at REAL NOT NULL
) STRICT, WITHOUT ROWID;

-- Jobs: what was due and what came of it (runtime/jobs.py). JOB.md files say what a job is. A run is there once for each
-- slot, which is the time at which it was due, or names what else started it; it is written before anything is done.
-- `body` is the job as it was then, `payload` what an event brought along. Whoever runs it is `holder`, until
-- `lease_until`. `after_n` is the last event of its conversation before it.
CREATE TABLE job_run(
  job TEXT NOT NULL,
  slot TEXT NOT NULL,
  state TEXT NOT NULL CHECK(state IN
    ('waiting', 'checking', 'running', 'finishing', 'done', 'error', 'gated', 'skipped', 'missed', 'interrupted')),
  due_at REAL NOT NULL,
  body BLOB NOT NULL,
  payload BLOB,
  session TEXT NOT NULL DEFAULT '',
  after_n INTEGER NOT NULL DEFAULT 0,
  holder TEXT NOT NULL DEFAULT '',
  lease_until REAL,
  attempts INTEGER NOT NULL DEFAULT 0,
  began_at REAL,
  ended_at REAL,
  said TEXT NOT NULL DEFAULT '',
  PRIMARY KEY(job, slot)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_run_at ON job_run(job, due_at);
CREATE INDEX job_run_session ON job_run(session) WHERE session <> '';
CREATE INDEX job_run_open ON job_run(state) WHERE state IN ('waiting', 'checking', 'running', 'finishing');

-- How far the clock has come for a job (`seen_at`: all times up to then are decided), under which `plan` that was, how
-- often what happened, and what its owner was told of its failures.
CREATE TABLE job_state(
  job TEXT PRIMARY KEY,
  seen_at REAL NOT NULL,
  plan TEXT NOT NULL,
  runs INTEGER NOT NULL DEFAULT 0,
  errors INTEGER NOT NULL DEFAULT 0,
  gates INTEGER NOT NULL DEFAULT 0,
  skips INTEGER NOT NULL DEFAULT 0,
  failures INTEGER NOT NULL DEFAULT 0,
  alerts INTEGER NOT NULL DEFAULT 0,
  alerted_at REAL NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- When Deskhand began to look after jobs, and why none is run.
CREATE TABLE job_boot(at REAL NOT NULL) STRICT;
CREATE TABLE job_pause(one INTEGER PRIMARY KEY CHECK(one = 1), why TEXT NOT NULL, at REAL NOT NULL) STRICT;

-- How what sets a job off was when it was last looked at: the files, or the words of a page.
CREATE TABLE trigger_seen(
  job TEXT NOT NULL, line TEXT NOT NULL, value TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY(job, line)
) STRICT, WITHOUT ROWID;

-- Tasks: what is to be done in a conversation, and in which order (tools/task_graph.py); `body` is the whole task. And
-- which conversations may have to go on by themselves, as the log says it: dropped and made anew at will.
CREATE TABLE task(
  session TEXT NOT NULL,
  id INTEGER NOT NULL,
  status TEXT NOT NULL CHECK(status IN ('pending', 'in_progress', 'completed', 'blocked', 'deleted')),
  title TEXT NOT NULL,
  body BLOB NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY(session, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE long_work(
  session TEXT PRIMARY KEY,
  deep INTEGER NOT NULL DEFAULT 0,
  goal INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- Budgets: what was used, by day and by whom (runtime/budgets.py). `scope` is all, person, agent, job or session, `day` the
-- number of a calendar day, `micros` millionths of a US dollar. A hold is what a call that goes on may use: it is dropped
-- in the commit of its reply, and counts as used where the process died in between. `budget_lift` is what an owner added
-- to a limit for the time that begins at `since`; `budget_warned` which limits somebody was warned of.
CREATE TABLE budget_used(
  scope TEXT NOT NULL,
  name TEXT NOT NULL,
  day INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  micros INTEGER NOT NULL,
  calls INTEGER NOT NULL,
  PRIMARY KEY(scope, name, day)
) STRICT, WITHOUT ROWID;
CREATE TABLE budget_hold(
  key TEXT PRIMARY KEY,
  day INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  micros INTEGER NOT NULL,
  charge BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE budget_lift(
  scope TEXT NOT NULL,
  name TEXT NOT NULL,
  field TEXT NOT NULL,
  since INTEGER NOT NULL,
  extra INTEGER NOT NULL,
  PRIMARY KEY(scope, name, field, since)
) STRICT, WITHOUT ROWID;
CREATE TABLE budget_warned(
  scope TEXT NOT NULL,
  name TEXT NOT NULL,
  field TEXT NOT NULL,
  since INTEGER NOT NULL,
  most INTEGER NOT NULL,
  PRIMARY KEY(scope, name, field, since, most)
) STRICT, WITHOUT ROWID;

-- What is to go on after a restart that an agent asked for (runtime/continuing.py). `run` is the process in which it was
-- asked for; `label` whose word the text is.
CREATE TABLE restart_owed(
  key TEXT PRIMARY KEY,
  session TEXT NOT NULL,
  principal BLOB NOT NULL,
  address BLOB NOT NULL,
  text TEXT NOT NULL,
  label BLOB NOT NULL,
  run TEXT NOT NULL,
  at REAL NOT NULL
) STRICT, WITHOUT ROWID;

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

-- Moving in: what was taken over from another system (runtime/moving). What stands here is never taken again, whatever
-- has become of it since. `here` is what it is called with us. Of a conversation `lines` were taken, and `mark` says which
-- the last were.
CREATE TABLE moved(
  system TEXT NOT NULL,
  kind TEXT NOT NULL,
  key TEXT NOT NULL,
  here TEXT NOT NULL,
  lines INTEGER NOT NULL DEFAULT 0,
  mark TEXT NOT NULL DEFAULT '',
  at REAL NOT NULL,
  PRIMARY KEY(system, kind, key)
) STRICT, WITHOUT ROWID;
