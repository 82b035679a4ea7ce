"""Diffs in a terminal: under the line of a call that changed a file, and with the question before
it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import click

from ..policy.visible import escape_invisible
from ..types.diffs import CallDiff, FileDiff
from .plain import escape_control

MAX_LINES = 20
MAX_LINE_CHARS = 300
"""So many lines are shown of a change, and so much of each."""
DIFF_HEADING = "Changes it would make to the current file:"
_STYLES = {"+": "good", "-": "bad", "@": "quiet", "…": "quiet", "\\": "quiet"}
_COLORS: dict[str, dict[str, Any]] = {
    "good": {"fg": "green"},
    "bad": {"fg": "red"},
    "quiet": {"dim": True},
}
_MORE_LINES = re.compile(r"… ([\d,]+) more lines")


def color_line(text: str, style: str, environment: Mapping[str, str]) -> str:
    """The line made harmless, in its colour: where the output is no terminal, click takes that away
    again."""
    words = escape_control(text[:MAX_LINE_CHARS])
    return words if environment.get("NO_COLOR") else click.style(words, **_COLORS.get(style, {}))


def render_diff(found: CallDiff, most: int = MAX_LINES) -> list[tuple[str, str]]:
    """The lines to show, each with its style. What is left out is counted."""
    lines = [
        line for file in found.files for line in _render_file(file, named=len(found.files) > 1)
    ]
    cut = [line for line in lines if not _MORE_LINES.fullmatch(line[0])]
    left_out = sum(
        int(match[1].replace(",", ""))
        for text, _ in lines
        if (match := _MORE_LINES.fullmatch(text))
    )
    left_out += max(len(cut) - most, 0)
    more = [(f"… {left_out:,} more lines", "quiet")] if left_out else []
    files = [(f"and {found.more} more files", "quiet")] if found.more else []
    return [*cut[:most], *more, *files]


def _render_file(file: FileDiff, *, named: bool) -> Iterator[tuple[str, str]]:
    if named:
        yield f"{escape_invisible(file.place)} {file.did}", ""
    if file.why:
        yield file.why, "quiet"
    for line in file.diff.split("\n")[2:] if file.diff else ():
        yield line, _STYLES.get(line[:1], "")
