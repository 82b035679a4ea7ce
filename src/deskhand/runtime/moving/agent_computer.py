"""Reads the home of agent_computer: config.json, sessions/*.jsonl and *.tasks.json, and its workspace."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from ...tools.task_import import of_computer
from ...types.errors import JobInvalid
from ...types.jobs import Job, checked
from ...types.labels import Label
from ..transcript import Line
from .found import AgentFound, Folder, Found, JobFound, Memory, Talk, Tasks
from .operator_ai import WORKSPACE_FILES
from .operator_use import job_name
from .settings import keys_of, variables
from .tree import FILE_BYTES, Tree, Unread

_NOTE = re.compile(r"^\*Source: session .*\*$")


def read(tree: Tree, now: float) -> Found:
    """All that this home holds. Raises Unread where nothing of it can be read."""
    keys = keys_of(tree, "config.json")
    agent = keys.raw.get("agent")
    name = job_name(str(agent.get("id") or "main"), set()) if isinstance(agent, Mapping) else "main"
    sessions = _inner(tree, keys.raw, "sessions", "directory")
    work = _inner(tree, keys.raw, "agent", "workspace", "workspace")
    talks, tasks = list[Talk](), list[Tasks]()
    for entry in tree.entries(sessions) if sessions else ():
        key = entry.name.removesuffix(".jsonl")
        if entry.kind == "file" and key != entry.name:
            if lines := _read(tree, f"{sessions}/{entry.name}"):
                job = key.removeprefix("cron-") if key.startswith("cron-") else ""
                talks.append(Talk(key, name, tuple(lines), job=job))
        elif entry.kind == "file" and entry.name.endswith(".tasks.json"):
            tasks += _tasks(tree, f"{sessions}/{entry.name}", entry.name.removesuffix(".tasks.json"))
    for what in ("memory.db", "index.json"):
        if work and tree.has(f"{work}/memory/{what}"):
            tree.leave(f"{work}/memory/{what}", "it is an index of what is taken; Deskhand makes its own")
    files = tree.texts(work, WORKSPACE_FILES) if work else {}
    config = {key: value for key, value in keys.config.items() if key != "agents"}
    return Found(
        "agent_computer",
        "",
        str(tree.root),
        config,
        keys.secrets | variables(tree, ""),
        (AgentFound(name, {}, files),),
        talks=tuple(talks),
        jobs=tuple(_jobs(tree, f"{work}/cron.json")) if work else (),
        memories=tuple(_memories(tree, name, f"{work}/memory")) if work else (),
        skills=tuple(_skills(tree, f"{work}/memory/skills", name)) if work else (),
        tasks=tuple(tasks),
        left=tree.all_left(),
        trusted=tree.private(*(each for each in ("config.json", sessions, work) if each and tree.has(each))),
    )


def _inner(tree: Tree, raw: Mapping[str, Any], section: str, key: str, usual: str = "sessions") -> str:
    """A folder that the configuration names, from the home; '' where it lies elsewhere."""
    given = raw.get(section)
    named = str(given.get(key) or usual) if isinstance(given, Mapping) else usual
    path = Path(named).expanduser()
    inner = path.relative_to(tree.root) if path.is_absolute() and path.is_relative_to(tree.root) else path
    if inner.is_absolute() or ".." in inner.parts:
        tree.leave(f"{section} in {named!r}", "that folder lies outside this home")
        return ""
    return str(PurePosixPath(inner))


def _read(tree: Tree, inner: str) -> list[Line]:
    try:
        return _lines(tree.lines(inner))
    except Unread as error:
        tree.leave(inner, str(error))
        return []


def _lines(found: Iterator[dict[str, Any]]) -> list[Line]:
    """Its lines as ours: what a reply used stands before it there, and behind it with us."""
    lines: list[Line] = []
    used: Line | None = None
    for each in found:
        role, content = each.get("role"), each.get("content")
        when = each.get("timestamp")
        at = float(when) if isinstance(when, int | float) else None
        if role == "meta":
            used = Line("meta", content, at)
        elif role == "assistant":
            inner = content if isinstance(content, Mapping) else {"content": content}
            text = inner.get("content")
            lines.append(
                Line("assistant", text if isinstance(text, str) else "", at, tool_calls=inner.get("tool_calls"))
            )
            lines += [used] if used else []
            used = None
        elif role == "user":
            lines.append(Line("user", content, at))
        elif role == "tool":
            call, tool = str(each.get("tool_call_id") or ""), str(each.get("tool_name") or "unknown")
            lines.append(Line("tool", content, at, tool_call_id=call, tool_name=tool))
    return lines


def _tasks(tree: Tree, inner: str, talk: str) -> Iterator[Tasks]:
    try:
        found = of_computer(tree.data(inner, FILE_BYTES), Label("tool_local", source=f"agent_computer, {talk}"))
    except Unread as error:
        tree.leave(inner, str(error))
        return
    for note in found.notes:
        tree.leave(f"all of {inner}", note)
    if found.tasks:
        yield Tasks(talk, found.tasks)


def _memories(tree: Tree, agent: str, folder: str) -> Iterator[Memory]:
    """The sections of knowledge.md and learnings.md, each once."""
    said: set[str] = set()
    for text in tree.texts(folder, ("knowledge.md", "learnings.md")).values():
        for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
            head, _, body = section.partition("\n")
            rest = " ".join(
                line.strip() for line in body.splitlines() if line.strip() and not _NOTE.match(line.strip())
            )
            fact = f"{head.strip()}: {rest}" if rest else head.strip()
            if fact and fact not in said:
                said.add(fact)
                yield Memory(fact, "agent", agent)


def _skills(tree: Tree, folder: str, agent: str) -> Iterator[Folder]:
    for entry in tree.entries(folder):
        if entry.kind == "file" and entry.name.endswith(".py"):
            try:
                yield Folder(entry.name.removesuffix(".py"), {entry.name: tree.data(f"{folder}/{entry.name}")}, agent)
            except Unread as error:
                tree.leave(f"{folder}/{entry.name}", str(error))


def _jobs(tree: Tree, inner: str) -> Iterator[JobFound]:
    if not tree.has(inner):
        return
    try:
        found = tree.json(inner)
    except Unread as error:
        tree.leave(inner, str(error))
        return
    listed = found if isinstance(found, list) else found.get("jobs") if isinstance(found, dict) else None
    taken: set[str] = set()
    for each in listed if isinstance(listed, list) else ():
        if not isinstance(each, Mapping):
            continue
        name = job_name(str(each.get("id") or each.get("name") or "job"), taken)
        try:
            yield JobFound(checked(_job(each, name)))
        except JobInvalid as error:
            tree.leave(f"{inner}: {name}", str(error))


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
