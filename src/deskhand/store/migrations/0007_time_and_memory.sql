-- Memory: what is known, a row for each fact (memory/facts.py). A fact is never rewritten: it is closed (`valid_to`), and
-- what came in its place is named. `key` names the writing for ever, so that it happens once. `owner` is the person or
-- the agent whose it is, '' for all. `session` and `n` are the event that it comes from. `held`: it was written when
-- something from outside had been read, and is told nobody before a person said yes.

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

-- Tasks: what is to be done in a conversation, and in which order (runtime/tasks.py).

-- Budgets: what was used, by day and by whom (runtime/budgets.py).

-- Skills: proposals and how they did (runtime/proposals.py).

-- Moving in: what was taken over from another system (runtime/moving.py).
