"""Reads what openagent-core (0.1.1) leaves: agent.db, .env, and its workspace with .tasks/ and .agent/memory.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from ...tools.task_import import of_openagent
from ...types.labels import Label
from ..aliases import OPENAGENT_TASKS
from ..transcript import Line
from .found import AgentFound, Found, Memory, Talk, Tasks
from .operator_ai import moment, skills_in
from .operator_use import facts_in
from .rows import Rows
from .settings import Keys, all_variables, keys_in, keys_of
from .tree import Tree, Unread, parsed

DATABASE, AGENT = "agent.db", "openagent"


def read(tree: Tree, now: float) -> Found:
    """All that this home holds. Raises Unread where nothing of it can be read."""
    env = all_variables(tree, "")
    keys = keys_of(tree, ".env") if tree.has(".env") else Keys()
    work = _inner(tree, env.get("WORKSPACE_DIR", "workspace"))
    talks: tuple[Talk, ...] = ()
    try:
        talks = tuple(_talks(tree))
    except Unread as error:
        tree.leave(DATABASE, str(error))
    memory = tree.texts(work, (".agent/memory.md",)) if work else {}
    skills = _inner(tree, env.get("SKILLS_DIR", "skills"))
    if work and len(tree.entries(work)) > sum(tree.has(f"{work}/{name}") for name in (".agent", ".tasks")):
        tree.leave(f"files in {work}", "they stay where they are: copy what you want to keep")
    return Found(
        "openagent-core",
        "0.1",
        str(tree.root),
        keys.config | {"agents": {AGENT: OPENAGENT_TASKS["defaults"]}},
        keys.secrets | keys_in(env),
        (AgentFound(AGENT),),
        talks=talks,
        memories=tuple(Memory(text, "agent", AGENT) for text in facts_in(memory)),
        skills=tuple(skills_in(tree, skills)) if skills else (),
        tasks=tuple(_tasks(tree, f"{work}/.tasks")) if work else (),
        left=tree.all_left(),
        trusted=tree.private(DATABASE) if tree.has(DATABASE) else tree.private(),
    )


def _inner(tree: Tree, named: str) -> str:
    path = Path(named).expanduser()
    inner = path.relative_to(tree.root) if path.is_absolute() and path.is_relative_to(tree.root) else path
    if inner.is_absolute() or ".." in inner.parts:
        tree.leave(f"the folder {named!r}", "it lies outside this home")
        return ""
    return str(PurePosixPath(inner))


def _talks(tree: Tree) -> Iterator[Talk]:
    rows = Rows(tree, DATABASE)
    try:
        lines: dict[str, list[Line]] = {}
        broken = 0
        for key, role, content, created, _ in rows.read(
            "messages", ("conversation_id", "role", "content", "created_at", "id"), "id"
        ):
            with suppress(ValueError, RecursionError, TypeError):
                lines.setdefault(str(key), []).extend(_lines(str(role), parsed(content), moment(created)))
                continue
            broken += 1
        if broken:
            tree.leave(f"{broken} messages", "they cannot be read; the rest of their conversations is taken")
        heads = [str(key) for key, _ in rows.read("conversations", ("id", "title"), "created_at")]
    finally:
        rows.close()
    for key in heads:
        if key in lines:
            yield Talk(key, AGENT, tuple(lines[key]))


def _lines(role: str, content: Any, at: float | None) -> Iterator[Line]:
    """A message as lines: the results of tools stand there as words of the person."""
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    blocks = [block for block in blocks if isinstance(block, Mapping)]
    for block in blocks:
        if block.get("type") == "tool_result":
            yield Line("tool", block.get("content"), at, tool_call_id=str(block.get("tool_use_id") or ""))
    text = "\n".join(str(block["text"]) for block in blocks if isinstance(block.get("text"), str))
    if role == "assistant":
        calls = [
            {"id": block.get("id"), "name": block.get("name"), "arguments": block.get("input") or {}}
            for block in blocks
            if block.get("type") == "tool_use"
        ]
        yield Line("assistant", text, at, tool_calls=calls or None)
    elif text:
        yield Line("user", text, at)


def _tasks(tree: Tree, folder: str) -> Iterator[Tasks]:
    files: list[bytes] = []
    for entry in tree.entries(folder):
        if entry.kind == "file" and entry.name.startswith("task_") and entry.name.endswith(".json"):
            try:
                files.append(tree.data(f"{folder}/{entry.name}"))
            except Unread as error:
                tree.leave(f"{folder}/{entry.name}", str(error))
    found = of_openagent(files, Label("tool_local", source=f"openagent-core, {folder}"))
    for note in found.notes:
        tree.leave(f"all of {folder}", note)
    if found.tasks:
        yield Tasks("", found.tasks)
