"""Reads the home of Hermes Agent (0.19 to 0.22): config.yaml, .env, state.db, memories/, cron/ and
skills/.

Each folder of profiles/ is a home by itself, and is imported by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from ..assembly.prompt_presets import FILE_NAME as PRESET_FILE
from ..config.parse import parse_data
from ..types.errors import ConfigError
from ..types.identity import Address
from ..types.jobs import Job
from ..types.options import TITLE_CHARS, SessionOptions
from .channels import convert_channels
from .chat_addresses import KINDS, Bots, ChatFound, ForeignChat, parse_chat
from .hermes_channels import (
    HANDLED_VARIABLES,
    convert_platforms,
    find_home_chats,
    list_channel_keys,
    read_paired,
)
from .hermes_speech import convert_speech, list_speech_keys
from .jsonl import JsonlRecord
from .model import (
    AgentFound,
    ImportedConversation,
    ImportedFolder,
    ImportedHome,
    ImportedMemory,
)
from .notes import FOR_THE_MODEL, describe_role
from .operator_ai import note_unused_tables
from .reading import read_jobs, read_skills
from .safe_files import KEEP, MCP_SERVERS, Tree, Unread, parse_json
from .settings import (
    NO_SUCH_CHANNEL_KEY,
    NO_SUCH_SPEECH_KEY,
    ImportedKeys,
    add_address,
    as_list,
    as_map,
    join_provider,
    note_unused_keys,
    provider_variable,
    read_env_variables,
    select_keys,
    snake_fields,
    take_env_keys,
    take_key,
    thinking_level,
)
from .sqlite_reader import SqliteRows

AGENT = "hermes"
DATABASE = "state.db"
PROGRAM = "a part of its program"
STATE = "state of its program"
REASONS = {
    "profiles*": ("a profile is a home by itself", "deskhand import that folder, too"),
    "hermes-agent": (PROGRAM, ""),
    "node": (PROGRAM, ""),
    "bin": (PROGRAM, ""),
    "auth.json": ("signing in does not move", "sign in again"),
    "logs": ("logs of Hermes", ""),
    "scripts*": ("scripts of its jobs", "copy what you want to keep"),
    "workspace*": ("files of a workspace stay where they are", KEEP),
    "plugins*": ("a plugin for Hermes cannot run here", "rewrite it: docs/extending.md"),
    "skills/*/DESCRIPTION.md": ("Deskhand has no groups of skills", ""),
    "skills/.*": ("which skills Hermes brought along", ""),
    ".skills_prompt_snapshot.json": (STATE, ""),
    "sessions*": ("conversations are read from state.db", ""),
    "cron/*": ("what its jobs have said", ""),
    "platforms/pairing/*": ("nobody has approved them", "deskhand pair"),
    "pairing/*": ("nobody has approved them", "deskhand pair"),
    "kanban.db": ("Deskhand has no such board", ""),
    "projects.db": ("Deskhand has no projects", ""),
    "*.db": (STATE, ""),
    "*cache*": ("programs recreate it", ""),
    "*.json": (STATE, ""),
}
_TABLES = {
    "state_meta": (STATE, ""),
    "schema_version": ("it says which version wrote the database", ""),
    "gateway_routing": ("conversations say where they were held", ""),
    "session_model_usage": ("past usage is not imported; Deskhand counts its own", ""),
    "sessions": ("Deskhand keeps no such field", ""),
    "messages": ("Deskhand keeps no such field", ""),
}
_SESSION = (
    "id",
    "source",
    "user_id",
    "session_key",
    "chat_id",
    "chat_type",
    "thread_id",
    "started_at",
    "title",
    "end_reason",
    "parent_session_id",
)
_MESSAGE = (
    "session_id",
    "role",
    "content",
    "tool_call_id",
    "tool_calls",
    "tool_name",
    "timestamp",
    "active",
    "compacted",
    "id",
)
_SUMMARY = "[CONTEXT COMPACTION"
_PARTS = "\0json:"
_OWN = frozenset({"cli", "tui"})
_JOB = frozenset(
    {
        *("id", "name", "prompt", "model", "provider", "schedule", "schedule_display", "repeat"),
        *("enabled", "state", "deliver", "origin", "script", "no_agent", "created_at"),
        *("next_run_at", "last_run_at", "last_status", "last_error", "last_delivery_error"),
        *("provider_snapshot", "model_snapshot", "paused_at", "paused_reason"),
    }
)
_USED_KEYS = (
    "_config_version",
    "model",
    "model.default",
    "model.model",
    "model.name",
    "model.provider",
    "model.base_url",
    "model.api_base",
    "provider",
    "base_url",
    "fallback_providers",
    "fallback_model*",
    "agent.max_turns",
    "agent.reasoning_effort",
    "timezone",
    "providers.*.api",
    "providers.*.url",
    "providers.*.base_url",
    "providers.*.api_key",
    "providers.*.key_env",
    "providers.*.name",
    "custom_providers",
    "personalities.*",
    "onboarding*",
)
_KEY_REASONS = {
    "mcp_servers*": MCP_SERVERS,
    **{
        f"{platform}.*": (NO_SUCH_CHANNEL_KEY, f"see docs/{kind}.md")
        for platform, kind in KINDS.items()
    },
    "platforms.*": (NO_SUCH_CHANNEL_KEY, "see docs/channels.md"),
    "gateway.platforms.*": (NO_SUCH_CHANNEL_KEY, "see docs/channels.md"),
    "stt*": (NO_SUCH_SPEECH_KEY, "see docs/voice.md"),
    "tts*": (NO_SUCH_SPEECH_KEY, "see docs/voice.md"),
    "voice*": (NO_SUCH_SPEECH_KEY, "see docs/voice.md"),
    "approvals*": ("Deskhand asks by its own rules", "see docs/policy.md"),
    "command_allowlist*": ("Deskhand asks by its own rules", "see docs/policy.md"),
    "memory.*": ("Deskhand has its own memory", "see docs/memory.md"),
}


def read(tree: Tree, now: float) -> ImportedHome:
    """All that this home holds; what cannot be read is in `broken`."""
    raw = _read_config(tree)
    env = read_env_variables(tree, "")
    keys = _convert_settings(tree, raw, env)
    _read_auth(tree, keys.secrets)
    convert_speech(tree, raw, keys)
    keys.raw = {"channels": convert_platforms(tree, raw, env, read_paired(tree))}
    channels, bots = convert_channels(tree.notes, keys, [AGENT])
    if channels:
        keys.config["channels"] = channels
    zone = str(raw.get("timezone") or "")
    jobs = _Jobs(tree, bots, zone, find_home_chats(raw, env))
    found_jobs = tuple(read_jobs(tree, "cron/jobs.json", jobs.make, {"": _JOB}))
    talks = tuple(_conversations(tree, bots))
    memories = tuple(_memories(tree))
    skills = tuple(_skills(tree))
    agent = AgentFound(AGENT, {}, tree.read_texts(".", ("SOUL.md",)))
    presets = tuple(_presets(raw))
    tree.leave_out_rest(REASONS)
    return ImportedHome(
        "hermes",
        "",
        str(tree.root),
        keys.config,
        keys.secrets,
        (agent,),
        (),  # those who may write stand in `allow_from` of their channel
        talks,
        found_jobs,
        memories,
        skills=skills,
        presets=presets,
        left_out=tree.notes.all_left_out(),
        changed=tree.notes.all_changed(),
        broken=tree.notes.all_broken(),
        trusted=tree.is_private(
            *(each for each in ("config.yaml", DATABASE, "memories") if tree.has(each))
        ),
    )


# ---------------------------------------------------------------------- settings


def _read_config(tree: Tree) -> dict[str, Any]:
    if not tree.has_file("config.yaml"):
        return {}
    try:
        return parse_data(tree.read_text("config.yaml"), tree.root / "config.yaml")
    except ConfigError as error:
        tree.note_unread("config.yaml", error)
        return {}


def _convert_settings(tree: Tree, raw: Mapping[str, Any], env: Mapping[str, str]) -> ImportedKeys:
    config: dict[str, Any] = {}
    secrets = take_env_keys(
        tree, {name: value for name, value in env.items() if not HANDLED_VARIABLES.fullmatch(name)}
    )
    for name, each in _providers(raw):
        add_address(config, name, each.get("api") or each.get("url") or each.get("base_url"))
        if each.get("api_key"):
            take_key(tree, secrets, provider_variable(name), each["api_key"])
    own: dict[str, Any] = {}
    if models := _models(raw):
        own["models"] = models
    agent = snake_fields(raw.get("agent"))
    if agent.get("max_turns"):
        own["steps"] = agent["max_turns"]
    if level := thinking_level(tree, "agent.reasoning_effort", agent.get("reasoning_effort")):
        own["thinking"] = level
    if own:
        config["defaults"] = own
    if raw.get("timezone"):
        config["timezone"] = raw["timezone"]
    used = (*_USED_KEYS, *list_channel_keys(), *list_speech_keys(raw))
    note_unused_keys(tree, raw, used, _KEY_REASONS)
    return ImportedKeys({}, {}, select_keys(tree, "config.yaml", config), secrets)


def _providers(raw: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, settings) of every provider; the one that the model names may stand beside it."""
    model = snake_fields(raw.get("model"))
    address = model.get("base_url") or model.get("api_base") or raw.get("base_url")
    provider = str(model.get("provider") or raw.get("provider") or "")
    if address and provider not in ("", "auto"):
        yield provider, {"base_url": address}
    for name, each in as_map(raw.get("providers")).items():
        yield name, snake_fields(each)
    for each in as_list(raw.get("custom_providers")):
        one = snake_fields(each)
        if one.get("name"):
            yield str(one["name"]), one


def _models(raw: Mapping[str, Any]) -> list[str]:
    """The models in their order: the first one, and those that stand in for it."""
    model = raw.get("model")
    one = {"default": model} if isinstance(model, str) else snake_fields(model)
    first = join_provider(
        one.get("default") or one.get("model") or one.get("name"),
        one.get("provider") or raw.get("provider"),
    )
    listed = raw.get("fallback_providers") or raw.get("fallback_model") or ()
    fallbacks = [snake_fields(each) for each in (listed if isinstance(listed, list) else [listed])]
    found = [first, *(join_provider(each.get("model"), each.get("provider")) for each in fallbacks)]
    return [name for name in dict.fromkeys(found) if name]


def _read_auth(tree: Tree, secrets: dict[str, str]) -> None:
    """Keys that were given to its command `auth`; who signed in has to do that again."""
    if not tree.has_file("auth.json"):
        return
    try:
        found = snake_fields(tree.read_json("auth.json"))
    except Unread as error:
        tree.note_unread("auth.json", error)
        return
    for name, pool in snake_fields(found.get("credential_pool")).items():
        for each in pool if isinstance(pool, list) else ():
            one = snake_fields(each)
            by_variable = str(one.get("source") or "").startswith("env:")
            if one.get("auth_type") == "api_key" and not by_variable:
                variable = provider_variable(name)
                if variable not in secrets:
                    take_key(tree, secrets, variable, one.get("access_token"))
    for name in snake_fields(found.get("providers")):
        tree.notes.leave_out(f"the sign-in to {name}", "signing in does not move", "sign in again")


def _presets(raw: Mapping[str, Any]) -> Iterator[ImportedFolder]:
    for name, each in as_map(raw.get("personalities")).items():
        text = each if isinstance(each, str) else snake_fields(each).get("system_prompt")
        if isinstance(text, str) and text.strip():
            yield ImportedFolder(name, {PRESET_FILE: text.encode()})


# ---------------------------------------------------------------------- conversations


def _conversations(tree: Tree, bots: Bots) -> Iterator[ImportedConversation]:
    if not tree.has_file(DATABASE):
        tree.notes.leave_out("conversations", "there is no state.db")
        return
    try:
        rows = SqliteRows(tree, DATABASE)
        try:
            sessions = {str(row[0]): row for row in rows.read("sessions", _SESSION, "started_at")}
            lines = _lines(tree, rows, sessions)
            note_unused_tables(tree, rows, _TABLES)
        finally:
            rows.close()
    except Unread as error:
        tree.note_unread(DATABASE, error)
        return
    last = {str(row[3]): str(row[0]) for row in sessions.values() if row[3]}
    for id_, row in sessions.items():
        if not lines[id_]:
            tree.notes.count_left_out("conversations", "there is no message in them")
            continue
        is_last = not row[3] or last[str(row[3])] == id_
        yield _make_conversation(tree, row, lines[id_], bots, is_last=is_last)


def _lines(
    tree: Tree, rows: SqliteRows, sessions: Mapping[str, tuple[Any, ...]]
) -> dict[str, list[JsonlRecord]]:
    """What was said in each conversation. A summary stands for what it follows, which is there as
    well; what was kept behind it is there twice."""
    lines: dict[str, list[JsonlRecord]] = {id_: [] for id_ in sessions}
    seen: dict[str, set[tuple[Any, ...]]] = {id_: set() for id_ in sessions}
    messages = list(rows.read("messages", _MESSAGE, "id"))
    summarised = {row[0] for row in messages if row[8]}
    summarised |= {id_ for id_, row in sessions.items() if row[10]}
    for session, role, content, call_id, calls, tool, at, active, compacted, _ in messages:
        if session not in lines:
            tree.notes.count_left_out("messages", "their conversation is not there any more")
            continue
        if active == 0 and not compacted:
            tree.notes.count_left_out("messages", "they were taken back there")
            continue
        text = _text_of(tree, content)
        once = (role, text, call_id, at)
        if session in summarised and (text.startswith(_SUMMARY) or once in seen[session]):
            continue
        seen[session].add(once)
        when = float(at) if isinstance(at, int | float) else None
        if role == "user":
            by = _speaker(sessions[session])
            lines[session].append(JsonlRecord("user", text, when, by=by))
        elif role == "assistant":
            found = None
            with suppress(ValueError, RecursionError, TypeError):
                found = parse_json(calls)
            lines[session].append(JsonlRecord("assistant", text, when, tool_calls=found))
        elif role == "tool":
            name = str(tool or "unknown")
            lines[session].append(
                JsonlRecord("tool", text, when, tool_call_id=str(call_id or ""), tool_name=name)
            )
        else:
            tree.notes.count_left_out(describe_role(role), FOR_THE_MODEL)
    return lines


def _speaker(row: tuple[Any, ...]) -> str:
    """Who spoke. Where several people read, only a name in the text says it."""
    _, source, user, _, chat, chat_type, *_ = row
    alone = chat_type == "dm" or (not chat_type and not str(chat or "").startswith("-"))
    return f"{KINDS.get(str(source), source)}:{user}" if user and alone else ""


def _text_of(tree: Tree, content: Any) -> str:
    text = content if isinstance(content, str) else ""
    if not text.startswith(_PARTS):
        return text
    try:
        parts = parse_json(text.removeprefix(_PARTS))
    except (ValueError, RecursionError):
        return text.removeprefix(_PARTS)
    said = [part for part in parts if isinstance(part, Mapping)] if isinstance(parts, list) else []
    if any(part.get("type") != "text" for part in said):
        tree.notes.count_left_out("files of messages", "conversations are imported without them")
    return "\n".join(str(part["text"]) for part in said if isinstance(part.get("text"), str))


def _make_conversation(
    tree: Tree,
    row: tuple[Any, ...],
    lines: list[JsonlRecord],
    bots: Bots,
    *,
    is_last: bool,
) -> ImportedConversation:
    id_, source, _, key, chat, chat_type, thread, started, title, *_ = row
    found = ChatFound()
    if chat:
        alone = chat_type == "dm"
        place = ForeignChat(str(source), str(chat), str(thread or ""))
        found = bots.find_chat(AGENT, place, alone=alone)
    if chat and found.place is None:
        tree.notes.note_past(str(id_), found.why)
    elif not is_last:
        tree.notes.note_past(str(id_), f"a later one goes on in {key}")
    job = re.fullmatch(r"cron_(.+)_\d{8}_\d{6}", str(id_))
    named = str(title or "")[:TITLE_CHARS]
    return ImportedConversation(
        str(id_),
        AGENT,
        tuple(lines),
        found.place if is_last else None,
        found.group or chat_type not in ("dm", None, ""),
        job[1] if job and source == "cron" else "",
        at=float(started) if isinstance(started, int | float) else None,
        options=SessionOptions(title=named) if named else None,
        own=str(source) in _OWN,
    )


# ---------------------------------------------------------------------- what it knows


def _memories(tree: Tree) -> Iterator[ImportedMemory]:
    """Its notes, an entry each, and the facts of its plugin for memory."""
    for name, text in tree.read_texts("memories", ("MEMORY.md", "USER.md")).items():
        entries = [" ".join(each.split()) for each in text.split("\n§\n")]
        tree.notes.change(f"memories/{name}", "each of its entries becomes a memory")
        yield from (ImportedMemory(each, "agent", AGENT) for each in entries if each)
    if not tree.has_file("memory_store.db"):
        return
    try:
        rows = SqliteRows(tree, "memory_store.db")
        try:
            for content, _, trust, created in rows.read(
                "facts", ("content", "fact_id", "trust_score", "created_at"), "fact_id"
            ):
                doubtful = isinstance(trust, int | float) and trust < 0.3
                at = None
                with suppress(ValueError):
                    at = datetime.fromisoformat(str(created)).replace(tzinfo=UTC).timestamp()
                yield ImportedMemory(str(content), "agent", AGENT, candidate=doubtful, at=at)
        finally:
            rows.close()
    except Unread as error:
        tree.note_unread("memory_store.db", error)


def _skills(tree: Tree) -> Iterator[ImportedFolder]:
    """Its skills, also those in a folder for their kind. Those that Hermes brought along are passed
    over."""
    brought = {
        line.partition(":")[0].strip()
        for text in tree.read_texts("skills", (".bundled_manifest",)).values()
        for line in text.splitlines()
    }
    folders = [
        entry.name
        for entry in tree.entries("skills")
        if entry.kind == "folder" and not entry.name.startswith((".", "_"))
    ]
    groups = [name for name in folders if not tree.has(f"skills/{name}/SKILL.md")]
    for folder in ("skills", *(f"skills/{name}" for name in groups)):
        for skill in read_skills(tree, folder):
            if skill.name in brought:
                tree.notes.count_left_out("skills", "they come with Hermes and are about it")
            else:
                yield skill


# ---------------------------------------------------------------------- jobs


class _Jobs:
    """Makes jobs of the entries in cron/jobs.json. `homes` are the chats by platform where its bots
    answer when nothing else is said."""

    def __init__(self, tree: Tree, bots: Bots, zone: str, homes: Mapping[str, str]) -> None:
        self._tree = tree
        self._bots = bots
        self._zone = zone
        self._homes = homes

    def make(self, each: Mapping[str, Any], name: str) -> Job | None:
        entry = snake_fields(each)
        called = f"job {entry.get('name') or name}"
        if entry.get("no_agent") or entry.get("script"):
            self._tree.notes.leave_out(
                called, "it runs a script of Hermes", "create it again: deskhand jobs add"
            )
            return None
        if entry.get("state") not in (None, "", "scheduled", "paused", "running"):
            self._tree.notes.leave_out(called, f"it is {entry['state']}")
            return None
        times = snake_fields(entry.get("repeat")).get("times")
        if times not in (None, 1):
            self._tree.notes.change(called, f"it is repeated, and not only {times} times")
        text, zone = self._schedule(snake_fields(entry.get("schedule")))
        model = join_provider(entry.get("model"), entry.get("provider"))
        return Job(
            name,
            str(entry.get("prompt") or ""),
            str(entry.get("name") or ""),
            text,
            zone,
            agent=AGENT,
            session="isolated",
            to=self._address(called, entry),
            models=(model,) if model else (),
            delete_after_run=times == 1,
            enabled=bool(entry.get("enabled", True)) and entry.get("state") != "paused",
        )

    def _schedule(self, schedule: Mapping[str, Any]) -> tuple[str, str]:
        kind = schedule.get("kind")
        if kind == "interval":
            return f"every {int(schedule.get('minutes') or 0)}m", ""
        if kind == "once":
            at = datetime.fromisoformat(str(schedule.get("run_at")))
            if at.tzinfo is None:
                at = at.replace(tzinfo=ZoneInfo(self._zone)) if self._zone else at.astimezone()
            return f"at {at.astimezone(UTC).isoformat()}", ""
        return str(schedule.get("expr") or ""), self._zone

    def _address(self, called: str, entry: Mapping[str, Any]) -> Address | None:
        """Where its answers go; None where they go nowhere. It may name several places: the first
        one that is here counts."""
        origin = snake_fields(entry.get("origin"))
        thread = origin.get("thread_id")
        from_here = f"{origin.get('platform')}:{origin.get('chat_id')}"
        homes = {platform: f"{platform}:{chat}" for platform, chat in self._homes.items()}
        places = {
            **homes,
            "origin": from_here + (f":thread:{thread}" if thread else ""),
            "all": next(iter(homes.values()), ""),
        }
        wanted = as_list(str(entry.get("deliver") or "local"))
        for each in wanted:
            place = self._bots.find_target(AGENT, parse_chat(places.get(each, each)))
            if place is not None:
                return place
        if wanted != ["local"]:
            self._tree.notes.change(
                called, f"its answers go nowhere: {', '.join(wanted)} is not in Deskhand"
            )
        return None
