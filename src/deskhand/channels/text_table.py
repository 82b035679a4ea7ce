"""A table as a phone shows it: in columns of a fixed width, or as a list where that would be too
wide."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from markdown_it.token import Token

MAX_WIDTH = 40
"""So many columns of a fixed width a phone shows without breaking the line."""
GAP = "  "

Row = tuple[str, ...]


def read_table(tokens: Sequence[Token]) -> list[Row]:
    """The cells of a table from its opening token on, row by row, the head first. They are plain
    words."""
    rows: list[list[str]] = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline" and rows:
            rows[-1].append(_render_cell(token))
        elif token.type == "table_close":
            break
    return [tuple(row) for row in rows]


def read_alignments(tokens: Sequence[Token]) -> list[str]:
    """`left`, `right` or `center` for each column of a table from its opening token on."""
    found = []
    for token in tokens:
        if token.type == "th_open":
            found.append(str(token.attrs.get("style", "")).removeprefix("text-align:") or "left")
        elif token.type == "thead_close":
            break
    return found


def render_columns(rows: Sequence[Row], aligned: Sequence[str]) -> str:
    """All of it in columns, with a line beneath the head; '' where that is wider than a phone
    shows."""
    widths = [max(cell_width(row[i]) for row in rows) for i in range(len(rows[0]))]
    if sum(widths) + len(GAP) * (len(widths) - 1) > MAX_WIDTH:
        return ""
    lines = [_render_row(row, widths, aligned) for row in rows]
    rule = GAP.join("─" * max(width, 1) for width in widths)
    return "\n".join([lines[0], rule, *lines[1:]])


def make_list_items(rows: Sequence[Row]) -> list[tuple[str, list[str]]]:
    """Each row as what stands in its first cell, and lines that say what the others are."""
    head, *body = rows
    found = []
    for row in body:
        pairs = zip(head[1:], row[1:], strict=True)
        found.append(
            (row[0], [f"{name}: {cell}" if name else cell for name, cell in pairs if cell])
        )
    return found


def cell_width(text: str) -> int:
    """How many columns it takes where every letter is as wide as the others."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(bool(unicodedata.combining(char)) for char in text)


def _render_cell(token: Token) -> str:
    words = []
    for child in token.children or ():
        if child.type == "image":  # as in a text: its address is shown, and nothing is fetched
            words.append(f"{child.content} ({child.attrs.get('src', '')})".lstrip())
        else:
            words.append(" " if child.type.endswith("break") else child.content)
    return "".join(words).strip()


def _render_row(row: Row, widths: Sequence[int], aligned: Sequence[str]) -> str:
    shown = []
    for cell, width, side in zip(row, widths, aligned, strict=True):
        room = width - cell_width(cell)
        before = room if side == "right" else room // 2 if side == "center" else 0
        shown.append(" " * before + cell + " " * (room - before))
    return GAP.join(shown).rstrip()
