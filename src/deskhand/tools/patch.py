"""Applies a unified diff to a text, forgiving about line numbers but not about the lines."""

from __future__ import annotations

import re

from ..types.errors import ToolError

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")


def apply_patch(text: str, patch: str) -> str:
    """The text with every hunk applied. A hunk is looked for at its line number first, then at the nearest place where
    its lines stand. Raises ToolError naming the hunk that fits nowhere."""
    lines, ends_with_newline = text.split("\n"), text.endswith("\n")
    if ends_with_newline:
        lines.pop()
    shift = 0
    hunks = list(_hunks(patch))
    if not hunks:
        raise ToolError("the patch has no hunk; a hunk begins with @@ -line,count +line,count @@")
    for number, (at, old, new) in enumerate(hunks, 1):
        place = _find(lines, old, at - 1 + shift)
        if place is None:
            raise ToolError(f"hunk {number} of the patch fits nowhere: its old lines must stand in the file")
        lines[place : place + len(old)] = new
        shift += len(new) - len(old)
    return "\n".join(lines) + ("\n" if ends_with_newline and lines else "")


def _hunks(patch: str) -> list[tuple[int, list[str], list[str]]]:
    hunks: list[tuple[int, list[str], list[str]]] = []
    for line in patch.rstrip("\n").split("\n"):
        if match := _HUNK.match(line):
            hunks.append((int(match[1]), [], []))
        elif hunks and not line.startswith("\\"):
            _, old, new = hunks[-1]
            if line[:1] in ("", " ", "-"):  # models drop the blank of an empty line
                old.append(line[1:])
            if line[:1] in ("", " ", "+"):
                new.append(line[1:])
    return hunks


def _find(lines: list[str], old: list[str], wanted: int) -> int | None:
    """Where `old` stands, the place nearest to `wanted`."""
    if not old:
        return min(max(wanted + 1, 0), len(lines)) if lines else 0
    places = [i for i in range(len(lines) - len(old) + 1) if lines[i : i + len(old)] == old]
    return min(places, key=lambda place: abs(place - wanted), default=None)
