"""Excel workbooks (Office Open XML, ECMA-376 part 1, 18): the values of each sheet that is shown,
as a table."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from .archive import Archive, parse_xml, read_relations
from .found import ExtractedText, Full, Unreadable, format_cell

_WORKBOOK_PART = "xl/workbook.xml"
_MAX_COLUMNS = 200
_DATE_FORMATS = {*range(14, 23), *range(45, 48)}
"""The built-in formats that show a date or a time, 18.8.30."""
_DATE = re.compile(r"[ymdhs]", re.I)
_NOT_DATE = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.')
_MAX_SHARED_CHARS = 20_000_000


def read_sheets(archive: Archive, found: ExtractedText) -> None:
    """Every sheet that is shown, in its order. Raises Unreadable and Full."""
    if _WORKBOOK_PART not in archive:
        raise Unreadable("is damaged: its list of sheets is missing")
    known = read_relations(archive, _WORKBOOK_PART, found)
    sheets: list[tuple[str, str, bool]] = []
    day_one = [datetime(1899, 12, 30)]

    def start(name: str, given: dict[str, str]) -> None:
        if name.endswith(" sheet"):
            key = next(
                (value for each, value in given.items() if each.endswith("relationships id")), ""
            )
            sheets.append(
                (
                    given.get("name", ""),
                    known.get(key, ("", ""))[0],
                    given.get("state", "visible") != "visible",
                )
            )
        elif name.endswith(" workbookPr") and given.get("date1904") in ("1", "true"):
            day_one[0] = datetime(1904, 1, 1)

    parse_xml(archive, _WORKBOOK_PART, found, start)
    strings = _read_shared_strings(archive, found)
    dates = _read_date_styles(archive, found)
    for name, part, hidden in sheets:
        if hidden:
            found.hidden["hidden sheets"] += 1
        elif part in archive:
            found.add(f"## {format_cell(name)}\n\n")
            sheet = _Sheet(found, strings, dates, day_one[0])
            parse_xml(archive, part, found, sheet.start, sheet.end, sheet.text)
            found.add("\n" if sheet.rows else "(empty)\n\n")


def _read_shared_strings(archive: Archive, found: ExtractedText) -> list[str]:
    """The strings that cells name by number. Phonetic hints are left out."""
    strings: list[str] = []
    state = {"reading": False, "phonetic": False}
    line: list[str] = []
    seen = [0]

    def start(name: str, _: dict[str, str]) -> None:
        tag = name.rpartition(" ")[2]
        if tag == "si":
            line.clear()
        elif tag in ("t", "rPh"):
            state["reading" if tag == "t" else "phonetic"] = True

    def text(text: str) -> None:
        if state["reading"] and not state["phonetic"]:
            line.append(text)
            seen[0] += len(text)
            if seen[0] > _MAX_SHARED_CHARS:
                raise Full("it has more text than is read")

    def end(name: str) -> None:
        tag = name.rpartition(" ")[2]
        if tag == "si":
            strings.append("".join(line))
        elif tag in ("t", "rPh"):
            state["reading" if tag == "t" else "phonetic"] = False

    if "xl/sharedStrings.xml" in archive:
        parse_xml(archive, "xl/sharedStrings.xml", found, start, end, text)
    return strings


def _read_date_styles(archive: Archive, found: ExtractedText) -> set[int]:
    """The numbers of the cell styles that show a date."""
    formats: set[int] = set(_DATE_FORMATS)
    styles: set[int] = set()
    state = {"in": False, "number": 0}

    def start(name: str, given: dict[str, str]) -> None:
        tag = name.rpartition(" ")[2]
        if tag == "numFmt" and _DATE.search(_NOT_DATE.sub("", given.get("formatCode", ""))):
            formats.add(_parse_int(given.get("numFmtId")))
        elif tag == "cellXfs":
            state["in"] = True
        elif tag == "xf" and state["in"]:
            if _parse_int(given.get("numFmtId")) in formats:
                styles.add(state["number"])
            state["number"] += 1

    def end(name: str) -> None:
        if name.endswith(" cellXfs"):
            state["in"] = False

    if "xl/styles.xml" in archive:
        parse_xml(archive, "xl/styles.xml", found, start, end)
    return styles


class _Sheet:
    """The row and the cell that the parser has come to."""

    def __init__(
        self, found: ExtractedText, strings: list[str], dates: set[int], day_one: datetime
    ) -> None:
        self._found = found
        self._strings = strings
        self._dates = dates
        self._day_one = day_one
        self.rows = 0
        self._row: dict[int, str] = {}
        self._column = self._wide = 0
        self._kind = self._style = ""
        self._value: list[str] = []
        self._reading = self._hidden = False
        self._hidden_columns: set[int] = set()

    def start(self, name: str, given: dict[str, str]) -> None:
        match name.rpartition(" ")[2]:
            case "col" if _is_hidden(given, "width"):
                first = _parse_int(given.get("min"))
                last = _parse_int(given.get("max"))
                self._hidden_columns.update(range(first - 1, min(last, _MAX_COLUMNS)))
            case "row":
                self._row = {}
                self._column = -1
                self._hidden = _is_hidden(given, "ht")
            case "c":
                place = given.get("r", "")
                self._column = _column_index(place) if place else self._column + 1
                self._kind = given.get("t", "n")
                self._style = given.get("s", "")
                self._value = []
            case "v" | "t":
                self._reading = True

    def text(self, text: str) -> None:
        if self._reading:
            self._value.append(text)

    def end(self, name: str) -> None:
        match name.rpartition(" ")[2]:
            case "v" | "t":
                self._reading = False
            case "c" if self._value and self._column < _MAX_COLUMNS:
                self._row[self._column] = self._format_value("".join(self._value))
            case "row" if self._row:
                self._end_row()

    def _end_row(self) -> None:
        if self._hidden:
            self._found.hidden["hidden rows"] += 1
            return
        seen = {at: value for at, value in self._row.items() if at not in self._hidden_columns}
        self._found.hidden["hidden cells"] += len(self._row) - len(seen)
        if not seen:
            return
        width = max(self._wide, max(seen) + 1)
        if self.rows == 0:
            self._wide = width
        shown = (at for at in range(width) if at not in self._hidden_columns)
        row = [seen.get(at, "") for at in shown]
        self._found.add("| " + " | ".join(format_cell(each) for each in row) + " |\n")
        if self.rows == 0:
            self._found.add("|" + " --- |" * len(row) + "\n")
        self.rows += 1

    def _format_value(self, value: str) -> str:
        match self._kind:
            case "s":
                at = _parse_int(value)
                return self._strings[at] if 0 <= at < len(self._strings) else ""
            case "b":
                return "TRUE" if value.strip() == "1" else "FALSE"
            case "n" if self._style and _parse_int(self._style) in self._dates:
                return self._format_date(value)
        return value

    def _format_date(self, value: str) -> str:
        try:
            when = self._day_one + timedelta(days=float(value))
        except (ValueError, OverflowError):
            return value
        if float(value) < 1:
            return when.strftime("%H:%M:%S")
        return when.strftime(
            "%Y-%m-%d" if when.time() == datetime.min.time() else "%Y-%m-%d %H:%M:%S"
        )


def _is_hidden(given: dict[str, str], size: str) -> bool:
    """Whether a row or a column is not shown, or has no height or width."""
    if given.get("hidden") in ("1", "true"):
        return True
    try:
        return float(given.get(size, "1")[:20]) <= 0
    except ValueError:
        return False


def _parse_int(text: str | None) -> int:
    try:
        return int((text or "")[:12])
    except ValueError:
        return -1


def _column_index(reference: str) -> int:
    """`B7` is column 1."""
    number = 0
    for char in reference[:8]:
        if not "A" <= char.upper() <= "Z":
            break
        number = number * 26 + ord(char.upper()) - 64
    return number - 1
