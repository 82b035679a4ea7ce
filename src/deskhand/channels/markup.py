"""Formatted text in other forms: HTML, and words alone."""

from __future__ import annotations

import html
import re
from itertools import groupby

from ..types.addresses import find_live_spans
from .rich_text import Rich, Span, iter_runs

_TAGS = {"bold": "strong", "italic": "em", "strikethrough": "del", "code": "code"}
_BLOCKS = ("pre", "blockquote")
_CODE = ("code", "pre")
_JOINT = re.compile("[:.@\u2024\u3002\ufe52\uff0e\uff61]")


def write_plain(rich: Rich) -> str:
    """The words, and behind a link where it leads. Where not every address may be followed, those
    that may not are written so that no program makes a link of them."""
    words: list[str] = []
    for link, runs in groupby(iter_runs(rich), key=lambda run: find_link(run[1])):
        begun = len(words)
        words += [_write_plain_run(text, spans, guarded=rich.guarded) for text, spans in runs]
        if link and link != "".join(words[begun:]):
            words.append(f" ({link})")
    return "".join(words)


def _write_plain_run(text: str, spans: tuple[Span, ...], *, guarded: bool) -> str:
    return break_addresses(text) if guarded and is_code(spans) else text


def write_html(rich: Rich) -> str:
    """As HTML that needs no style of its own. Nothing that the text says is a tag, and there are no
    pictures, which would be fetched."""
    words: list[str] = []
    for block, runs in groupby(iter_runs(rich), key=lambda run: find_block(run[1])):
        inner = "".join(_write_html_run(text, spans, rich) for text, spans in runs)
        if block == "pre":
            words.append(f"<pre><code>{inner}</code></pre>")
        elif block:
            words.append(f"<blockquote>{_break_lines(inner)}</blockquote>")
        else:
            words.append(_break_lines(inner))
    return "".join(words)


def _write_html_run(text: str, spans: tuple[Span, ...], rich: Rich) -> str:
    if rich.guarded and is_code(spans):
        text = break_addresses(text)
    written = html.escape(text)
    for kind in sorted({span.kind for span in spans if span.kind in _TAGS}):
        written = f"<{_TAGS[kind]}>{written}</{_TAGS[kind]}>"
    if link := find_link(spans):
        written = f'<a href="{html.escape(link)}" rel="noreferrer">{written}</a>'
    return written


def break_addresses(text: str) -> str:
    """The text with every address written so that it leads nowhere: `https[:]//evil[.]test`."""
    words: list[str] = []
    at = 0
    for start, end in find_live_spans(text):
        words += [text[at:start], _JOINT.sub(r"[\g<0>]", text[start:end])]
        at = end
    return "".join(words) + text[at:]


def is_code(spans: tuple[Span, ...]) -> bool:
    return any(span.kind in _CODE for span in spans)


def find_link(spans: tuple[Span, ...]) -> str:
    """Where a text with these spans leads, or ''."""
    return next((span.detail for span in spans if span.kind == "text_link"), "")


def find_block(spans: tuple[Span, ...]) -> str:
    kinds = {span.kind for span in spans}
    return next((kind for kind in _BLOCKS if kind in kinds), "")  # code in a quote stays code


def _break_lines(written: str) -> str:
    return written.strip("\n").replace("\n", "<br>\n")
