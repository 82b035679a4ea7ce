"""A plain table: columns as wide as what they hold, the last one cut where the terminal ends."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import Any

import click

from .encoded import to_json
from .plain import cell_width, escape_control, shorten_line

MAX_CELL_WIDTH = 44


def print_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print it. In a pipe nothing is cut and there is no title line, so that other programs can
    read it: columns are separated by tabs."""
    if not sys.stdout.isatty():
        for row in rows:
            click.echo("\t".join(" ".join(escape_control(cell).split()) for cell in row))
        return
    width = shutil.get_terminal_size().columns
    shown = [_shorten_cells(row, width) for row in rows]
    columns = zip(titles, *shown, strict=False)
    widths = [max(map(cell_width, column)) for column in columns]
    click.echo(click.style(_render_row(titles, widths, width), dim=True))
    for row in shown:
        click.echo(_render_row(row, widths, width))


def print_json_rows(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print the rows as a JSON list of objects."""
    click.echo(to_json([dict(zip(names, row, strict=True)) for row in rows]))


def _shorten_cells(row: Sequence[str], width: int) -> list[str]:
    *first, last = row
    return [*(shorten_line(cell, MAX_CELL_WIDTH) for cell in first), shorten_line(last, width)]


def _render_row(row: Sequence[str], widths: Sequence[int], width: int) -> str:
    *first, last = row
    start = ""
    for cell, column_width in zip(first, widths, strict=False):
        start += cell + " " * (column_width - cell_width(cell) + 2)
    room = width - cell_width(start)
    return start + (shorten_line(last, room) if room > 8 else last)
