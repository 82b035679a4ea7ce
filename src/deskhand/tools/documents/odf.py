"""OpenDocument texts, spreadsheets and presentations (OASIS OpenDocument 1.3, part 3)."""

from __future__ import annotations

from .archive import Archive, parse_xml
from .found import ExtractedText, Unreadable, format_cell

_MAX_REPEATED = 200
_SKIPPED_TAGS = ("tracked-changes", "annotation", "hidden-text", "hidden-paragraph")
"""How often a cell may be written again: files repeat the empty end of a sheet a million times."""


def read_odf(archive: Archive, found: ExtractedText) -> None:
    """The text in its order. Raises Unreadable and Full."""
    if "content.xml" not in archive:
        raise Unreadable("is damaged: its text is missing")
    body = _Body(found)
    parse_xml(archive, "content.xml", found, body.start, body.end, body.text)


class _Columns:
    """The columns of a table that have been named, and which of them are not shown."""

    def __init__(self) -> None:
        self.count = 0
        self.hidden: set[int] = set()

    def add(self, times: int, *, hidden: bool) -> None:
        end = min(self.count + times, _MAX_REPEATED)
        if hidden:
            self.hidden.update(range(self.count, end))
        self.count = end


class _Body:
    """What the parser has come to. `_lines`: the paragraphs that are open, since a note lies within
    one."""

    def __init__(self, found: ExtractedText) -> None:
        self._found = found
        self._lines: list[tuple[str, list[str]]] = []
        self._links: list[str] = []
        self._lists = 0
        self._skipped = 0
        self._row_times = 0
        self._cell_times = 0
        self._cell: list[str] | None = None
        self._row: list[str] | None = None
        self._head = False
        self._hidden_tables: set[str] = set()
        self._tables: list[_Columns] = []
        self._style = ""

    def start(self, name: str, given: dict[str, str]) -> None:
        tag = name.rpartition(" ")[2]
        said = {key.rpartition(" ")[2]: value for key, value in given.items()}
        if self._skipped or tag in _SKIPPED_TAGS:
            self._skipped += 1
            return
        match tag:
            case "style":
                self._style = said.get("name", "") if said.get("family") == "table" else ""
            case "p":
                self._lines.append(("- " if self._lists and self._cell is None else "", []))
            case "h":
                level = min(max(_parse_int(said.get("outline-level")), 1), 6)
                self._lines.append(("#" * level + " ", []))
            case "s":
                self.text(" " * min(max(_parse_int(said.get("c")), 1), 80))
            case "tab" | "line-break":
                self.text(" ")
            case "a":
                to = said.get("href", "")
                self._links.append(to if to.startswith(("http://", "https://", "mailto:")) else "")
                self.text("[" if self._links[-1] else "")
            case "list":
                self._lists += 1
            case "page" if said.get("name"):
                self._found.add_block(f"## {format_cell(said['name'])}")
            case _ if "table" in tag:
                self._begin_in_table(tag, said)

    def _begin_in_table(self, tag: str, said: dict[str, str]) -> None:
        match tag:
            case "table-properties" if said.get("display") == "false":
                self._hidden_tables.add(self._style)
            case "table" if said.get("style-name") in self._hidden_tables:
                self._found.hidden["hidden sheets"] += 1
                self._skipped = 1
            case "table":
                self._head = True
                self._tables.append(_Columns())
                self._found.add_block(f"## {format_cell(said['name'])}" if said.get("name") else "")
            case "table-column" if self._tables:
                times = max(_parse_int(said.get("number-columns-repeated")), 1)
                hidden = said.get("visibility") in ("collapse", "filter")
                self._tables[-1].add(times, hidden=hidden)
            case "table-row":
                times = max(_parse_int(said.get("number-rows-repeated")), 1)
                is_hidden = said.get("visibility") in ("collapse", "filter")
                self._row = []
                self._row_times = 0 if is_hidden else min(times, _MAX_REPEATED)
            case "table-cell" | "covered-table-cell" if self._row is not None:
                self._cell = []
                self._cell_times = max(_parse_int(said.get("number-columns-repeated")), 1)

    def text(self, text: str) -> None:
        if self._skipped:
            self._found.hidden["hidden text"] += bool(text.strip())
        elif self._lines:
            self._lines[-1][1].append(text)

    def end(self, name: str) -> None:
        if self._skipped:
            self._skipped -= 1
            return
        match name.rpartition(" ")[2]:
            case "p" | "h" if self._lines:
                self._end_paragraph(*self._lines.pop())
            case "a" if self._links:
                to = self._links.pop()
                self.text(f"]({to})" if to else "")
            case "list":
                self._lists -= 1
            case "table-cell" | "covered-table-cell" if (
                self._cell is not None and self._row is not None
            ):
                text = " ".join(self._cell)
                room = _MAX_REPEATED - len(self._row)
                self._row += [text] * min(self._cell_times, room)
                self._cell = None
            case "table-row" if self._row is not None:
                self._end_row(self._row)
            case "table":
                self._found.add("\n")
                if self._tables:
                    self._tables.pop()

    def _end_paragraph(self, before: str, line: list[str]) -> None:
        text = "".join(line).strip()
        if self._cell is not None:
            self._cell.append(text)
        elif text:
            if before.startswith("#") and not self._found.title:
                self._found.title = text[:200]
            self._found.add_block(before + text)

    def _end_row(self, row: list[str]) -> None:
        self._row = None
        if not self._row_times:
            self._found.hidden["hidden rows"] += any(row)
            return
        hidden = self._tables[-1].hidden if self._tables else set[int]()
        self._found.hidden["hidden cells"] += sum(bool(row[at]) for at in hidden if at < len(row))
        row = [text for at, text in enumerate(row) if at not in hidden]
        while row and not row[-1]:
            row.pop()
        if not row:
            return
        for _ in range(self._row_times):
            self._found.add("| " + " | ".join(format_cell(each) for each in row) + " |\n")
            if self._head:
                self._found.add("|" + " --- |" * len(row) + "\n")
                self._head = False


def _parse_int(text: str | None) -> int:
    try:
        return int((text or "")[:12])
    except ValueError:
        return 0
