-- Teams (teams/): the sub-agents, `id`, that work on with a conversation, `team`, under a name. Those that have shut down
-- are `leaving`, and `gone` once their tasks are free; they can be called back by their name.
CREATE TABLE teammate(
  team TEXT NOT NULL,
  name TEXT NOT NULL,
  role TEXT NOT NULL,
  id TEXT NOT NULL,
  state TEXT NOT NULL CHECK(state IN ('active', 'leaving', 'gone')),
  at REAL NOT NULL,
  idle_since REAL,
  PRIMARY KEY(team, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX teammate_open ON teammate(state) WHERE state <> 'gone';
CREATE UNIQUE INDEX teammate_id ON teammate(id);

-- What they write to each other and to whoever leads them. `request` is how it is given to a teammate as a task, the JSON
-- of `types.subagents.TaskRequest`; NULL for the lead. `about` is the message that it answers, `answer` what was
-- answered. 'dropped' was never read: its team was stopped.
CREATE TABLE mail(
  id TEXT PRIMARY KEY,
  team TEXT NOT NULL,
  sender TEXT NOT NULL,
  recipient TEXT NOT NULL,
  kind TEXT NOT NULL,
  text TEXT NOT NULL,
  label BLOB NOT NULL,
  request BLOB,
  about TEXT NOT NULL,
  answer TEXT NOT NULL DEFAULT '',
  state TEXT NOT NULL DEFAULT 'wanted' CHECK(state IN ('wanted', 'given', 'dropped')),
  at REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX mail_wanted ON mail(state) WHERE state = 'wanted';
CREATE INDEX mail_of_team ON mail(team, at);

-- What sub-agents work on is looked for after each change.
CREATE INDEX subagent_live ON subagent(state) WHERE state IN ('wanted', 'running');
