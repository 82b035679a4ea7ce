"""The command line in a call, whichever tool it is for: what a person allows for one of them, they
allow for all."""

from __future__ import annotations

import msgspec

from .aliases import normalize_arguments

SHELL = "shell"
COMMAND_TOOLS = frozenset({SHELL, "background_run", "process"})
"""The tools that run commands."""


def get_command_line(tool: str, arguments: bytes) -> str | None:
    """What this call would run, or type to a program that runs; None where it runs nothing, or
    would be refused."""
    if tool not in COMMAND_TOOLS:
        return None
    try:
        given = msgspec.json.decode(arguments)
    except (ValueError, RecursionError):
        return None  # the tool refuses it
    if not isinstance(given, dict):
        return None
    given = normalize_arguments(tool, given)
    if tool != "process":
        return str(given.get("command", ""))
    match given.get("action"):
        case "start":
            return str(given.get("command", ""))
        case "write":
            return str(given.get("input", "")) or None
        case _:
            return None
