"""Reads what openagent-core (0.1.1) leaves: agent.db, .env, prompts/, and its workspace with
.tasks/ and .agent/."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Literal

from ..assembly.prompt_presets import FILE_NAME as PRESET_FILE
from ..config.foreign_keys import OPENAGENT_TASKS
from ..tools.task_import import parse_openagent_tasks
from ..types.labels import Label
from ..types.options import TITLE_CHARS, SessionOptions
from .jsonl import JsonlRecord
from .model import (
    AgentFound,
    ImportedConversation,
    ImportedFolder,
    ImportedHome,
    ImportedMemory,
    ImportedTaskList,
)
from .operator_ai import WHY_EMPTY, note_skipped_messages, note_unused_tables
from .reading import parse_facts, parse_time, read_skills
from .safe_files import COPY_IT, KEEP, MCP_SERVERS, Tree, Unread, parse_json
from .settings import read_config_keys, read_env_variables, select_env_keys
from .sqlite_reader import SqliteRows

DATABASE = "agent.db"
AGENT = "openagent"
HANDLED = ("DEFAULT_PRESET", "PROMPTS_DIR", "DATABASE_URL", "skills_folder")
REASONS = {
    "*/.transcripts": (
        "whole conversations are imported, with the parts that were summarised",
        "",
    ),
    "*/.team": ("teammates belong to a conversation, and are taken in anew", ""),
    "mcp_servers.json": MCP_SERVERS,
    "workspace*": ("files of a workspace stay where they are", KEEP),
}
_TABLES = {"token_usage": ("past usage is not imported; Deskhand counts its own", "")}
_COLUMNS = ("id", "title", "created_at", "system_prompt", "preset", "enable_teams", "enable_tracing", "enable_approval",  # noqa: E501
    "enable_plan_mode", "enable_thinking", "thinking_effort", "updated_at")  # fmt: skip
_TASK = frozenset(
    {"id", "subject", "title", "description", "status", "blockedBy", "blocked_by", "blocks", "owner", "activeForm",  # noqa: E501
     "active", "metadata", "result"}
)  # fmt: skip
_BLOCKS = frozenset({"text", "tool_use", "tool_result"})


def read(tree: Tree, now: float) -> ImportedHome:
    """All that this home holds; what cannot be read is in `broken`."""
    keys = read_config_keys(tree, ".env", HANDLED)
    env = read_env_variables(tree, "")
    work = _resolve_folder(tree, "WORKSPACE_DIR", env.get("WORKSPACE_DIR", "workspace"))
    skills = _resolve_folder(tree, "SKILLS_DIR", env.get("SKILLS_DIR", "skills"))
    prompts = _resolve_folder(tree, "PROMPTS_DIR", env.get("PROMPTS_DIR", "prompts"))
    database = _resolve_database(tree, env.get("DATABASE_URL", ""))
    talks: tuple[ImportedConversation, ...] = ()
    if database and tree.has_file(database):
        try:
            talks = tuple(_conversations(tree, database))
        except Unread as error:
            tree.note_unread(database, error)
    facts = list(parse_facts(tree.read_texts(work, (".agent/memory.md",)))) if work else []
    if facts:
        tree.notes.change(f"{work}/.agent/memory.md", "each of its lines becomes a memory")
    tasks = tuple(_tasks(tree, f"{work}/.tasks")) if work else ()
    found_skills = tuple(read_skills(tree, skills)) if skills else ()
    presets = tuple(_presets(tree, prompts)) if prompts else ()
    tree.leave_out_rest({**REASONS, f"{work}*": REASONS["workspace*"]} if work else REASONS)
    agent = OPENAGENT_TASKS["defaults"] | (
        {"preset": env["DEFAULT_PRESET"]} if env.get("DEFAULT_PRESET") else {}
    )
    return ImportedHome(
        "openagent-core",
        "0.1",
        str(tree.root),
        keys.config | {"agents": {AGENT: agent}},
        keys.secrets | select_env_keys(env),
        (AgentFound(AGENT),),
        conversations=talks,
        memories=tuple(ImportedMemory(text, "agent", AGENT) for text in facts),
        skills=found_skills,
        tasks=tasks,
        presets=presets,
        left_out=tree.notes.all_left_out(),
        changed=tree.notes.all_changed(),
        broken=tree.notes.all_broken(),
        trusted=tree.is_private(database) if database and tree.has(database) else tree.is_private(),
    )


def _resolve_folder(tree: Tree, variable: str, named: str) -> str:
    """A folder that a variable names, from the home; '' where it lies elsewhere."""
    inner = tree.resolve_inside(named)
    if inner is None:
        tree.notes.leave_out(f"{variable}: {named}", "that folder is outside this home", COPY_IT)
    return inner or ""


def _resolve_database(tree: Tree, url: str) -> str:
    """The file of its database, from the home; '' where it is elsewhere."""
    if not url:
        return DATABASE
    kind, found, path = url.partition(":///")
    inner = tree.resolve_inside(path) if found and kind.startswith("sqlite") else None
    if inner is None:
        todo = "export it to an agent.db in this home, and import again"
        tree.notes.leave_out(
            "the database that DATABASE_URL names", "it is not a file in this home", todo
        )
    return inner or ""


# ---------------------------------------------------------------------- conversations


def _conversations(tree: Tree, database: str) -> Iterator[ImportedConversation]:
    rows = SqliteRows(tree, database)
    try:
        heads = {str(head[0]): head for head in rows.read("conversations", _COLUMNS, "created_at")}
        lines = _messages(tree, rows, heads)
        note_unused_tables(tree, rows, _TABLES)
    finally:
        rows.close()
    for key, (_, title, created, *held) in heads.items():
        if not lines.get(key):
            tree.notes.leave_out(f"the conversation {title or key}", WHY_EMPTY)
            continue
        options = _options(tree, key, str(title or ""), held)
        yield ImportedConversation(
            key, AGENT, tuple(lines[key]), at=parse_time(created), options=options
        )


def _messages(
    tree: Tree, rows: SqliteRows, heads: Mapping[str, Any]
) -> dict[str, list[JsonlRecord]]:
    """The lines of each conversation."""
    lines: dict[str, list[JsonlRecord]] = {}
    broken = orphans = 0
    for key, role, content, created, _ in rows.read(
        "messages", ("conversation_id", "role", "content", "created_at", "id"), "id"
    ):
        if str(key) not in heads:
            orphans += 1
            continue
        with suppress(ValueError, RecursionError, TypeError):
            lines.setdefault(str(key), []).extend(
                _convert_message(tree, str(role), parse_json(content), parse_time(created))
            )
            continue
        broken += 1
    note_skipped_messages(tree, broken, orphans)
    return lines


def _convert_message(
    tree: Tree, role: str, content: Any, at: float | None
) -> Iterator[JsonlRecord]:
    """A message as lines: the results of tools stand there as words of the person."""
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    blocks = [block for block in blocks if isinstance(block, Mapping)]
    for block in blocks:
        if block.get("type") not in _BLOCKS:
            tree.notes.count_unused_fields("messages", {str(block.get("type")): True}, ())
        if block.get("type") == "tool_result":
            yield JsonlRecord(
                "tool", block.get("content"), at, tool_call_id=str(block.get("tool_use_id") or "")
            )
    text = "\n".join(str(block["text"]) for block in blocks if isinstance(block.get("text"), str))
    if role == "assistant":
        calls = [
            {
                "id": block.get("id"),
                "name": block.get("name"),
                "arguments": block.get("input") or {},
            }
            for block in blocks
            if block.get("type") == "tool_use"
        ]
        yield JsonlRecord("assistant", text, at, tool_calls=calls or None)
    elif text:
        yield JsonlRecord("user" if role == "user" else role, text, at)


def _options(tree: Tree, key: str, title: str, held: list[Any]) -> SessionOptions:
    """How a conversation was held."""
    prompt, preset, teams, tracing, approval, plan, thinking, effort, _ = held
    if len(title) > TITLE_CHARS:
        tree.notes.change(f"the title {title}", f"a title has at most {TITLE_CHARS} characters")
    return SessionOptions(
        title=title[:TITLE_CHARS] or None,
        system_prompt=str(prompt) if prompt else None,
        preset=str(preset) if preset else None,
        teams=True if teams else None,
        tracing=True if tracing else None,
        approval=True if approval else None,
        plan_mode=True if plan else None,
        thinking=_thinking(tree, key, str(effort)) if thinking else None,
    )


def _thinking(tree: Tree, key: str, effort: str) -> Literal["low", "medium", "high", "max"]:
    match effort:
        case "low" | "medium" | "high" | "max":
            return effort
        case _:
            tree.notes.change(
                f"thinking_effort {effort} of {key}",
                "Deskhand knows low, medium, high and max: high",
            )
            return "high"


# ---------------------------------------------------------------------- files


def _tasks(tree: Tree, folder: str) -> Iterator[ImportedTaskList]:
    files: list[bytes] = []
    for entry in tree.entries(folder):
        inner = f"{folder}/{entry.name}"
        if entry.name.startswith("task_") and entry.name.endswith(".json") and tree.has_file(inner):
            try:
                row = tree.read_json(inner)
                files.append(tree.read_bytes(inner))
            except Unread as error:
                tree.note_unread(inner, error)
                continue
            tree.notes.count_unused_fields("tasks", row if isinstance(row, Mapping) else {}, _TASK)
    found = parse_openagent_tasks(files, Label("tool_local", source=f"openagent-core, {folder}"))
    for note in found.notes:
        tree.notes.change(folder, note)
    if found.tasks:
        yield ImportedTaskList("", found.tasks)


def _presets(tree: Tree, folder: str) -> Iterator[ImportedFolder]:
    """The presets in a folder: folders with a PROMPT.md."""
    for entry in tree.entries(folder):
        inner = f"{folder}/{entry.name}"
        if entry.kind == "folder" and tree.has_file(f"{inner}/{PRESET_FILE}"):
            found = tree.read_folder(inner)
            if found is not None:
                yield found
