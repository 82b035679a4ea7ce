"""Reads the home of agent_computer: config.json, sessions/*.jsonl and *.tasks.json, and its
workspace."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..tools.task_import import parse_computer_tasks
from ..types.jobs import Job
from ..types.labels import Label
from .agent_computer_tools import HANDLED, make_rules, merge_providers
from .jsonl import JsonlRecord
from .model import (
    AgentFound,
    ImportedConversation,
    ImportedFolder,
    ImportedHome,
    ImportedMemory,
    ImportedTaskList,
    format_count,
)
from .notes import FOR_THE_MODEL, describe_role
from .reading import WORKSPACE_FILES, read_jobs, unique_job_name
from .safe_files import COPY_IT, Tree, Unread, parse_json, to_utf8
from .settings import ImportedKeys, read_config_keys, read_env_keys
from .sqlite_reader import SqliteRows

REASONS = {
    "logs*": ("logs of agent_computer", ""),
    "*.py": ("the program of agent_computer itself", ""),
    "tools": ("the program of agent_computer itself", ""),
    "web": ("the program of agent_computer itself", ""),
    "*/memory/index.json": (
        "it lists the sessions that were reviewed; Deskhand reviews its own",
        "",
    ),
    "sessions/*.archive*": (
        "an archived conversation: its messages are not kept as such",
        "keep it where it is",
    ),
}
_NOTE = re.compile(r"^\*Source: session .*\*$")
_LINE = frozenset({"role", "content", "timestamp", "tool_call_id", "tool_name"})
_REPLY = frozenset({"role", "content", "tool_calls"})
_USED = frozenset({"usage", "model"})
_JOB = frozenset({"id", "name", "schedule", "prompt", "session_id", "enabled"})
_TASK = frozenset(
    {
        "id",
        "title",
        "description",
        "status",
        "parent_id",
        "result",
        "node_type",
        "depends_on",
        "config",
        "owner",
    }
)


def read(tree: Tree, now: float) -> ImportedHome:
    """All that this home holds; what cannot be read is in `broken`."""
    keys = read_config_keys(tree, "config.json", HANDLED)
    agent = keys.raw.get("agent")
    agent = agent if isinstance(agent, Mapping) else {}
    name = unique_job_name(str(agent.get("id") or "main"), set())
    sessions = _resolve_folder(tree, keys.raw, "sessions", "directory", usual="sessions")
    work = _resolve_folder(tree, keys.raw, "agent", "workspace", usual="workspace")
    talks = tuple(_conversations(tree, sessions, name))
    tasks = tuple(_tasks(tree, sessions))
    memories = tuple(_memories(tree, name, f"{work}/memory")) if work else ()
    jobs = (
        tuple(read_jobs(tree, f"{work}/cron.json", _job, {"": _JOB}, ("id", "name")))
        if work
        else ()
    )
    skills = tuple(_skills(tree, f"{work}/memory/skills", name)) if work else ()
    files = tree.read_texts(work, WORKSPACE_FILES) if work else {}
    config = _config(tree, keys, name)
    secrets = keys.secrets | read_env_keys(tree, "")
    tree.leave_out_rest(REASONS)
    return ImportedHome(
        "agent_computer",
        "",
        str(tree.root),
        config,
        secrets,
        (AgentFound(name, {}, files),),
        conversations=talks,
        jobs=jobs,
        memories=memories,
        skills=skills,
        tasks=tasks,
        left_out=tree.notes.all_left_out(),
        changed=tree.notes.all_changed(),
        broken=tree.notes.all_broken(),
        trusted=tree.is_private(
            *(each for each in ("config.json", sessions, work) if each and tree.has(each))
        ),
    )


def _config(tree: Tree, keys: ImportedKeys, agent: str) -> dict[str, Any]:
    """Its keys as ours, with its rules about tools."""
    config = {key: value for key, value in keys.config.items() if key not in ("agents", "policy")}
    if keys.raw:
        config["policy"] = make_rules(tree.notes, keys.raw, agent)
    if found := merge_providers(tree.notes, keys, config.get("providers", {})):
        config["providers"] = found
    return config


def _resolve_folder(
    tree: Tree, raw: Mapping[str, Any], section: str, key: str, *, usual: str
) -> str:
    """A folder that the configuration names, from the home; '' where it lies elsewhere."""
    given = raw.get(section)
    named = str(given.get(key) or usual) if isinstance(given, Mapping) else usual
    inner = tree.resolve_inside(named)
    if inner is None:
        tree.notes.leave_out(
            f"{section}.{key}: {named}", "that folder is outside this home", COPY_IT
        )
        return ""
    tree.has_folder(inner)
    return inner


# ---------------------------------------------------------------------- conversations


def _conversations(tree: Tree, sessions: str, agent: str) -> Iterator[ImportedConversation]:
    for entry in tree.entries(sessions) if sessions else ():
        key = entry.name.removesuffix(".jsonl")
        if not entry.name.endswith(".jsonl"):
            continue
        inner = f"{sessions}/{entry.name}"
        if not tree.has_file(inner):
            continue
        if lines := _read_session(tree, inner):
            job = key.removeprefix("cron-") if key.startswith("cron-") else ""
            yield ImportedConversation(key, agent, tuple(lines), job=job)
        else:
            tree.leave_out(inner, "there is no message in it")


def _read_session(tree: Tree, inner: str) -> list[JsonlRecord]:
    try:
        return _convert_lines(tree, tree.read_json_lines(inner))
    except Unread as error:
        tree.note_unread(inner, error)
        return []


def _convert_lines(tree: Tree, found: Iterator[dict[str, Any]]) -> list[JsonlRecord]:
    """Its lines as ours: what a reply used stands before it there, and behind it with us."""
    lines: list[JsonlRecord] = []
    used: JsonlRecord | None = None
    for each in found:
        role = each.get("role")
        content = each.get("content")
        when = each.get("timestamp")
        at = float(when) if isinstance(when, int | float) else None
        tree.notes.count_unused_fields("messages in sessions", each, _LINE)
        if role == "meta":
            used = JsonlRecord("meta", content, at)
            tree.notes.count_unused_fields(
                "notes on replies in sessions",
                content if isinstance(content, Mapping) else {},
                _USED,
            )
        elif role == "assistant":
            inner = content if isinstance(content, Mapping) else {"content": content}
            tree.notes.count_unused_fields("replies in sessions", inner, _REPLY)
            text = inner.get("content")
            lines.append(
                JsonlRecord(
                    "assistant",
                    text if isinstance(text, str) else "",
                    at,
                    tool_calls=inner.get("tool_calls"),
                )
            )
            lines += [used] if used else []
            used = None
        elif role == "user":
            lines.append(JsonlRecord("user", content, at))
        elif role == "tool":
            call = str(each.get("tool_call_id") or "")
            tool = str(each.get("tool_name") or "unknown")
            lines.append(JsonlRecord("tool", content, at, tool_call_id=call, tool_name=tool))
        else:
            tree.notes.count_left_out(describe_role(role), FOR_THE_MODEL)
    return lines


def _tasks(tree: Tree, sessions: str) -> Iterator[ImportedTaskList]:
    for entry in tree.entries(sessions) if sessions else ():
        inner = f"{sessions}/{entry.name}"
        if not entry.name.endswith(".tasks.json") or not tree.has_file(inner):
            continue
        talk = entry.name.removesuffix(".tasks.json")
        try:
            data = to_utf8(tree.read_bytes(inner, 100_000_000))
            raw = _parse_tasks_file(inner, data)
        except Unread as error:
            tree.note_unread(inner, error)
            continue
        found = parse_computer_tasks(data, Label("tool_local", source=f"agent_computer, {talk}"))
        for note in found.notes:
            tree.notes.change(inner, note)
        rows = raw.get("tasks") if isinstance(raw, Mapping) else raw
        for row in rows if isinstance(rows, list) else ():
            tree.notes.count_unused_fields("tasks", row if isinstance(row, Mapping) else {}, _TASK)
        if found.tasks:
            yield ImportedTaskList(talk, found.tasks)


def _parse_tasks_file(inner: str, data: bytes) -> Any:
    try:
        return parse_json(data)
    except (ValueError, RecursionError) as error:
        raise Unread(f"{inner}: it is not valid JSON: {error}") from error


# ---------------------------------------------------------------------- what it knows


def _memories(tree: Tree, agent: str, folder: str) -> Iterator[ImportedMemory]:
    """The sections of knowledge.md and learnings.md, each once, and what only the index beside them
    still has."""
    facts: dict[str, str] = {}
    for name, text in tree.read_texts(folder, ("knowledge.md", "learnings.md")).items():
        sections = list(_sections(text))
        facts |= {fact: title for title, fact in sections}
        if sections:
            tree.notes.change(f"{folder}/{name}", "each of its sections becomes a memory")
    titles = {_normalize_title(title) for title in facts.values()}
    for title, fact in _read_index(tree, f"{folder}/memory.db"):
        if _normalize_title(title) not in titles:
            facts.setdefault(fact, title)
    yield from (ImportedMemory(fact, "agent", agent) for fact in facts if fact)


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """(title, fact) of each section."""
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        head, _, body = section.partition("\n")
        rest = " ".join(
            line.strip()
            for line in body.splitlines()
            if line.strip() and not _NOTE.match(line.strip())
        )
        yield head.strip(), f"{head.strip()}: {rest}" if rest else head.strip()


def _normalize_title(text: str) -> str:
    return " ".join(text.lower().split())


def _read_index(tree: Tree, inner: str) -> Iterator[tuple[str, str]]:
    """(title, fact) of what stands in its search index."""
    if not tree.has_file(inner):
        return
    summaries = 0
    try:
        rows = SqliteRows(tree, inner)
        try:
            for title, content, kind, *_ in rows.read(
                "memories",
                ("title", "content", "source_type", "source_id", "embedding", "created_at", "id"),
                "id",
            ):
                if kind == "session_summary":
                    summaries += 1
                elif kind != "skill":
                    yield str(title), f"{title}: {' '.join(str(content).split())}"
        finally:
            rows.close()
    except Unread as error:
        tree.note_unread(inner, error)
    tree.notes.leave_out(f"embeddings in {inner}", "Deskhand makes its own")
    if summaries:
        tree.notes.leave_out(
            f"{format_count(summaries, 'summary')} of sessions in {inner}",
            "the conversations themselves are imported",
        )


def _skills(tree: Tree, folder: str, agent: str) -> Iterator[ImportedFolder]:
    for entry in tree.entries(folder):
        inner = f"{folder}/{entry.name}"
        if entry.name.endswith(".py") and tree.has_file(inner):
            try:
                yield ImportedFolder(
                    entry.name.removesuffix(".py"), {entry.name: tree.read_bytes(inner)}, agent
                )
            except Unread as error:
                tree.note_unread(inner, error)


# ---------------------------------------------------------------------- jobs


def _job(each: Mapping[str, Any], name: str) -> Job:
    session = str(each.get("session_id") or f"cron-{name}")
    return Job(
        name,
        str(each.get("prompt") or ""),
        str(each.get("name") or ""),
        str(each.get("schedule") or "every 1h"),
        "UTC",
        session=session,
        enabled=bool(each.get("enabled", True)),
    )
