-- Memory: what is known, a row for each fact (memory/facts.py). A fact is never rewritten: it is closed (`valid_to`), and
-- what came in its place is named. `key` names the writing for ever, so that it happens once. `owner` is the person or
-- the agent whose it is, '' for all. `session` and `n` are the event that it comes from. `held`: it was written when
-- something from outside had been read, and is told nobody before a person said yes.

-- Jobs: what was due and what came of it (runtime/jobs.py). JOB.md files say what a job is.

-- Tasks: what is to be done in a conversation, and in which order (runtime/tasks.py).

-- Budgets: what was used, by day and by whom (runtime/budgets.py).

-- Skills: proposals and how they did (runtime/proposals.py).

-- Moving in: what was taken over from another system (runtime/moving.py).
