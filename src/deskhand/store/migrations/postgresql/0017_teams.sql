-- Teams (teams/): the sub-agents, `id`, that work on with a conversation, `team`, under a name. Those that have shut down
-- are `leaving`, and `gone` once their tasks are free; they can be called back by their name.
CREATE TABLE teammate(
  team TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  role TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  state TEXT COLLATE "C" NOT NULL CHECK(state IN ('active', 'leaving', 'gone')),
  at DOUBLE PRECISION NOT NULL,
  idle_since DOUBLE PRECISION,
  PRIMARY KEY(team, name)
);
CREATE INDEX teammate_open ON teammate(state) WHERE state <> 'gone';
CREATE UNIQUE INDEX teammate_id ON teammate(id);

-- What they write to each other and to whoever leads them. `request` is how it is given to a teammate as a task, the JSON
-- of `types.subagents.TaskRequest`; NULL for the lead. `about` is the message that it answers, `answer` what was
-- answered. 'dropped' was never read: its team was stopped.
CREATE TABLE mail(
  id TEXT COLLATE "C" PRIMARY KEY,
  team TEXT COLLATE "C" NOT NULL,
  sender TEXT COLLATE "C" NOT NULL,
  recipient TEXT COLLATE "C" NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  text TEXT COLLATE "C" NOT NULL,
  label BYTEA NOT NULL,
  request BYTEA,
  about TEXT COLLATE "C" NOT NULL,
  answer TEXT COLLATE "C" NOT NULL DEFAULT '',
  state TEXT COLLATE "C" NOT NULL DEFAULT 'wanted' CHECK(state IN ('wanted', 'given', 'dropped')),
  at DOUBLE PRECISION NOT NULL
);
CREATE INDEX mail_wanted ON mail(state) WHERE state = 'wanted';
CREATE INDEX mail_of_team ON mail(team, at);

-- What sub-agents work on is looked for after each change.
CREATE INDEX subagent_live ON subagent(state) WHERE state IN ('wanted', 'running');
