"""Tables, as they stand in CSV, Markdown and JSON."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .values import Cell, Stop, parse_number, round_number


def is_empty(key: object) -> bool:
    """Whether a value is a number of an empty cell, which neither comes before others nor after
    them."""
    return isinstance(key, float) and math.isnan(key)


def sort_items(
    items: Iterable[Any], *, key: Callable[[Any], Any] | None = None, reverse: bool = False
) -> list[Any]:
    """As `sorted`; items whose key is an empty cell come last."""
    keyed = [(key(item) if key else item, item) for item in items]
    found = sorted(
        (pair for pair in keyed if not is_empty(pair[0])), key=lambda pair: pair[0], reverse=reverse
    )
    return [item for _, item in (*found, *(pair for pair in keyed if is_empty(pair[0])))]


class Rows(list[dict[str, Any]]):
    """The rows of a table."""

    __slots__ = ()

    def sort(self, *, key: Callable[[Any], Any] | None = None, reverse: bool = False) -> None:
        """See `in_order`."""
        self[:] = sort_items(self, key=key, reverse=reverse)


class Record(dict[str, Any]):
    """A row, or an object of JSON. Its keys are found whatever their case, and one that is not
    there is answered with those that are."""

    def __missing__(self, key: str) -> Any:
        same = [own for own in self if own.casefold() == str(key).casefold()]
        if len(same) == 1:
            return self[same[0]]
        raise KeyError(f"{key!r}: there are only {', '.join(map(repr, self))}")


def detect_delimiter(text: str) -> str:
    """What separates the cells of a CSV: what its first line has most of."""
    first = text.split("\n", 1)[0]
    return max(",;\t|", key=first.count) if first else ","


def to_json_value(value: Any) -> Any:
    """The same for JSON: cells that are numbers become numbers."""
    if isinstance(value, Cell):
        found = parse_number(value) if re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?", value) else None
        return (
            str(value)
            if found is None
            else int(found)
            if found == int(found) and "." not in value
            else found
        )
    if isinstance(value, float) and math.isfinite(value):
        return round_number(value)
    if isinstance(value, dict):
        return {str(key): to_json_value(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_value(each) for each in value]
    return value


def parse_rows(path: str, text: str) -> list[dict[str, Any]]:
    """The rows of a table, which is CSV or stands in Markdown. Raises ValueError for none, Stop for
    a broken one."""
    if marked := parse_markdown_rows(text):
        return [Record({name: Cell(value) for name, value in row.items()}) for row in marked]
    first = text.split("\n", 1)[0]
    sign = detect_delimiter(text)
    table = path.lower().endswith((".csv", ".tsv"))
    prose = not table and any(line.strip() and sign not in line for line in text.splitlines())
    if prose or (first and sign not in first and not table):
        raise ValueError(f"{path} is no table; use lines({path!r})")
    if not table and re.search(r"\d{3}|@", first):
        raise ValueError(
            f"{path} has no header; use cells({path!r}), each a list such as {first.split(sign)}"
        )
    reader = csv.DictReader(io.StringIO(text), delimiter=sign, skipinitialspace=True)
    found = list(reader)
    names = [name.strip() for name in reader.fieldnames or ()]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise ValueError(f"{path} has two columns {twice!r}; use cells({path!r})")
    if odd := next((row for row in found if any(name is None for name in row)), None):
        raise Stop(
            f"{path} has a row with more cells than columns: {next(iter(odd.values()))!r} ..."
        )
    return [
        Record(
            {
                name.strip(): Cell((value or "").strip())
                for name, value in row.items()
                if name is not None
            }
        )
        for row in found
        if any(isinstance(value, str) and value.strip() for value in row.values())
    ]


def parse_markdown_rows(text: str) -> list[dict[str, str]]:
    """The rows of the first table in a Markdown text, by the names of its columns; none where there
    is none."""
    lines = text.splitlines()
    at = _find_rule(lines)
    if not at:
        return []
    names = _split_cells(lines[at - 1])
    found = list[dict[str, str]]()
    for line in lines[at + 1 :]:
        if "|" not in line:
            break
        cells = _split_cells(line)
        found.append(dict(zip(names, cells + [""] * len(names), strict=False)))
    return found


def _find_rule(lines: Sequence[str]) -> int:
    """The number of the line that rules off the head of the first table; 0 for none."""
    return next(
        (n for n, line in enumerate(lines) if n and "|" in lines[n - 1] and _is_rule(line)), 0
    )


def _is_rule(line: str) -> bool:
    return "|" in line and all(re.fullmatch(r":?-+:?", cell) for cell in _split_cells(line))


def replace_table(text: str, new: str) -> str:
    """A Markdown text with another table in the place of its only one; '' where it has none, or
    several."""
    lines = text.split("\n")
    at = _find_rule(lines)
    end = next((n for n in range(at, len(lines)) if "|" not in lines[n]), len(lines))
    return (
        ""
        if not at or _find_rule(lines[end:])
        else "\n".join([*lines[: at - 1], new, *lines[end:]])
    )


def to_csv_line(text: str, cells: Sequence[Any]) -> Any:
    """Cells as a line of a CSV, where there are as many as columns; else as they were, to be
    lines."""
    sign = detect_delimiter(text)
    first = text.split("\n", 1)[0]
    if (
        len(cells) == 1
        or len(cells) != first.count(sign) + 1
        or any(sign in str(cell) for cell in cells)
    ):
        return cells
    line = io.StringIO()
    csv.writer(line, delimiter=sign, lineterminator="").writerow([to_cell(cell) for cell in cells])
    return line.getvalue()


def _split_cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", inner)]


def table(rows: Iterable[Any], columns: list[str] | None = None) -> str:
    """Rows as a Markdown table."""
    found = list(rows)
    if not found:
        raise Stop("there are no rows for the table")
    names = list(columns or (found[0] if isinstance(found[0], dict) else found.pop(0)))
    body = [
        [row.get(name, "") for name in names] if isinstance(row, dict) else list(row)
        for row in found
    ]
    lines = [names, ["---"] * len(names), *body]
    return "\n".join(
        "| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines
    )


def to_cell(value: Any) -> Any:
    """A value as it is written into a table: nothing for what is no number."""
    return (
        (str(round_number(value)) if math.isfinite(value) else "")
        if isinstance(value, float)
        else value
    )
