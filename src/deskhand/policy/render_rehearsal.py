"""A rehearsed program as a person is asked about it: what it changes, what is lost by that, and the
program.

Diffs are cut where they are long. That hides nothing that is bound: the digest of each file stands
for what it holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

import msgspec

from ..types.program_words import CHANGE_VERBS
from ..types.programs import ChangeKind, FileChange, RunArguments
from .visible import escape_invisible

MESSAGE_CHARS = 3_400
"""With what stands around it, one message of Telegram, which takes 4,096."""
MIN_DIFF_CHARS = 1_000
NOTE_CHARS = 50
HEAD_LINES = 2
"""Before each diff: an empty one, and the name."""
_PLAIN = re.compile(r"[\w./@+=-]+")
_LOSS_VERBS: dict[ChangeKind, tuple[str, ...]] = {
    "changed": ("overwrites", "empties"),
    "deleted": ("deletes",),
}


def render_rehearsal(arguments: bytes) -> str | None:
    """The arguments of `run_program` as lines, those that lose something first; None where the tool
    refuses them.

    What others wrote is set in or quoted, so that it never looks like a line of ours.
    """
    try:
        given = msgspec.json.decode(arguments, type=RunArguments)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    changes = sorted(given.changes, key=lambda change: not change.loses)
    head = [_render_change(change) for change in changes] or ["changes nothing"]
    rest = ["", "The program:", *_indent_lines(given.program)]
    if given.answers:
        rest += [
            "",
            "It is given:",
            *(
                f"  {escape_invisible(json.dumps(each, ensure_ascii=False))}"
                for each in given.answers
            ),
        ]
    if digests := [
        f"  {escape_invisible(each.digest)}  {_quote_path(each.path)}"
        for each in changes
        if each.digest
    ]:
        rest += ["", "SHA-256 of what the files hold then:", *digests]
    room = MESSAGE_CHARS - sum(len(line) + 1 for line in (*head, *rest))
    diffs = _render_diffs(
        [each for each in changes if each.loses] or changes,
        max(room - NOTE_CHARS, MIN_DIFF_CHARS),
    )
    return "\n".join(["", *head, *diffs, *rest])


def _render_change(change: FileChange) -> str:
    """`makes a.txt`, and what is lost by it."""
    path = _quote_path(change.path)
    does = f"{CHANGE_VERBS[change.kind]}s {'the folder ' if change.kind == 'folder' else ''}{path}"
    to = f" to {_quote_path(change.to)}" if change.to else ""
    says_all = any(
        f"{change.loses} ".startswith(f"{verb} {path} ")
        for verb in _LOSS_VERBS.get(change.kind, ())
    )
    if says_all and not to:
        return escape_invisible(change.loses)
    return f"{does}{to}: {escape_invisible(change.loses)}" if change.loses else f"{does}{to}"


def _quote_path(path: str) -> str:
    """A path as it is, or quoted where it could be taken for more than one word."""
    plain = _PLAIN.fullmatch(path) and escape_invisible(path) == path
    return path if plain else escape_invisible(json.dumps(path, ensure_ascii=False))


def _indent_lines(text: str) -> list[str]:
    """The lines of a text. A tab is seen, and stays."""
    return ["  " + "\t".join(map(escape_invisible, line.split("\t"))) for line in text.split("\n")]


def _render_diffs(changes: Sequence[FileChange], room: int) -> Iterator[str]:
    """The diffs under the names of their files, as far as there is room."""
    left_out = 0
    for change in changes:
        if not change.diff:
            continue
        lines = _cut_lines(
            ["", f"{_quote_path(change.path)}:", *_indent_lines(_strip_diff_header(change.diff))],
            room,
        )
        room -= sum(len(line) + 1 for line in lines)
        left_out += not lines
        yield from lines
    if left_out:
        yield from ("", f"There is no room here for {left_out} more diff{'s' * (left_out > 1)}.")


def _cut_lines(lines: Sequence[str], room: int) -> Sequence[str]:
    """The lines that there is room for, and how many more there are; none, where not even one of a
    diff fits in."""
    room -= NOTE_CHARS
    for count, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0:
            return (
                [*lines[:count], f"  … {len(lines) - count} more lines"]
                if count > HEAD_LINES
                else []
            )
    return lines


def _strip_diff_header(diff: str) -> str:
    """A unified diff without the two lines that name its file."""
    lines = diff.split("\n")
    named = len(lines) > 2 and lines[0].startswith("--- ") and lines[1].startswith("+++ ")
    return "\n".join(lines[2:] if named else lines)
