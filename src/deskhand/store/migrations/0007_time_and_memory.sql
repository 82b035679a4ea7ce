-- Memory: what is known, a row for each fact (memory/facts.py). A fact is never rewritten: it is closed (`valid_to`), and
-- what came in its place is named. `key` names the writing for ever, so that it happens once. `owner` is the person or
-- the agent whose it is, '' for all. `session` and `n` are the event that it comes from. `held`: it was written when
-- something from outside had been read, and is told nobody before a person said yes.

-- Jobs: what was due and what came of it (runtime/jobs.py). JOB.md files say what a job is.

-- Tasks: what is to be done in a conversation, and in which order (runtime/tasks.py).

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

-- Skills: proposals and how they did (runtime/proposals.py).

-- Moving in: what was taken over from another system (runtime/moving.py).
