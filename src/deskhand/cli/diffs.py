"""Diffs in a terminal: under the line of a call that changed a file, and with the question before
it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import click

from ..policy.visible import escape_invisible
from ..types.diffs import CallDiff, FileDiff
from ..types.marked_texts import mark_text
from .plain import escape_control

MAX_LINES = 20
MAX_LINE_CHARS = 300
"""So many lines are shown of a change, and so much of each."""
DIFF_HEADING = mark_text("Changes it would make to the current file:")
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
    lines = list[tuple[str, str]]()
    left_out = 0
    for file in found.files:
        for text, style in _render_file(file, named=len(found.files) > 1):
            more = _MORE_LINES.fullmatch(text)
            if more is None:
                lines.append((text, style))
            else:
                left_out += int(more[1].replace(",", ""))

    left_out += max(len(lines) - most, 0)
    shown = lines[:most]
    if left_out:
        shown.append((f"… {left_out:,} more lines", "quiet"))
    if found.more:
        shown.append((f"and {found.more} more files", "quiet"))
    return shown


def _render_file(file: FileDiff, *, named: bool) -> Iterator[tuple[str, str]]:
    if named:
        yield f"{escape_invisible(file.place)} {file.did}", ""
    if file.why:
        yield file.why, "quiet"
    for line in file.diff.split("\n")[2:] if file.diff else ():
        yield line, _STYLES.get(line[:1], "")
