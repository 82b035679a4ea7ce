"""What a tool of an MCP server is said to be, and what has changed of that. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal

import msgspec

from ..tools.documents.invisible_characters import escape_invisible
from ..types.messages import clean_text

SEPARATOR = "__"
PREFIX = f"mcp{SEPARATOR}"
MAX_NAME_CHARS = 64
"""The longest name of a tool that all providers take."""
MAX_DEFINITION_BYTES = 32_000
MAX_TOOLS = 500
LOCKED = ""
"""Stands for the server itself among the names of its tools: from then on, nothing is accepted
unseen, also where it had no tools."""
MAX_DESCRIPTION_CHARS = 2_000
MAX_SHOWN_LINES = 2_000
"""So many lines of a definition are compared for people."""
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
ToolState = Literal["accepted", "changed", "new"]


class ToolDefinition(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool as its server describes it; `parameters` and `output` are JSON schemas. What it says
    of itself, as that it only reads, is shown to people and counts for nothing else."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    output: dict[str, Any] = {}
    annotations: dict[str, Any] = {}


class KnownTool(msgspec.Struct, frozen=True):
    """A tool of a server: the definition that a person `accepted`, and the one that the server has
    now, where that is another."""

    server: str
    name: str
    accepted: ToolDefinition | None
    found: ToolDefinition | None

    @property
    def state(self) -> ToolState:
        if self.accepted is None:
            return "new"
        return "accepted" if self.found is None else "changed"


class LockChange(msgspec.Struct, frozen=True):
    """What is to be stored of a tool: `accept` says that this definition holds, else it is what was
    found; None is the same as what holds."""

    name: str
    definition: ToolDefinition | None
    accept: bool


def make_tool_name(server: str, tool: str) -> str:
    """The name under which models call it. One that is too long, or has other characters, ends with
    a piece of its hash: two tools never have the same."""
    plain = f"{PREFIX}{server}{SEPARATOR}{tool}"
    name = _FOREIGN.sub("_", plain)
    if name == plain and len(name) <= MAX_NAME_CHARS:
        return name
    mark = sha256(plain.encode()).hexdigest()[:8]
    return f"{name[: MAX_NAME_CHARS - 9]}_{mark}"


def compare_with_lock(
    server: str, known: Iterable[KnownTool], found: Sequence[ToolDefinition], *, is_locked: bool
) -> list[LockChange]:
    """What has to be stored, now that the server has these tools. The first time all are accepted:
    whoever has added the server has seen them. Later, once it `is_locked`, only what is the same
    stays."""
    before = {tool.name: tool for tool in known if tool.server == server}
    if not is_locked:
        first = LockChange(LOCKED, ToolDefinition(LOCKED), accept=True)
        return [first, *(LockChange(each.name, each, accept=True) for each in found)]
    changes = []
    for each in found:
        tool = before.pop(each.name, KnownTool(server, each.name, None, None))
        now = None if each == tool.accepted else each
        if now != tool.found:
            changes.append(LockChange(each.name, now, accept=False))
    # What is gone may come back as it was: nothing is to be asked then.
    changes += [
        LockChange(name, None, accept=False)
        for name, tool in before.items()
        if tool.found is not None
    ]
    return changes


def describe_change(tool: KnownTool) -> str:
    """The difference between what was accepted and what the server says now, line by line. What
    nobody sees is written out."""
    before = _render(tool.accepted) if tool.accepted is not None else []
    after = _render(tool.found) if tool.found is not None else []
    lines = difflib.unified_diff(before, after, "accepted", "now", n=2, lineterm="")
    return "\n".join(lines)


def _render(definition: ToolDefinition) -> list[str]:
    return [escape_invisible(line) for line in _list_lines(definition)[:MAX_SHOWN_LINES]]


def _list_lines(definition: ToolDefinition) -> list[str]:
    lines = [f"name: {definition.name}"]
    lines += [f"description: {line}" for line in definition.description.splitlines()]
    for what in ("parameters", "output", "annotations"):
        plain = msgspec.json.encode(getattr(definition, what), order="sorted")
        lines += [f"{what}: {line}" for line in msgspec.json.format(plain).decode().splitlines()]
    return lines


def find_problem(definition: ToolDefinition) -> str:
    """Why this cannot be offered as a tool; '' where it can."""
    if not definition.name or len(definition.name) > 128:
        return "its name has to have 1 to 128 characters"
    if len(msgspec.json.encode(definition)) > MAX_DEFINITION_BYTES:
        return f"its definition is larger than {MAX_DEFINITION_BYTES:,} bytes"
    if len(_list_lines(definition)) > MAX_SHOWN_LINES:
        return f"its definition has more than {MAX_SHOWN_LINES:,} lines"
    if definition.parameters.get("type", "object") != "object":
        return "its parameters are no object"
    return ""


def clean_definition(definition: ToolDefinition) -> ToolDefinition:
    """As models are told: the description cut where it is too long."""
    text = clean_text(definition.description).strip()
    if len(text) > MAX_DESCRIPTION_CHARS:
        text = f"{text[:MAX_DESCRIPTION_CHARS].rstrip()} …"
    return msgspec.structs.replace(definition, description=text)


def count_states(tools: Iterable[KnownTool]) -> Mapping[ToolState, int]:
    """How many tools are in each state."""
    counts: dict[ToolState, int] = {"accepted": 0, "changed": 0, "new": 0}
    for tool in tools:
        counts[tool.state] += 1
    return counts
