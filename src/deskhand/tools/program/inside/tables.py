"""Tables, as they stand in CSV, Markdown and JSON."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    empty = [item for value, item in keyed if is_empty(value)]
    filled = [pair for pair in keyed if not is_empty(pair[0])]
    filled.sort(key=lambda pair: pair[0], reverse=reverse)
    return [*(item for _, item in filled), *empty]


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
        is_number = re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?", value)
        found = parse_number(value) if is_number else None
        if found is None or not math.isfinite(found):
            return str(value)
        is_whole = found == int(found) and "." not in value
        return int(found) if is_whole else found
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
    marked = parse_markdown_rows(text)
    if marked:
        return [Record({name: Cell(value) for name, value in row.items()}) for row in marked]

    sign = detect_delimiter(text)
    if not path.lower().endswith((".csv", ".tsv")):
        _check_is_table(path, text, sign)

    reader = csv.DictReader(io.StringIO(text), delimiter=sign, skipinitialspace=True)
    found = list(reader)
    names = [name.strip() for name in reader.fieldnames or ()]
    twice = next((name for name in names if name and names.count(name) > 1), "")
    if twice:
        raise ValueError(f"{path} has two columns {twice!r}; use cells({path!r})")
    for row in found:
        if None in row:  # so the reader names cells for which there is no column
            first = next(iter(row.values()))
            raise Stop(f"{path} has a row with more cells than columns: {first!r} ...")

    filled = [row for row in found if any(cell and cell.strip() for cell in row.values())]
    return [_make_record(row) for row in filled]


def _check_is_table(path: str, text: str, sign: str) -> None:
    first = text.split("\n", 1)[0]
    has_prose = any(line.strip() and sign not in line for line in text.splitlines())
    if has_prose or (first and sign not in first):
        raise ValueError(f"{path} is no table; use lines({path!r})")
    if re.search(r"\d{3}|@", first):
        cells = first.split(sign)
        raise ValueError(f"{path} has no header; use cells({path!r}), each a list such as {cells}")


def _make_record(row: Mapping[str, str | None]) -> Record:
    return Record({name.strip(): Cell((value or "").strip()) for name, value in row.items()})


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
    for number in range(1, len(lines)):
        if "|" in lines[number - 1] and _is_rule(lines[number]):
            return number
    return 0


def _is_rule(line: str) -> bool:
    return "|" in line and all(re.fullmatch(r":?-+:?", cell) for cell in _split_cells(line))


def replace_table(text: str, new: str) -> str:
    """A Markdown text with another table in the place of its only one; '' where it has none, or
    several."""
    lines = text.split("\n")
    at = _find_rule(lines)
    if not at:
        return ""

    end = at
    while end < len(lines) and "|" in lines[end]:
        end += 1
    if _find_rule(lines[end:]):
        return ""
    return "\n".join([*lines[: at - 1], new, *lines[end:]])


def to_csv_line(text: str, cells: Sequence[Any]) -> Any:
    """Cells as a line of a CSV, where there are as many as columns; else as they were, to be
    lines."""
    sign = detect_delimiter(text)
    first = text.split("\n", 1)[0]
    columns = first.count(sign) + 1
    is_row = columns > 1 and len(cells) == columns
    if not is_row or any(sign in str(cell) for cell in cells):
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
    lines = [_render_table_line(names), _render_table_line(["---"] * len(names))]
    for row in found:
        cells = [row.get(name, "") for name in names] if isinstance(row, dict) else row
        lines.append(_render_table_line(cells))
    return "\n".join(lines)


def _render_table_line(cells: Iterable[Any]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def to_cell(value: Any) -> Any:
    """A value as it is written into a table: nothing for what is no number."""
    if not isinstance(value, float):
        return value
    return str(round_number(value)) if math.isfinite(value) else ""
