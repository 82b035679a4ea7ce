"""Applies a unified diff to a text, forgiving about line numbers but not about the lines."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

import msgspec

from ..types.errors import ToolError
from .edits import detect_line_ending

MAX_HUNKS = 500
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,\d{1,9})? \+\d{1,9}(?:,\d{1,9})? @@|@@(?: .*)?$")


class _Hunk(msgspec.Struct):
    """`at` is the line number that it names, None for none. `steps` are its lines, each with its
    sign. `bare_old` and `bare_new`: the old or the new last line has no newline."""

    at: int | None
    steps: list[str] = []
    bare_old: bool = False
    bare_new: bool = False

    @property
    def old(self) -> list[str]:
        return [step[1:] for step in self.steps if step[0] != "+"]


def apply_patch(text: str, patch: str) -> str:
    """The text with every hunk applied, in order. A hunk is looked for at its line number first,
    then at the nearest place after the one before it. New lines end as most lines of the text do;
    all others stay byte for byte.

    Raises ToolError naming the hunk that fits nowhere.
    """
    ending = detect_line_ending(text)
    lines = text.split("\n")
    bare = bool(lines.pop()) and text != ""
    if bare:
        lines = text.split("\n")
    hunks = _parse_hunks(patch)
    search = _Search(lines)
    done: list[str] = []
    next_line = drift = 0
    for number, hunk in enumerate(hunks, 1):
        old = hunk.old
        wanted = None if hunk.at is None else hunk.at - bool(old) + drift
        place = search.find_nearest(old, next_line, wanted)
        if place is None:
            where = " after the previous hunk" if next_line else ""
            raise ToolError(
                f"hunk {number} of the patch does not apply{where}: its old lines must occur in "
                "the file"
            )
        if wanted is not None:
            drift += place - wanted
        done += lines[next_line:place]
        next_line = place
        for step in hunk.steps:
            if step[0] == "+":
                done.append(step[1:] + ending[:-1])
                continue
            if step[0] == " ":
                done += lines[next_line : next_line + 1]
            next_line += 1
        if next_line == len(lines) and (hunk.bare_old or hunk.bare_new):
            bare = hunk.bare_new
    done += lines[next_line:]
    if bare and done:
        done[-1] = done[-1].removesuffix("\r")
    return "\n".join(done) + ("\n" if done and not bare else "")


def _parse_hunks(patch: str) -> list[_Hunk]:
    hunks: list[_Hunk] = []
    written = re.split(r"\r?\n", patch.rstrip("\r\n"))
    for number, line in enumerate(written):
        match = _HUNK.match(line)
        if match is not None:
            hunks.append(_Hunk(int(match[1]) if match[1] else None))
        elif hunks and (line.startswith("diff --git ") or _is_header(written[number : number + 2])):
            raise ToolError("the patch changes more than one file; make one call for each")
        elif hunks and line.startswith("\\"):
            last = hunks[-1].steps[-1][0] if hunks[-1].steps else " "
            hunks[-1].bare_old |= last != "+"
            hunks[-1].bare_new |= last != "-"
        elif hunks:
            sign = line[:1] or " "  # models drop the blank of an empty line
            if sign not in " +-":
                raise ToolError(
                    f"line {number + 1} of the patch does not begin with a space, + or -: "
                    f"{line[:80]!r}"
                )
            hunks[-1].steps.append(sign + line[1:])
    hunks = [hunk for hunk in hunks if hunk.steps]
    if not hunks:
        raise ToolError("the patch has no hunk; a hunk begins with @@ -line,count +line,count @@")
    if len(hunks) > MAX_HUNKS:
        raise ToolError(f"the patch has {len(hunks)} hunks; at most {MAX_HUNKS} are allowed")
    return hunks


def _is_header(lines: Sequence[str]) -> bool:
    return len(lines) == 2 and lines[0].startswith("--- ") and lines[1].startswith("+++ ")


class _Search:
    """Finds runs of lines in linear time, whatever the lines are. Lines are compared without CR at
    their end."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = [line.removesuffix("\r") for line in lines]
        self._starts: list[int] = []
        self._text = self._backward = ""

    def find_nearest(self, old: list[str], first: int, wanted: int | None) -> int | None:
        """The line, not before line `first`, where `old` stands nearest to `wanted` (None: the
        first place)."""
        if not old:
            return min(max(wanted, first), len(self._lines)) if wanted is not None else None
        wanted = first if wanted is None else max(wanted, first)
        if self._lines[wanted : wanted + len(old)] == old:
            return wanted
        self._build_index()
        needle = "\n" + "\n".join(old) + "\n"
        at = self._starts[min(wanted, len(self._lines))]
        after = self._text.find(needle, at)
        # Backwards by a search in the reversed text: rfind takes quadratic time where lines repeat.
        end = len(self._text) - (at + len(needle) - 1)
        before = self._backward.find(needle[::-1], max(end, 0))
        places = [self._line_at(after)] if after >= 0 else []
        if before >= 0:
            line = self._line_at(len(self._text) - before - len(needle))
            if line >= first:
                places.append(line)
        return min(places, key=lambda line: abs(line - wanted), default=None)

    def _line_at(self, offset: int) -> int:
        return bisect_left(self._starts, offset)

    def _build_index(self) -> None:
        if self._text:
            return
        self._text = "\n" + "".join(f"{line}\n" for line in self._lines)
        self._backward = self._text[::-1]
        offset = 0
        for line in self._lines:
            self._starts.append(offset)
            offset += len(line) + 1
        self._starts.append(offset)
