"""Word documents (Office Open XML, ECMA-376 part 1, 17): paragraphs, headings, lists, tables and
links."""

from __future__ import annotations

import re

from .archive import Archive, parse_xml, read_relations
from .found import ExtractedText, Unreadable, format_cell

_HEADING = re.compile(r"(?:heading|berschrift|titre|ttulo|titolo|kop)\s*([1-6])$", re.I)
_MAX_NESTED_TABLES = 20
"""Tables within tables that are told apart; deeper ones run together."""


def read_word(archive: Archive, found: ExtractedText) -> None:
    """The text of the document's body, in its order. Raises Unreadable and Full."""
    parts = read_relations(archive, "", found).values()
    documents = [to for to, kind in parts if kind == "officeDocument"]
    main = next(iter(documents), "") or "word/document.xml"
    if main not in archive:
        raise Unreadable("is damaged: its text is missing")

    relations = read_relations(archive, main, found)
    links = {name: to for name, (to, kind) in relations.items() if kind == "hyperlink"}
    body = _Body(found, links)
    parse_xml(archive, main, found, body.start, body.end, body.text)


class _Body:
    """What the parser has come to."""

    def __init__(self, found: ExtractedText, links: dict[str, str]) -> None:
        self._found = found
        self._links = links
        self._line: list[str] = []
        self._before = ""
        self._link = ""
        self._hidden = False
        self._reading = False
        self._tables: list[list[list[str]]] = []

    def start(self, name: str, given: dict[str, str]) -> None:
        space, _, tag = name.rpartition(" ")
        value = given.get(f"{space} val", "")
        match tag:
            case "p":
                self._line = []
                self._before = ""
            case "pStyle" | "numPr":
                self._before = self._markdown_prefix(tag, value) or self._before
            case "r":
                self._hidden = False
            case "vanish":
                self._hidden = value not in ("0", "false")
            case "t":
                self._reading = True
            case "tab" | "br" | "cr":
                self._line.append(" " if tag == "tab" else "\n")
            case "hyperlink":
                to = self._links.get(
                    next((each for key, each in given.items() if key.endswith(" id")), ""), ""
                )
                self._link = to if to.startswith(("http://", "https://", "mailto:")) else ""
                self._line.append("[" if self._link else "")
            case "tbl" | "tr" | "tc":
                self._begin_in_table(tag)

    def _markdown_prefix(self, tag: str, style: str) -> str:
        """What Markdown writes before a paragraph of this kind."""
        if heading := _HEADING.search(style):
            return "#" * int(heading[1]) + " "
        if style.lower() == "title":
            return "# "
        return "- " if style.startswith("List") or (tag == "numPr" and not self._before) else ""

    def _begin_in_table(self, tag: str) -> None:
        if tag == "tbl" and len(self._tables) < _MAX_NESTED_TABLES:
            self._tables.append([])
        elif tag == "tr" and self._tables:
            self._tables[-1].append([])
        elif tag == "tc" and self._tables and self._tables[-1]:
            self._tables[-1][-1].append("")

    def text(self, text: str) -> None:
        if self._reading and self._hidden:
            self._found.hidden["hidden text"] += 1
        elif self._reading:
            self._line.append(text)

    def end(self, name: str) -> None:
        match name.rpartition(" ")[2]:
            case "t":
                self._reading = False
            case "hyperlink" if self._link:
                self._line.append(f"]({self._link})")
                self._link = ""
            case "p":
                self._end_paragraph("".join(self._line).strip())
            case "tbl" if self._tables:
                self._end_table([row for row in self._tables.pop() if row])

    def _end_paragraph(self, text: str) -> None:
        self._line = []
        if not text:
            return
        if self._tables and self._tables[-1] and self._tables[-1][-1]:
            row = self._tables[-1][-1]
            row[-1] = f"{row[-1]} {text}" if row[-1] else text
        elif self._before.startswith("#") and not self._found.title:
            self._found.title = text[:200]
            self._found.add_block(self._before + text)
        else:
            self._found.add_block(self._before + text)

    def _end_table(self, rows: list[list[str]]) -> None:
        if self._tables and self._tables[-1] and self._tables[-1][-1]:  # within a cell: one line
            self._tables[-1][-1][-1] += " " + "; ".join(
                ", ".join(format_cell(each) for each in row) for row in rows
            )
        else:
            self._found.add_table(rows)
