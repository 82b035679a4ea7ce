"""Reads the home of OpenClaw (2026.1 to 2026.9; also as Clawdbot and Moltbot): its configuration,
agents/, cron/, credentials/, state/ and the workspaces.

It kept conversations, jobs and who may write in files first, and in databases later. A home may
hold remains of both: all are read, and the database counts where both know something.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from ..types.errors import ConfigError
from ..types.jobs import Job
from ..types.messages import clean_text
from .channels import convert_channels
from .chat_addresses import Bots, parse_chat
from .json5 import parse_json5
from .model import AgentFound, ImportedHome, ImportedMemory, ImportedPerson, JobFound
from .openclaw_channels import PLAIN_VARIABLES, PLATFORMS, convert_platforms
from .openclaw_secrets import read_profiles, read_variables, resolve_secret
from .openclaw_sessions import Sessions
from .openclaw_speech import convert_speech, list_speech_keys, list_used_keys
from .operator_ai import note_unused_tables
from .reading import convert_jobs, parse_facts, read_daily_notes, read_jobs, read_skills
from .safe_files import KEEP, MCP_SERVERS, Tree, Unread, parse_json
from .settings import (
    NO_SUCH_SPEECH_KEY,
    ImportedKeys,
    add_address,
    as_list,
    as_map,
    join_provider,
    note_unused_keys,
    provider_variable,
    section_at,
    select_keys,
    snake_fields,
    take_env_keys,
    take_key,
    thinking_level,
)
from .sqlite_reader import SqliteRows

CONFIGS = ("openclaw.json", "clawdbot.json", "moltbot.json", "moldbot.json")
FOLDERS = (".openclaw", ".clawdbot", ".moltbot", ".moldbot")
STATE = "state/openclaw.sqlite"
MAIN = "main"
PROGRAM_STATE = "state of its program"
REASONS = {
    "agents/*/agent/openclaw-agent.sqlite*": (PROGRAM_STATE, ""),
    "agents/*/agent*": (PROGRAM_STATE, ""),
    "agents/*/sessions/*": ("older copies of conversations", KEEP),
    "credentials/*allowFrom*": ("no channel of that platform is imported", ""),
    "credentials/*pairing.json": ("nobody has approved them", "deskhand pair"),
    "credentials*": ("signing in does not move", "sign in again"),
    "telegram*": (PROGRAM_STATE, ""),
    "agents/*/agent/models.json": ("Deskhand has a catalogue of models", "deskhand model"),
    "cron*": ("what its jobs have said", ""),
    "state*": (PROGRAM_STATE, ""),
    "devices*": ("Deskhand has no other devices", ""),
    "nodes*": ("Deskhand has no other devices", ""),
    "identity*": (PROGRAM_STATE, ""),
    "exec-approvals.json": ("Deskhand asks by its own rules", "see docs/policy.md"),
    "logs*": ("logs of OpenClaw", ""),
    "media*": ("files of messages; conversations name them", KEEP),
    "browser*": ("the profile of its browser", ""),
    "sandboxes*": (PROGRAM_STATE, ""),
    "extensions*": ("a plugin for OpenClaw cannot run here", "rewrite it: docs/extending.md"),
    "hooks*": ("a hook for OpenClaw cannot run here", "rewrite it: docs/extending.md"),
    "canvas*": ("Deskhand has no canvas", KEEP),
    "memory*": ("search indexes; Deskhand makes its own", ""),
    "*.bak*": ("an older copy", ""),
    "workspace*/memory/*.json": (PROGRAM_STATE, ""),
    "workspace*/BOOTSTRAP.md": ("what was to be done at its first start", ""),
    "workspace*/BOOT.md": ("what it was to do at each start", "make a job of it: deskhand jobs"),
    "workspace*": ("files of a workspace stay where they are", KEEP),
}
TABLES = {
    "channel_pairing_requests": ("nobody has approved them", "deskhand pair"),
    "secret_store_entries": ("secrets of OpenClaw's own store", "put them into Deskhand's .env"),
    "standing_intents": ("Deskhand has no such intents", "tell them to your agent"),
    "cron_jobs": ("Deskhand keeps no such field", ""),
}
"""Tables that are not read: (why, what to do)."""
TOLD = ("SOUL.md", "AGENTS.md", "USER.md", "HEARTBEAT.md")
ALSO_TOLD = {"IDENTITY.md": "SOUL.md", "TOOLS.md": "AGENTS.md"}
"""Files that Deskhand does not read by themselves: where their words go."""
_USED_KEYS = (
    "meta*",
    "wizard*",
    "env.*",
    "agent.model*",
    "agent.workspace",
    "agents.defaults.workspace",
    "agents.defaults.model",
    "agents.defaults.model.*",
    "agents.defaults.thinking_default",
    "agents.defaults.user_timezone",
    "agents.list",
    "agents.entries.*",
    "bindings",
    "models.providers.*.base_url",
    "models.providers.*.api_key*",
    "models.providers.*.models",
    "models.providers.*.api",
    "models.mode",
    "channels.*",
    *(f"{platform}.*" for platform in PLATFORMS),
    "session.identity_links.*",
    "auth.profiles.*",
    "auth.order.*",
)
_KEY_REASONS = {
    "gateway*": ("Deskhand listens on this machine only", "see docs/serve.md"),
    "hooks*": ("a hook for OpenClaw cannot run here", "see docs/extending.md"),
    "mcp*": MCP_SERVERS,
    "plugins*": ("a plugin for OpenClaw cannot run here", "see docs/extending.md"),
    "skills*": ("skills are imported without their settings", ""),
    "tools.media.audio*": (NO_SUCH_SPEECH_KEY, "see docs/voice.md"),
    "tools*": ("Deskhand has its own tools and rules", "see docs/policy.md"),
    "browser*": ("Deskhand browses in its own way", ""),
    "messages.tts*": (NO_SUCH_SPEECH_KEY, "see docs/voice.md"),
    "tts*": (NO_SUCH_SPEECH_KEY, "see docs/voice.md"),
    "commands*": ("an import cannot make anybody an owner", "deskhand users"),
    "agents.defaults.heartbeat*": ("the heartbeat is a job here", "see docs/heartbeat.md"),
}
_AGENT_KEYS = frozenset({"id", "default", "name", "workspace", "agent_dir", "model", "identity"})
_JOB_FIELDS = {
    "": {
        *("id", "name", "description", "enabled", "schedule", "payload", "delivery", "state"),
        *("agentId", "deleteAfterRun", "createdAtMs", "updatedAtMs", "sessionTarget"),
        *("sessionKey", "wakeMode", "isolation", "declarationKey", "displayName"),
    }
}
_DAILY = re.compile(r"\d{4}-\d{2}-\d{2}[\w.-]*\.md")
_BENEATH = re.compile(r"/\.(?:openclaw|clawdbot|moltbot|moldbot)/([^/]+)/?\Z")
_HINT = re.compile(r"(- )?\*\*[^*]+:\*\*( *_\(.*\)_)?|_\(.*\)_")
"""A line of a form that nobody filled in."""


def read(tree: Tree, now: float) -> ImportedHome:
    """All that this home holds; what cannot be read is in `broken`."""
    raw = _read_config(tree)
    agents = _agents(tree, raw)
    state = _SharedState(tree)
    keys = _convert_settings(tree, raw, agents, state)
    found_bots = convert_platforms(tree, raw, agents, read_variables(tree, raw), state.allowed)
    keys.raw = {"channels": found_bots.others}
    keys.agents = {name: {"channels": own} for name, own in found_bots.by_agent.items()}
    names = list(agents)
    channels, bots = convert_channels(tree.notes, keys, names)
    if channels:
        keys.config["channels"] = channels
    homes = {name: _workspace(tree, raw, name, names[0], each) for name, each in agents.items()}
    sessions = Sessions(tree, bots, found_bots.accounts)
    talks = tuple(talk for name in names for talk in sessions.read(name))
    memories = tuple(each for name in names for each in _memories(tree, name, homes[name]))
    skills = {
        skill.name: skill
        for folder in ("skills", *(f"{home}/skills" for home in homes.values() if home))
        for skill in read_skills(tree, folder)
    }
    found = tuple(
        AgentFound(
            name,
            {},
            _told(tree, home),
            dict(read_daily_notes(tree, home, _DAILY)) if home else {},
        )
        for name, home in homes.items()
    )
    jobs = tuple(_jobs(tree, state, bots, names[0]))
    tree.leave_out_rest(REASONS)
    return ImportedHome(
        "openclaw",
        "",
        str(tree.root),
        keys.config,
        keys.secrets,
        found,
        tuple(_people(raw)),
        talks,
        jobs,
        memories,
        skills=tuple(skills.values()),
        left_out=tree.notes.all_left_out(),
        changed=tree.notes.all_changed(),
        broken=tree.notes.all_broken(),
        trusted=tree.is_private(
            *(each for each in (*CONFIGS, "agents", *homes.values()) if each and tree.has(each))
        ),
    )


# ---------------------------------------------------------------------- settings


def _read_config(tree: Tree) -> dict[str, Any]:
    name = next((each for each in CONFIGS if tree.has_file(each)), "")
    if not name:
        return {}
    try:
        found = parse_json5(tree.read_text(name))
    except ConfigError as error:
        tree.note_unread(name, error)
        return {}
    except (ValueError, RecursionError):
        tree.notes.fail(name, "it is no JSON5")
        return {}
    if not isinstance(found, dict):
        tree.notes.fail(name, "it is no object")
        return {}
    return found


def _agents(tree: Tree, raw: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The settings of each agent by its id, the default one first."""
    section = snake_fields(raw.get("agents"))
    listed = section.get("list") or section_at(raw, "routing").get("agents")
    found: dict[str, dict[str, Any]] = {}
    for each in listed if isinstance(listed, list) else ():
        one = snake_fields(each)
        if one.get("id"):
            found[str(one["id"])] = one
    for id_, each in as_map(section.get("entries")).items():
        found[id_] = snake_fields(each)
    for entry in tree.entries("agents"):
        if entry.kind == "folder":
            found.setdefault(entry.name, {})
    if not found:
        found[MAIN] = {}
    first = next((id_ for id_, each in found.items() if each.get("default")), "")
    first = first or (MAIN if MAIN in found else next(iter(found)))
    return {first: found.pop(first), **found}


def _convert_settings(
    tree: Tree, raw: Mapping[str, Any], agents: Mapping[str, Mapping[str, Any]], state: _SharedState
) -> ImportedKeys:
    """Its settings as keys of ours, and its keys as secrets."""
    variables = read_variables(tree, raw)
    secrets = take_env_keys(
        tree, {name: each for name, each in variables.items() if name not in PLAIN_VARIABLES}
    )
    config: dict[str, Any] = {}
    for name, each in as_map(section_at(raw, "models").get("providers")).items():
        one = snake_fields(each)
        add_address(config, name, one.get("base_url"))
        if one.get("api_key"):
            value = resolve_secret(tree, f"the key of {name}", one["api_key"], variables)
            take_key(tree, secrets, provider_variable(name), value)
    for name, given in list_speech_keys(raw):
        value = resolve_secret(tree, f"the key of {name}", given, variables)
        take_key(tree, secrets, provider_variable(name), value)
    for agent in agents:
        read_profiles(tree, agent, state.profiles, secrets)
    defaults = section_at(raw, "agents", "defaults") or section_at(raw, "agent")
    own: dict[str, Any] = {}
    if models := _models(defaults.get("model")):
        own["models"] = models
    where = "agents.defaults.thinkingDefault"
    if level := thinking_level(tree, where, defaults.get("thinking_default")):
        own["thinking"] = level
    if own:
        config["defaults"] = own
    if defaults.get("user_timezone"):
        config["timezone"] = defaults["user_timezone"]
    for agent, settings in agents.items():
        if models := _models(settings.get("model")):
            config.setdefault("agents", {})[agent] = {"models": models}
        tree.notes.count_unused_fields(f"settings of agent {agent}", settings, _AGENT_KEYS)
    note_unused_keys(tree, raw, (*_USED_KEYS, *list_used_keys(raw)), _KEY_REASONS)
    ours = select_keys(tree, "openclaw.json", config)
    if speech := convert_speech(tree, raw, ours.get("providers", {})):
        ours["speech"] = speech
    return ImportedKeys({}, {}, ours, secrets)


def _models(given: Any) -> list[str]:
    """The models of `model`: a text, or the first one and those that stand in for it."""
    one = {"primary": given} if isinstance(given, str) else snake_fields(given)
    found = [str(each) for each in (one.get("primary"), *as_list(one.get("fallbacks"))) if each]
    return [name for each in dict.fromkeys(found) if (name := join_provider(each))]


class _SharedState:
    """What the database of all agents says."""

    def __init__(self, tree: Tree) -> None:
        self.allowed: list[tuple[Any, ...]] = []
        self.jobs: list[tuple[Any, ...]] = []
        self.profiles: list[tuple[Any, ...]] = []
        if not tree.has_file(STATE):
            return
        try:
            rows = SqliteRows(tree, STATE)
            try:
                entries = ("channel_key", "entry", "account_id")
                self.allowed = list(rows.read("channel_pairing_allow_entries", entries))
                self.jobs = list(rows.read("cron_jobs", ("job_id", "name", "job_json")))
                self.profiles = list(rows.read("auth_profile_store", ("store_key", "store_json")))
                machine = rows.read("config_machine_state", ("state_key", "value_json"))
                self.profiles += [row for row in machine if row[0] == "authProfiles.store"]
                note_unused_tables(tree, rows, TABLES)
            finally:
                rows.close()
        except Unread as error:
            tree.note_unread(STATE, error)


# ---------------------------------------------------------------------- people


def _people(raw: Mapping[str, Any]) -> Iterator[ImportedPerson]:
    """Those whom it knows on several channels."""
    links = section_at(raw, "session").get("identity_links")
    for name, ids in as_map(links).items():
        found = [str(each).partition(":") for each in (ids if isinstance(ids, list) else ())]
        yield ImportedPerson(
            name, ids=tuple((channel, id_) for channel, colon, id_ in found if colon)
        )


# ---------------------------------------------------------------------- what it is told, and knows


def _workspace(
    tree: Tree, raw: Mapping[str, Any], agent: str, first: str, settings: Mapping[str, Any]
) -> str:
    """The folder of an agent's workspace, from the home; '' where it lies elsewhere."""
    defaults = section_at(raw, "agents", "defaults") or section_at(raw, "agent")
    usual = "workspace" if agent == first else f"workspace-{agent}"
    given = settings.get("workspace") or (defaults.get("workspace") if agent == first else "")
    named = str(given or usual)
    inner = tree.resolve_inside(named)
    beneath = _BENEATH.search(named)
    if inner is None and beneath and tree.has(beneath[1]):
        inner = beneath[1]  # the home was moved
    if inner is None:
        tree.notes.leave_out(
            f"the files of agent {agent} in {named}", "that folder is outside this home", KEEP
        )
        return ""
    return inner if tree.has_folder(inner) else ""


def _told(tree: Tree, home: str) -> dict[str, str]:
    """The files that tell it something, without what nobody filled in."""
    if not home:
        return {}
    found = dict[str, str]()
    for name, text in tree.read_texts(home, (*TOLD, *ALSO_TOLD)).items():
        plain = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
        lines = [line for line in plain.splitlines() if not _HINT.fullmatch(line.strip())]
        said = [line for line in lines if line.strip() and not line.startswith(("#", "_", "---"))]
        if not said:
            tree.notes.leave_out(f"{home}/{name}", "nobody has written anything into it")
            continue
        plain = "\n".join(lines).strip() + "\n"
        place = ALSO_TOLD.get(name, name)
        if place != name:
            tree.notes.change(f"{home}/{name}", f"its words stand at the end of {place}")
        found[place] = f"{found[place]}\n{plain}" if place in found else plain
    return found


def _memories(tree: Tree, agent: str, home: str) -> Iterator[ImportedMemory]:
    for name in ("MEMORY.md", "memory.md") if home else ():
        facts = list(parse_facts(tree.read_texts(home, (name,))))
        if facts:
            tree.notes.change(f"{home}/{name}", "each of its lines becomes a memory")
        yield from (ImportedMemory(text, "agent", agent) for text in facts)


# ---------------------------------------------------------------------- jobs


def _jobs(tree: Tree, state: _SharedState, bots: Bots, first: str) -> Iterator[JobFound]:
    """Those of the database; those of its file where it has none."""

    def make(each: Mapping[str, Any], name: str) -> Job | None:
        return _job(tree, each, name, bots, first)

    entries = []
    for id_, name, body in state.jobs:
        try:
            entries.append({"id": id_, "name": name, **parse_json(str(body or "{}"))})
        except (ValueError, RecursionError, TypeError) as error:
            tree.notes.leave_out(f"job {name or id_}", str(error))
    if entries:
        if tree.has("cron/jobs.json"):
            tree.leave_out("cron/jobs.json", "its jobs are in state/openclaw.sqlite")
        yield from convert_jobs(tree, STATE, entries, make, _JOB_FIELDS)
    else:
        yield from read_jobs(tree, "cron/jobs.json", make, _JOB_FIELDS)


def _job(tree: Tree, each: Mapping[str, Any], name: str, bots: Bots, first: str) -> Job | None:
    entry = snake_fields(each)
    called = f"job {entry.get('name') or name}"
    if entry.get("declaration_key"):
        tree.notes.leave_out(called, "it is a job of OpenClaw itself")
        return None
    payload = snake_fields(entry.get("payload"))
    text = payload.get("message") or payload.get("text")
    if payload.get("kind") not in (None, "agentTurn", "systemEvent") or not text:
        kind = payload.get("kind") or "nothing"
        tree.notes.leave_out(called, f"Deskhand has no job that does {kind}", "deskhand jobs add")
        return None
    agent = str(entry.get("agent_id") or first)
    schedule, zone, once = _schedule(snake_fields(entry.get("schedule")))
    model = join_provider(payload.get("model"))
    timeout = payload.get("timeout_seconds")
    job = Job(
        name,
        clean_text(str(text)),
        str(entry.get("name") or ""),
        schedule,
        zone,
        agent=agent,
        session="isolated",
        to=None,
        models=(model,) if model else (),
        delete_after_run=bool(entry.get("delete_after_run", once)),
        enabled=bool(entry.get("enabled", True)),
    )
    where = _delivery(entry, payload)
    to = bots.find_target(agent, parse_chat(where)) if where else None
    if where and to is None:
        tree.notes.change(called, f"its answers go nowhere: {where} is not in Deskhand")
    changes: dict[str, Any] = {"to": to}
    if isinstance(timeout, int | float) and timeout > 0:
        changes["timeout_s"] = float(timeout)
    return replace(job, **changes)


def _schedule(given: Mapping[str, Any]) -> tuple[str, str, bool]:
    """(schedule, time zone, whether it is for one time)."""
    if given.get("every_ms"):
        return f"every {int(given['every_ms'])}ms", "", False
    if given.get("at") or given.get("at_ms"):
        if given.get("at_ms"):
            at = datetime.fromtimestamp(int(given["at_ms"]) / 1000, UTC)
        else:
            at = datetime.fromisoformat(str(given["at"]))
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        return f"at {at.astimezone(UTC).isoformat()}", "", True
    return str(given.get("expr") or given.get("cron") or ""), str(given.get("tz") or ""), False


def _delivery(entry: Mapping[str, Any], payload: Mapping[str, Any]) -> str:
    """Where its answers go, as `channel:chat`; '' for nowhere."""
    given = snake_fields(entry.get("delivery"))
    if not given and payload.get("deliver") is not False:
        given = {
            "channel": payload.get("channel") or payload.get("provider"),
            "to": payload.get("to"),
        }
    if given.get("mode") == "none" or not given.get("to"):
        return ""
    channel = str(given.get("channel") or "telegram")
    to = str(given["to"]).removeprefix(f"{channel}:").replace("/", ":")
    to = re.sub(r"\A(?:channel|room):", "", to)  # so a chat is named where people have ids, too
    thread = given.get("thread_id")
    if thread and not re.search(r"\d:\d|:topic:|:thread:", to):
        to = f"{to}:thread:{thread}"
    return f"{channel}:{to}"
