-- Tasks that conversations have given to sub-agents (subagents/). A sub-agent is one conversation, `session`, and gets a
-- row for each task: `round` counts them. `parent` is the conversation that gave it, and is told of its end, once
-- (`told`). `request` is the JSON of how it was asked for. `stop` says who stopped it. `said` is what the parent is told,
-- under `label`.
CREATE TABLE subagent(
  id TEXT COLLATE "C" NOT NULL,
  round BIGINT NOT NULL,
  parent TEXT COLLATE "C" NOT NULL,
  session TEXT COLLATE "C" NOT NULL,
  title TEXT COLLATE "C" NOT NULL,
  state TEXT COLLATE "C" NOT NULL CHECK(state IN ('wanted', 'running', 'done', 'error', 'stopped')),
  told BIGINT NOT NULL DEFAULT 0,
  stop TEXT COLLATE "C" NOT NULL DEFAULT '',
  at DOUBLE PRECISION NOT NULL,
  ended_at DOUBLE PRECISION,
  input_tokens BIGINT NOT NULL DEFAULT 0,
  output_tokens BIGINT NOT NULL DEFAULT 0,
  request BYTEA NOT NULL,
  said TEXT COLLATE "C" NOT NULL DEFAULT '',
  label BYTEA,
  PRIMARY KEY(id, round)
);
CREATE INDEX subagent_open ON subagent(told) WHERE told = 0;
CREATE INDEX subagent_parent ON subagent(parent);
CREATE INDEX subagent_session ON subagent(session);
