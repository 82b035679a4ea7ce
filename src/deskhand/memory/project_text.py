"""Reads and writes files of notes: Markdown in pieces that together are exactly the file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from ..types.messages import clean_text
from .facts import fit_fact_text

END = "<!-- deskhand:end -->"
_BEGIN = re.compile(r"^<!-- deskhand:(?P<name>[a-z]+)\b[^\n]*?-->[ \t\r]*$", re.MULTILINE)
_END = re.compile(r"^<!-- deskhand:end -->[ \t\r]*$", re.MULTILINE)
_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")
_BULLET = re.compile(r"(?P<indent>[ \t]*)(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_HEADING = re.compile(r"(#{1,6})(?=[ \t]|#*$)(.*)")
_FENCE = re.compile(r"[ \t]*(```|~~~)")
_SOURCE = re.compile(r"\*Source: .*\*$")
_WORD = re.compile(r"\w")
_LEARNING = re.compile(
    r"(?=[^\n]*\Z)\[(?P<category>[^\]]*)\] Mistake: (?P<mistake>.*?) Correction: (?P<correction>.*)"
)
_BOLD = re.compile(r"\*\*(?P<name>Mistake|Correction):?\*\*:?\s*(?P<text>.*)")

Form = Literal["lines", "topics", "learnings"]


class Sheet(msgspec.Struct, frozen=True):
    """A file of notes. `path` is relative to the workspace, `section` is the name of its marked
    part ('' for none), and `note` explains it beside the mark. `subject` is put before the text of
    each entry. In a `log` entries stay when their facts are closed."""

    path: str
    section: str = ""
    form: Form = "lines"
    title: str = ""
    note: str = ""
    subject: str = ""
    log: bool = False


class RenderedFact(msgspec.Struct, frozen=True):
    """A fact as Markdown, and the text that is read back from that."""

    raw: str
    text: str


class Chunk(msgspec.Struct):
    """Some lines of a file, and the text of the entry in them ('' when there is none). `ours`: they
    are in the marked part. `key` is the key of the fact that says the same."""

    raw: str
    text: str = ""
    ours: bool = False
    key: str = ""


class MemorySheetParts(msgspec.Struct, frozen=True):
    """A file: the text before the marked part, in it, and after it. Without a marked part all is
    `head`. `begin` and `end` are the marks."""

    head: tuple[Chunk, ...]
    body: tuple[Chunk, ...] = ()
    tail: tuple[Chunk, ...] = ()
    marked: bool = False
    begin: str = ""
    end: str = ""


def split_sheet(sheet: Sheet, text: str) -> MemorySheetParts:
    """Split a file. When one of the two marks is missing, there is no marked part."""
    if sheet.section:
        for begin in _BEGIN.finditer(text):
            end = _END.search(text, begin.end())
            if begin["name"] == sheet.section and end is not None:
                inner = begin.end() + 1
                behind = min(end.end() + 1, len(text))
                head = text[: begin.start()]
                body = text[inner : end.start()]
                tail = text[behind:]
                read = split_paragraphs if sheet.form == "lines" else split_sections
                chunks = tuple(read(body, sheet))
                for chunk in chunks:
                    chunk.ours = True
                marks = (text[begin.start() : inner], text[end.start() : behind])
                return MemorySheetParts(
                    tuple(split_paragraphs(head, sheet, True)),
                    chunks,
                    tuple(split_paragraphs(tail, sheet)),
                    True,
                    *marks,
                )
    return MemorySheetParts(tuple(split_paragraphs(text, sheet, True)))


def render_sheet(
    sheet: Sheet, parts: MemorySheetParts, body: Sequence[Chunk], more: Sequence[str]
) -> str:
    """The file with this marked part, and `more` at the end of it. Everything else stays."""
    head = _join_chunks(parts.head)
    tail = _join_chunks(parts.tail)
    inner = _join_chunks(body)
    if not parts.marked and not more:
        return head
    for raw in more:
        gap = "\n" if sheet.form != "lines" and inner and not inner.endswith("\n\n") else ""
        inner = f"{_end_with_newline(inner)}{gap}{raw}\n"
    if parts.marked:
        body_text = _end_with_newline(inner) if more else inner
        return f"{head}{parts.begin}{body_text}{parts.end}{tail}"
    start = ""
    if head:
        start = f"{_end_with_newline(head)}\n"
    elif sheet.title:
        start = f"# {sheet.title}\n\n"
    return f"{start}<!-- deskhand:{sheet.section} {sheet.note} -->\n{inner}{END}\n"


def read_entries(sheet: Sheet, text: str) -> list[tuple[bool, str]]:
    """The entries of a file, each with whether it is in the marked part."""
    parts = split_sheet(sheet, text)
    return [(each.ours, each.text) for each in (*parts.head, *parts.body, *parts.tail) if each.text]


def _join_chunks(chunks: Iterable[Chunk]) -> str:
    return "".join(chunk.raw for chunk in chunks)


def _end_with_newline(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def split_paragraphs(text: str, sheet: Sheet, front: bool = False) -> list[Chunk]:
    """A chunk for each paragraph and each item of a list, with the heading before it. Comments,
    code and, at the `front` of a file, front matter have no text."""
    found: list[Chunk] = []
    raw: list[list[str]] = []
    heading = ""
    until = ""
    open_ = False
    for number, line in enumerate(_LINE.findall(text)):
        bare = line.strip()
        fence = _FENCE.match(line)
        bullet = _BULLET.match(line)
        if until:
            open_ = False
            until = "" if _is_end(bare, until) else until
        elif bare == "---" and front and not number and "\n---" in text[3:]:
            until = "---"
            open_ = False
        elif bare.startswith("<!--"):
            until = "" if "-->" in bare else "-->"
            open_ = False
        elif fence:
            until = fence[1]
            open_ = False
        elif title := _HEADING.match(bare):
            heading = _heading_text(title[2]) if len(title[1]) > 1 else ""
            open_ = False
        elif not bare:
            open_ = False
        elif open_ and not (bullet and not bullet["indent"]):
            raw[-1].append(line)
            continue
        else:
            found.append(Chunk(line, "\0" + heading))
            raw.append([line])
            open_ = True
            continue
        found.append(Chunk(line))
        raw.append([line])
    for chunk, pieces in zip(found, raw, strict=True):
        chunk.raw = "".join(pieces)
        if chunk.text:
            chunk.text = _entry_text(chunk.raw, (sheet.subject, chunk.text[1:]))
    return found


def _heading_text(title: str) -> str:
    """A heading without closing hashes."""
    title = title.strip()
    plain = title.rstrip("#")
    return plain.rstrip() if not plain or plain[-1] in " \t" else title


def _is_end(bare: str, until: str) -> bool:
    return until in bare if until == "-->" else bare.startswith(until)


def _entry_text(raw: str, about: Iterable[str]) -> str:
    bullet = _BULLET.match(raw)
    said = fit_fact_text(clean_text(raw[bullet.end() :] if bullet else raw))
    return fit_fact_text(": ".join(filter(None, (*about, said)))) if _WORD.search(said) else ""


def split_sections(text: str, sheet: Sheet) -> list[Chunk]:
    """A chunk for each heading and what follows it."""
    starts = [match.start() for match in re.finditer(r"^## ", text, re.MULTILINE)]
    found = [Chunk(line) for line in _LINE.findall(text[: starts[0] if starts else len(text)])]
    for start, end in pairwise([*starts, len(text)]):
        raw = text[start:end]
        found.append(Chunk(raw, _section_text(raw, sheet.form)))
    return found


def _section_text(raw: str, form: Form) -> str:
    title, *rest = [line.strip() for line in raw.split("\n")]
    body = [line for line in rest if line and not _SOURCE.match(line)]
    topic = fit_fact_text(title[3:])
    if form == "learnings":
        named = {match["name"]: match["text"] for line in body if (match := _BOLD.match(line))}
        if len(named) == 2 and len(body) == 2:
            return fit_fact_text(
                f"[{topic}] Mistake: {named['Mistake']} Correction: {named['Correction']}"
            )
        said = " ".join(body)
        return fit_fact_text(f"[{topic}] {said}") if _WORD.search(said) else ""
    said = " ".join(body)
    return fit_fact_text(f"{topic}: {said}") if _WORD.search(said) else ""


def render_fact(
    sheet: Sheet, text: str, source: str = "", confidence: float = 1.0
) -> RenderedFact | None:
    """A fact as Markdown for this file, or None when it could not be read back."""
    about = f"*Source: {source} | Confidence: {confidence:.2g}*" if source else ""
    match sheet.form:
        case "lines":
            raw = f"- {fit_fact_text(text)}"
        case "topics":
            raw = _render_topic(text)
        case "learnings":
            raw = _render_learning(text)
    raw = f"{raw}\n{about}" if about and sheet.form != "lines" else raw
    read = (split_paragraphs if sheet.form == "lines" else split_sections)(raw, sheet)
    return RenderedFact(raw, read[0].text) if len(read) == 1 and read[0].text else None


def _render_topic(text: str) -> str:
    topic, colon, said = text.partition(": ")
    if not colon:
        return f"## General\n{_strip_heading_marks(text)}"
    return f"## {_strip_heading_marks(topic) or 'General'}\n{_strip_heading_marks(said)}"


def _render_learning(text: str) -> str:
    learned = _LEARNING.fullmatch(text)
    if learned is not None:
        category = _strip_heading_marks(learned["category"]) or "general"
        wrong = _strip_heading_marks(learned["mistake"])
        right = _strip_heading_marks(learned["correction"])
        return f"## {category}\n**Mistake**: {wrong}\n**Correction**: {right}"
    category = "general"
    said = text
    if text.startswith("["):
        category, _, said = text[1:].partition("] ")
    return f"## {_strip_heading_marks(category) or 'general'}\n{_strip_heading_marks(said)}"


def _strip_heading_marks(text: str) -> str:
    return fit_fact_text(text).lstrip("#").strip()


def format_knowledge(topic: str, said: str) -> str:
    """Knowledge as the text of a fact."""
    return f"{_strip_heading_marks(topic).replace(': ', ', ') or 'General'}: {fit_fact_text(said)}"


def format_learning(mistake: str, correction: str, category: str) -> str:
    """Something learned from a mistake, as the text of a fact."""
    about = _strip_heading_marks(category).replace("]", ")") or "general"
    return f"[{about}] Mistake: {fit_fact_text(mistake)} Correction: {fit_fact_text(correction)}"
