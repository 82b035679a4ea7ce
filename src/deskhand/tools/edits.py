"""Exact replacements in a text, whatever ends its lines."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

import msgspec

from ..types.errors import ToolError

BOM = "\ufeff"


class Replacement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`old` must stand in the file exactly once; with `replace_all` at least once, and all of them
    are replaced."""

    old: str
    new: str
    replace_all: bool = False


def detect_line_ending(text: str) -> str:
    """What most lines of the text end with."""
    return "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"


def apply_edits(text: str, edits: Sequence[Replacement]) -> str:
    """The text with every replacement made, one after the other. Lines are matched whether they end
    with CRLF or LF, and what is new gets the endings of the text. Raises ToolError naming the edit
    whose old text is not there once."""
    ending = detect_line_ending(text)
    for number, edit in enumerate(edits, 1):
        new = edit.new.replace("\r\n", "\n").replace("\n", ending)
        if edit.replace_all:
            text = _replace_all(text, edit.old, new, number)
        else:
            start, end = _find_once(text, edit.old, number)
            text = text[:start] + new + text[end:]
    return text


def _replace_all(text: str, old: str, new: str, number: int) -> str:
    """The text with `new` wherever `old` stood."""
    if not old:
        raise ToolError(
            f"edit {number}: the old text is empty; copy exactly one passage from the file"
        )
    plain = text.replace("\r\n", "\n")
    wanted = old.replace("\r\n", "\n")
    dropped = _crlf_offsets(text)
    pieces = list[str]()
    over = 0
    found = plain.find(wanted)
    if found < 0:
        raise ToolError(
            f"edit {number}: the old text was not found; copy exactly one passage from the file"
        )
    while found >= 0:
        end = found + len(wanted)
        pieces += [text[over : found + bisect_left(dropped, found)], new]
        over = end + bisect_left(dropped, end)
        found = plain.find(wanted, end)
    return "".join([*pieces, text[over:]])


def _find_once(text: str, old: str, number: int) -> tuple[int, int]:
    """Where `old` stands."""
    if not old:
        raise ToolError(
            f"edit {number}: the old text is empty; copy exactly one passage from the file"
        )
    plain = text.replace("\r\n", "\n")
    wanted = old.replace("\r\n", "\n")
    found = plain.find(wanted)
    again = found >= 0 and plain.find(wanted, found + 1) >= 0  # they may overlap
    if found < 0 or again:
        what = (
            "occurs more than once; add lines around it, or set replace_all"
            if again
            else "was not found"
        )
        raise ToolError(
            f"edit {number}: the old text {what}; copy exactly one passage from the file"
        )
    dropped = _crlf_offsets(text)
    end = found + len(wanted)
    return found + bisect_left(dropped, found), end + bisect_left(dropped, end)


def _crlf_offsets(text: str) -> list[int]:
    """Where a line ends in the text without the CR of its CRLFs, for each of them."""
    return [match.start() - i for i, match in enumerate(re.finditer("\r\n", text))]
