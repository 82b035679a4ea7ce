-- Memory: what is known, a row for each fact (memory/facts.py). A fact is never rewritten: it is closed (`valid_to`), and
-- what came in its place is named. `key` names the writing for ever, so that it happens once. `owner` is the person or
-- the agent whose it is, '' for all. `session` and `n` are the event that it comes from. `held`: it was written when
-- something from outside had been read, and is told nobody before a person said yes.

-- Jobs: what was due and what came of it (runtime/jobs.py). JOB.md files say what a job is.

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

-- Budgets: what was used, by day and by whom (runtime/budgets.py).

-- Skills: proposals and how they did (runtime/proposals.py).

-- Moving in: what was taken over from another system (runtime/moving.py).
