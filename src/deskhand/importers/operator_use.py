"""Reads the home of operator-use (0.2.9): config.json, crons.json, and for each agent sessions,
memory and skills.

Its document puts sessions/ and workspace/ at the top of the home, its program workspaces/AGENT/
with sessions/ in each. Both are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from ..config.keys import set_value
from ..config.parse import parse_value
from ..speech.base import Use
from ..types.jobs import Job
from .channels import HANDLED, convert_channels
from .chat_addresses import KINDS, Bots, parse_chat
from .jsonl import JsonlRecord
from .model import AgentFound, ImportedConversation, ImportedHome, ImportedMemory
from .notes import FOR_THE_MODEL, describe_role
from .reading import (
    WORKSPACE_FILES,
    parse_facts,
    parse_time,
    read_jobs,
    read_notes,
    read_skills,
)
from .safe_files import Tree, Unread
from .settings import (
    ImportedKeys,
    as_map,
    note_unused_keys,
    read_config_keys,
    read_env_variables,
    section_at,
    take_env_keys,
)
from .speech import ForeignEngine, SpeechImport

REASONS = {
    "restart.json": (
        "what was to be done after a restart",
        "tell your agent, if it is still to be done",
    ),
    "operator.log*": ("logs of operator-use", ""),
    "logs": ("logs of operator-use", ""),
    "acp_sessions.json": ("Deskhand does not speak ACP", ""),
    "media": (
        "files of messages; conversations name them",
        "keep the folder if you want to open them",
    ),
    "*/tools/*.py": (
        "a tool for operator-use cannot run here",
        "rewrite it as a skill in Python: docs/extending.md",
    ),
    "tools/*.py": (
        "a tool for operator-use cannot run here",
        "rewrite it as a skill in Python: docs/extending.md",
    ),
    "*/tools": (
        "a tool for operator-use cannot run here",
        "rewrite it as a skill in Python: docs/extending.md",
    ),
    "*/.history*": ("older versions of a skill", ""),
}
PREFIX = "OPERATOR_"
_SPEECH: Mapping[str, Use] = {
    "stt": "hear",
    "stt_config": "hear",
    "tts": "say",
    "tts_config": "say",
}
"""Its sections for speech: STTConfig and TTSConfig in operator_use/config/service.py. Its example
has them in `agent`, and its command line reads the longer names, too."""
_SPEECH_KEYS = tuple(f"{where}{name}.*" for where in ("", "agent.") for name in _SPEECH)
_DAY = re.compile(r"\d{2}-\d{2}-\d{4}")
_LINE = frozenset({"role", "content", "id", "name", "params"})
_METADATA = frozenset({"type", "id", "created_at", "updated_at"})
_JOB = frozenset({"name", "enabled", "schedule", "payload", "delete_after_run"})
_SCHEDULE = frozenset({"mode", "interval_ms", "expr", "tz"})
_PAYLOAD = frozenset({"message", "deliver", "channel", "chat_id", "account_id"})


def read(tree: Tree, now: float) -> ImportedHome:
    """All that this home holds; what cannot be read is in `broken`."""
    env = read_env_variables(tree, "")
    keys = read_config_keys(tree, "config.json", (*HANDLED, *_SPEECH_KEYS), read_nested(env))
    _take_speech(tree, keys)
    names = list(keys.agents) or ["operator"]
    channels, bots = convert_channels(tree.notes, keys, names)
    if channels:
        keys.config["channels"] = channels
    homes = _agent_folders(tree, names, keys.agents)
    talks = [
        talk
        for name, inner in _session_files(tree, names, homes)
        if (talk := _read_conversation(tree, inner, name, bots)) is not None
    ]
    skills = {
        skill.name: skill
        for home in homes.values()
        for skill in read_skills(tree, f"{home}/skills")
    }
    agents = tuple(_agent(tree, name, homes.get(name, "")) for name in names)
    jobs = tuple(
        read_jobs(
            tree,
            "crons.json",
            lambda each, name: _job(each, name, bots, names),
            {"": _JOB, "schedule": _SCHEDULE, "payload": _PAYLOAD},
        )
    )
    memories = tuple(
        memory for name, home in homes.items() for memory in _memories(tree, name, home)
    )
    secrets = keys.secrets | take_env_keys(
        tree, {name: value for name, value in env.items() if not is_nested(name)}
    )
    tree.leave_out_rest(REASONS)
    return ImportedHome(
        "operator-use",
        "0.2",
        str(tree.root),
        keys.config,
        secrets,
        agents,
        (),  # those who may write stand in `allow_from` of their channel
        tuple(talks),
        jobs,
        memories,
        skills=tuple(skills.values()),
        left_out=tree.notes.all_left_out(),
        changed=tree.notes.all_changed(),
        broken=tree.notes.all_broken(),
        trusted=tree.is_private(
            "config.json", *(home for home in homes.values() if tree.has(home))
        ),
    )


def _take_speech(tree: Tree, keys: ImportedKeys) -> None:
    """What hears and speaks. The keys of these providers are among those of all providers."""
    speech = SpeechImport(tree.notes, keys.config.get("providers", {}))
    for name, use in _SPEECH.items():
        section = section_at(keys.raw, name)
        if not section:
            section = section_at(keys.raw, "agent", name)
        if not section:
            continue
        engine = ForeignEngine(
            where=name,
            off=not section.get("enabled"),
            provider=str(section.get("provider") or ""),
            model=str(section.get("model") or ""),
            voice=str(section.get("voice") or ""),
        )
        speech.take(use, engine)
        used = ("enabled", "provider", "model", "voice")
        note_unused_keys(tree, {name: section}, [f"{name}.{each}" for each in used])
    if speech.config:
        keys.config["speech"] = speech.config


def is_nested(variable: str) -> bool:
    """Whether this variable sets a key of its configuration:
    OPERATOR_PROVIDERS__OPENAI__API_KEY."""
    return variable.startswith(PREFIX) and "__" in variable


def read_nested(env: Mapping[str, str]) -> dict[str, Any]:
    """The keys that variables set; its configuration file counts before them."""
    found: dict[str, Any] = {}
    for name, value in env.items():
        if is_nested(name):
            set_value(found, name.removeprefix(PREFIX).lower().split("__"), parse_value(value))
    return found


def _agent_folders(tree: Tree, names: list[str], settings: Mapping[str, Any]) -> dict[str, str]:
    """Where each agent's files lie, from the home; those of the document in `workspace/`, of its
    first agent."""
    homes = {name: home for name in names if (home := _workspace(tree, name, settings.get(name)))}
    if names[0] not in homes and tree.has_folder("workspace"):
        homes[names[0]] = "workspace"
    return homes


def _workspace(tree: Tree, name: str, settings: Any) -> str:
    """Where an agent's files lie, from the home; '' where they do not lie in it."""
    given = settings.get("workspace") if isinstance(settings, Mapping) else None
    inner = tree.resolve_inside(str(given) if given else f"workspaces/{name}")
    if inner is None:
        where = (
            f"its workspace {str(given)!r} is elsewhere"
            if given
            else "its name is not a valid folder name"
        )
        tree.notes.leave_out(f"the files of agent {name}", where, "copy what you want to keep")
        return ""
    return inner if tree.has_folder(inner) else ""


def _session_files(
    tree: Tree, names: list[str], homes: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """(agent, file) of every session; those at the top of the home are of its first agent."""
    folders = [(name, f"{home}/sessions") for name, home in homes.items()]
    for name, folder in dict.fromkeys([*folders, (names[0], "sessions")]):
        for entry in tree.entries(folder):
            inner = f"{folder}/{entry.name}"
            if entry.name.endswith(".jsonl"):
                yield name, inner
            elif entry.kind == "folder" and _DAY.fullmatch(entry.name):
                # Later versions have a folder for each day.
                for each in tree.entries(inner):
                    if each.name.endswith(".jsonl"):
                        yield name, f"{inner}/{each.name}"


# ---------------------------------------------------------------------- conversations


def _read_conversation(
    tree: Tree, inner: str, agent: str, bots: Bots
) -> ImportedConversation | None:
    name = inner.rpartition("/")[2].removesuffix(".jsonl")
    key = ""
    lines = list[JsonlRecord]()
    at: float | None = None
    if not tree.has_file(inner):
        return None
    try:
        for found in tree.read_json_lines(inner):
            if found.get("type") == "metadata":
                key = str(found.get("id") or "")
                at = parse_time(found.get("created_at"))
                tree.notes.count_unused_fields("sessions", found, _METADATA)
            else:
                platform = key.partition(":")[0] or name.partition("_")[0]
                lines += _convert_message(tree, found, at, platform)
    except Unread as error:
        tree.note_unread(inner, error)
        return None
    if not lines:
        tree.leave_out(inner, "there is no message in it")
        return None
    key = key or name.replace("_", ":")
    found_chat = bots.find_chat(agent, parse_chat(key))
    if found_chat.place is None:
        tree.notes.note_past(key, found_chat.why)
    return ImportedConversation(key, agent, tuple(lines), found_chat.place, found_chat.group)


def _convert_message(
    tree: Tree, found: Mapping[str, Any], at: float | None, platform: str
) -> Iterator[JsonlRecord]:
    """A message as lines. A tool's has its call in it."""
    role = found.get("role")
    about = as_map(found.get("metadata"))
    content = found.get("content")
    text = content if isinstance(content, str) else ""
    tree.notes.count_unused_fields(
        "messages in sessions", found, _LINE | {"metadata"} | ({"content"} if text else set())
    )
    tree.notes.count_unused_fields("messages in sessions (metadata)", about, {"user_id"})
    if role == "human":
        user = about.get("user_id")
        by = f"{KINDS.get(platform, platform)}:{user}" if user else ""
        yield JsonlRecord("user", text, at, by=by)
    elif role == "ai" and text:
        yield JsonlRecord("assistant", text, at)
    elif role == "ai":
        tree.notes.count_left_out("replies without text", "there is nothing to read in them")
    elif role == "tool":
        call = str(found.get("id") or "call")
        name = str(found.get("name") or "unknown")
        params = found.get("params")
        calls = [
            {"id": call, "name": name, "arguments": params if isinstance(params, dict) else {}}
        ]
        yield JsonlRecord("assistant", "", at, tool_calls=calls)
        yield JsonlRecord("tool", text, at, tool_call_id=call, tool_name=name)
    else:
        tree.notes.count_left_out(describe_role(role), FOR_THE_MODEL)


# ---------------------------------------------------------------------- what it is told, and knows


def _agent(tree: Tree, name: str, home: str) -> AgentFound:
    """What it is told, and what it has written down; templates that say nothing of a person stay
    behind."""
    if not home:
        return AgentFound(name)
    return AgentFound(
        name, {}, tree.read_texts(home, WORKSPACE_FILES), dict(read_notes(tree, home))
    )


def _memories(tree: Tree, agent: str, home: str) -> Iterator[ImportedMemory]:
    for name in ("memory/MEMORY.md", "MEMORY.md"):
        facts = list(parse_facts(tree.read_texts(home, (name,))))
        if facts:
            tree.notes.change(f"{home}/{name}", "each of its lines becomes a memory")
        yield from (ImportedMemory(text, "agent", agent) for text in facts)
    for entry in tree.entries(f"{home}/memory"):
        folder = f"{home}/memory/{entry.name}"
        if entry.kind == "folder" and tree.has_file(f"{folder}/summary.md"):
            for text in tree.read_texts(folder, ("summary.md",)).values():
                at = parse_time(entry.name)
                yield ImportedMemory(
                    f"{entry.name}: {' '.join(text.split())}", "agent", agent, at=at
                )


# ---------------------------------------------------------------------- jobs


def _job(each: Mapping[str, Any], name: str, bots: Bots, agents: list[str]) -> Job:
    schedule = each.get("schedule") or {}
    payload = each.get("payload") or {}
    mode = str(schedule.get("mode") or "cron")
    text = str(schedule.get("expr") or "* * * * *")
    once = mode == "at"
    if mode == "every":
        text = f"every {int(schedule.get('interval_ms') or 0)}ms"
    elif once and (due := each.get("state", {}).get("next_run_at_ms")):
        text = f"at {datetime.fromtimestamp(int(due) / 1000, UTC).isoformat()}"
    platform = str(payload.get("channel") or "")
    chat = str(payload.get("chat_id") or "")
    account = str(payload.get("account_id") or "")
    if account in agents:
        agent = account
    else:
        with_bot = bots.all_of(KINDS.get(platform, ""))
        agent = next(iter(with_bot), "")
    to = bots.find_target(agent, parse_chat(f"{platform}:{chat}")) if chat else None
    return Job(
        name,
        str(payload.get("message") or ""),
        str(each.get("name") or ""),
        text,
        "" if mode == "every" else str(schedule.get("tz") or "UTC"),
        agent=agent,
        kind="deliver" if payload.get("deliver") else "prompt",
        session="isolated",
        to=to,
        delete_after_run=bool(each.get("delete_after_run")) or once,
        enabled=bool(each.get("enabled", True)),
    )
