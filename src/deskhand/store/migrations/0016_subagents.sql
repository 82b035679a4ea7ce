-- Tasks that conversations have given to sub-agents (subagents/). A sub-agent is one conversation, `session`, and gets a
-- row for each task: `round` counts them. `parent` is the conversation that gave it, and is told of its end, once
-- (`told`). `request` is the JSON of how it was asked for. `stop` says who stopped it. `said` is what the parent is told,
-- under `label`.
CREATE TABLE subagent(
  id TEXT NOT NULL,
  round INTEGER NOT NULL,
  parent TEXT NOT NULL,
  session TEXT NOT NULL,
  title TEXT NOT NULL,
  state TEXT NOT NULL CHECK(state IN ('wanted', 'running', 'done', 'error', 'stopped')),
  told INTEGER NOT NULL DEFAULT 0,
  stop TEXT NOT NULL DEFAULT '',
  at REAL NOT NULL,
  ended_at REAL,
  input_tokens INTEGER NOT NULL DEFAULT 0,
  output_tokens INTEGER NOT NULL DEFAULT 0,
  request BLOB NOT NULL,
  said TEXT NOT NULL DEFAULT '',
  label BLOB,
  PRIMARY KEY(id, round)
) STRICT, WITHOUT ROWID;
CREATE INDEX subagent_open ON subagent(told) WHERE told = 0;
CREATE INDEX subagent_parent ON subagent(parent);
CREATE INDEX subagent_session ON subagent(session);
