"""Presentations (Office Open XML, ECMA-376 part 1, 19): the text of each slide, and what its
speaker noted."""

from __future__ import annotations

from .archive import Archive, parse_xml, read_relations
from .found import ExtractedText, Unreadable

_PRESENTATION_PART = "ppt/presentation.xml"


def read_slides(archive: Archive, found: ExtractedText) -> None:
    """Every slide that is shown, in its order. Raises Unreadable and Full."""
    if _PRESENTATION_PART not in archive:
        raise Unreadable("is damaged: its list of slides is missing")
    known = read_relations(archive, _PRESENTATION_PART, found)
    order: list[str] = []

    def start(name: str, given: dict[str, str]) -> None:
        if name.endswith(" sldId"):
            key = next(
                (value for each, value in given.items() if each.endswith("relationships id")), ""
            )
            order.append(known.get(key, ("", ""))[0])

    parse_xml(archive, _PRESENTATION_PART, found, start)
    for number, part in enumerate(order, 1):
        if part not in archive:
            continue
        slide = _read_part(archive, part, found)
        if slide.hidden:
            found.hidden["hidden slides"] += 1
            continue
        found.add(f"## Slide {number}\n\n")
        for line in slide.lines:
            found.add_block(line)
        for notes, kind in read_relations(archive, part, found).values():
            if kind == "notesSlide" and notes in archive:
                said = [
                    line for line in _read_part(archive, notes, found).lines if not line.isdigit()
                ]
                if said:
                    found.add_block("Notes: " + " ".join(said))


class _Slide:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.hidden = False
        self._line: list[str] = []
        self._reading = False

    def start(self, name: str, given: dict[str, str]) -> None:
        match name.rpartition(" ")[2]:
            case "sld":
                self.hidden = given.get("show") in ("0", "false")
            case "p":
                self._line = []
            case "t":
                self._reading = True
            case "br" | "tab":
                self._line.append(" ")

    def text(self, text: str) -> None:
        if self._reading:
            self._line.append(text)

    def end(self, name: str) -> None:
        match name.rpartition(" ")[2]:
            case "t":
                self._reading = False
            case "p" if line := "".join(self._line).strip():
                self.lines.append(line)


def _read_part(archive: Archive, part: str, found: ExtractedText) -> _Slide:
    slide = _Slide()
    parse_xml(archive, part, found, slide.start, slide.end, slide.text)
    return slide
