"""Markdown as Telegram shows it: plain text and what of it is bold, code, a link; cut to the length
that it takes.

https://core.telegram.org/bots/api#messageentity: lengths and offsets count UTF-16 code units. With
entities there is nothing to escape, so nothing that a model writes can break a message or be taken
for markup.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from itertools import islice, pairwise

import msgspec
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline, link
from markdown_it.token import Token

from ..types.addresses import find_live_spans
from .text_table import make_list_items, read_alignments, read_table, render_columns

MAX_TEXT_UNITS = 4096
MAX_MARKDOWN_CHARS = 100_000
"""What is longer is taken as it is: nobody reads it for its looks."""
MAX_ENTITIES = 100
"""More in one message are ignored."""
MAX_SPANS = 5_000
"""With more, all of the text is shown as code: no message has so many."""
MAX_LINK_DEPTH = 4
"""A link may hold a picture and a picture a link. Each bracket that never closes is read so many
times."""
_STYLES = {"strong": "bold", "em": "italic", "s": "strikethrough"}
_CODE_KINDS = ("code", "pre")
_LINK_SCHEMES = ("http://", "https://", "tg://", "mailto:")


class Span(msgspec.Struct, frozen=True):
    """A stretch of text with a style. `detail` is the address of a link, or the language of
    code."""

    kind: str
    start: int
    end: int
    detail: str = ""


class Rich(msgspec.Struct, frozen=True):
    """Text with its spans, whose places count UTF-16 code units. `guarded`: no address in it leads
    anywhere but those that its spans link to."""

    text: str
    spans: tuple[Span, ...] = ()
    guarded: bool = False


def count_units(text: str) -> int:
    """The length of a text as Telegram counts it."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def render_markdown(markdown: str) -> Rich:
    """What the text says, and how it is to look. Anything that is no Markdown comes out as it
    was."""
    out = _Out()
    if len(markdown) <= MAX_MARKDOWN_CHARS:
        _render_blocks(_make_parser().parse(markdown), out)
    rich = out.to_rich()
    return rich if rich.text else Rich(markdown.strip())


def _make_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("reference")
    spans = MarkdownIt("commonmark", {"html": False, "maxNesting": MAX_LINK_DEPTH})
    spans.enable("strikethrough")
    spans.inline.ruler.at("link", _read_link)

    def read_spans(state: StateCore) -> None:
        for token in state.tokens:
            if token.type == "inline":
                token.children = []
                last = {"last_link": token.content.rfind("](")}
                spans.inline.parse(token.content, spans, last, token.children)

    parser.core.ruler.at("inline", read_spans)
    return parser


def _read_link(state: StateInline, silent: bool) -> bool:
    """A bracket behind the last `](` begins no link: looking for its end is the dear part."""
    return state.pos < state.env["last_link"] and link(state, silent)


def defang_links(rich: Rich, links: Collection[str] | None) -> Rich:
    """The text with everything as code that Telegram would make a link of, but for these addresses;
    and with no link to another one. None leaves all as it is."""
    if links is None:
        return rich
    places = _Places(rich.text)
    text = rich.text
    at = count_units(rich.text)
    dead: list[tuple[int, int]] = []
    for start, end in find_live_spans(rich.text):
        if rich.text[start:end] not in links:
            dead.append((places.to_units(start), places.to_units(end)))
    spans: list[Span] = []
    for span in rich.spans:
        if span.kind != "text_link" or span.detail in links:
            spans += _split_around(span, dead)
        else:  # what a link led to is said, as it is no link any more
            text += f"\n{span.detail}"
            spans.append(Span("code", at + 1, at + 1 + count_units(span.detail)))
            at += 1 + count_units(span.detail)
        if len(spans) > MAX_SPANS:
            return Rich(rich.text, (Span("code", 0, count_units(rich.text)),), guarded=True)
    spans += _make_code_spans(dead, [span for span in rich.spans if span.kind in _CODE_KINDS])
    return Rich(text, tuple(sorted(spans, key=lambda each: each.start)), guarded=True)


def _split_around(span: Span, dead: list[tuple[int, int]]) -> Iterator[Span]:
    """What is left of a style beside these stretches, which become code: nothing else lies within
    that. A quote holds code, and what is code stays."""
    if span.kind == "blockquote" or span.kind in _CODE_KINDS:
        yield span
        return
    start = span.start
    for first, last in islice(dead, max(bisect_right(dead, (span.start, 0)) - 1, 0), None):
        if first >= span.end:
            break
        if last <= start:
            continue
        if first > start:
            yield Span(span.kind, start, first, span.detail)
        start = max(start, last)
    if start < span.end:
        yield Span(span.kind, start, span.end, span.detail)


def _make_code_spans(dead: list[tuple[int, int]], code: list[Span]) -> Iterator[Span]:
    """These stretches as code, where they are none already. Both stand from left to right."""
    before = 0
    for start, end in dead:
        while before < len(code) and code[before].end < end:
            before += 1
        if before < len(code) and code[before].start <= start:
            continue
        yield Span("code", start, end)


class _Places:
    """Where in a text, as Telegram counts it, a character stands; asked from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = self._units = 0

    def to_units(self, at: int) -> int:
        self._units += count_units(self._text[self._at : at])
        self._at = at
        return self._units


class _Out:
    """The text so far, in pieces, and where the spans are."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self.at = 0
        self.spans: list[Span] = []

    def add(self, text: str) -> None:
        self._pieces.append(text)
        self.at += count_units(text)

    def mark(self, kind: str, start: int, detail: str = "") -> None:
        if self.at > start:
            self.spans.append(Span(kind, start, self.at, detail))

    def to_rich(self) -> Rich:
        text = "".join(self._pieces)
        kept = text.rstrip()
        end = count_units(kept)
        spans = (
            Span(each.kind, each.start, min(each.end, end), each.detail) for each in self.spans
        )
        return Rich(
            kept,
            tuple(
                sorted(
                    (each for each in spans if each.start < each.end), key=lambda each: each.start
                )
            ),
        )


def _render_blocks(tokens: Sequence[Token], out: _Out) -> None:
    """Paragraphs, lists, quotes and code, a blank line between those that stand alone."""
    lists: list[int] = []  # the next number of each list that is open, 0 for one with dots
    opened: list[int] = []  # where the headings and quotes that are open begin
    in_table = False
    for i, token in enumerate(tokens):
        kind = token.type
        if kind in ("table_open", "table_close"):
            in_table = kind == "table_open"
            if in_table:
                _render_table(tokens[i:], out)
        elif in_table:
            continue
        elif kind.startswith(("bullet_list", "ordered_list", "list_item")):
            _render_list_token(token, lists, out)
        elif kind.startswith(("heading", "blockquote")):
            _render_heading_or_quote(token, opened, out)
        elif kind == "paragraph_close":
            out.add("\n" if token.hidden or lists else "\n\n")
        elif kind in ("fence", "code_block"):
            start = out.at
            out.add(token.content.rstrip("\n"))
            out.mark("pre", start, token.info.split()[0] if token.info.strip() else "")
            out.add("\n" if lists else "\n\n")
        elif kind == "hr":
            out.add("———\n\n")
        elif kind == "inline":
            _render_inline(token.children or (), out)


def _render_heading_or_quote(token: Token, opened: list[int], out: _Out) -> None:
    match token.type:
        case "heading_close":
            out.mark("bold", opened.pop())
            out.add("\n\n")
        case "blockquote_close":
            start = opened.pop()
            if not opened:  # Telegram knows no quote in a quote
                out.mark("blockquote", start)
        case _:
            opened.append(out.at)


def _render_table(tokens: Sequence[Token], out: _Out) -> None:
    rows = read_table(tokens)
    start = out.at
    columns = render_columns(rows, read_alignments(tokens))
    if columns:
        out.add(columns)
        out.mark("pre", start)
        out.add("\n\n")
        return
    for first, others in make_list_items(rows):
        start = out.at
        out.add(first)
        out.mark("bold", start)
        out.add("".join(f"\n• {each}" for each in others) + "\n\n")


def _render_list_token(token: Token, lists: list[int], out: _Out) -> None:
    match token.type:
        case "bullet_list_open":
            lists.append(0)
        case "ordered_list_open":
            lists.append(int(token.attrs.get("start", 1)))
        case "list_item_open":
            out.add("  " * (len(lists) - 1) + (f"{lists[-1]}. " if lists[-1] else "• "))
            lists[-1] += bool(lists[-1])
        case "list_item_close":
            pass
        case _:
            lists.pop()
            out.add("" if lists else "\n")


def _render_inline(tokens: Sequence[Token], out: _Out) -> None:
    open_: list[tuple[str, int, str]] = []
    for token in tokens:
        name, _, side = token.type.rpartition("_")
        if token.type in ("softbreak", "hardbreak"):
            out.add("\n")
        elif token.type == "code_inline":
            start = out.at
            out.add(token.content)
            out.mark("code", start)
        elif token.type == "image":  # a picture is never fetched by itself; its address is shown
            out.add(f"{token.content} ({token.attrs.get('src', '')})".lstrip())
        elif side == "open":
            open_.append((name, out.at, str(token.attrs.get("href", ""))))
        elif side == "close":
            style, start, href = open_.pop()
            if style == "link" and href.lower().startswith(_LINK_SCHEMES):
                out.mark("text_link", start, href)
            elif style in _STYLES:
                out.mark(_STYLES[style], start)
        else:
            out.add(token.content)


def split_text(rich: Rich, limit: int = MAX_TEXT_UNITS, first: int = 0) -> Iterator[Rich]:
    """The text in pieces of at most `limit` units, cut at a blank line, a line, a word, or else
    anywhere between two characters. The first one has at most `first` units, where that is given.
    Spans go on in the next piece."""
    text = rich.text
    cutter = _SpanCutter(rich.spans)
    at = 0
    offset = 0
    most = first or limit
    while at < len(text):
        length = _count_fitting(text[at : at + most], most)
        cut = at + length
        if cut < len(text):
            found = (text.rfind(mark, at + length // 2, cut + 1) for mark in ("\n\n", "\n", " "))
            cut = next((place for place in found if place > at), cut)
        piece = text[at:cut].rstrip()
        if piece:
            spans = cutter.clip(offset, offset + count_units(piece))
            if (
                rich.guarded and len(spans) > MAX_ENTITIES
            ):  # what is over would be ignored, and be live
                spans = (Span("code", 0, count_units(piece)),)
            yield Rich(piece, spans[:MAX_ENTITIES], rich.guarded)
        after = cut + 1 if text[cut : cut + 1] == " " else cut
        while text[after : after + 1] == "\n":
            after += 1
        offset += count_units(text[at:after])
        at = after
        most = limit


class _SpanCutter:
    """Spans, cut to stretches that are asked for from left to right."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._waiting = sorted(spans, key=lambda each: each.start, reverse=True)
        self._open: list[Span] = []

    def clip(self, start: int, end: int) -> tuple[Span, ...]:
        """Those in this stretch, with places that count from its beginning."""
        while self._waiting and self._waiting[-1].start < end:
            self._open.append(self._waiting.pop())
        self._open = [each for each in self._open if each.end > start]
        return tuple(
            Span(
                each.kind,
                max(each.start, start) - start,
                min(each.end, end) - start,
                each.detail,
            )
            for each in self._open
        )


def _count_fitting(text: str, limit: int) -> int:
    """How many characters fit into so many units."""
    if text.isascii():
        return min(len(text), limit)
    fitting = text.encode("utf-16-le", "surrogatepass")[: 2 * limit]
    if 0xD8 <= fitting[-1] <= 0xDB:  # the first half of a character
        fitting = fitting[:-2]
    return len(fitting.decode("utf-16-le", "surrogatepass"))


def iter_runs(rich: Rich) -> Iterator[tuple[str, tuple[Span, ...]]]:
    """The text in stretches over which the same spans hold, in order; each span is there from its
    first stretch to its last. For pieces of one message, which have few spans."""
    data = rich.text.encode("utf-16-le", "surrogatepass")
    end = len(data) // 2
    edges = {0, end}
    for span in rich.spans:
        edges.update((min(span.start, end), min(span.end, end)))
    places = sorted(edges)
    for first, last in pairwise(places):
        text = data[2 * first : 2 * last].decode("utf-16-le", "surrogatepass")
        yield text, tuple(each for each in rich.spans if each.start <= first and last <= each.end)
