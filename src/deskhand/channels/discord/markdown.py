"""Formatted text as Discord's Markdown, in which everything else that could be a mark is escaped.

https://support.discord.com/hc/articles/210298617
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

from ...types.addresses import find_live_spans
from ..markup import find_block, find_link
from ..rich_text import Rich, Span, iter_runs

_MARKS = {"bold": "**", "italic": "*", "strikethrough": "~~"}
_WEB = ("https://", "http://")
_SPECIAL = re.compile(r"[\\*_~`|<>\[\]()]")
_LINE_START = re.compile(r"^([ \t]*)([#+-])", re.MULTILINE)
_TICKS = re.compile("`+")

Run = tuple[str, tuple[Span, ...]]


def write_markdown(rich: Rich) -> str:
    """The text as it is sent. Only what its spans link to, and addresses that stand in no code, are
    links."""
    words = []
    for block, runs in groupby(iter_runs(rich), key=lambda run: find_block(run[1])):
        if block == "pre":
            words.append(_write_code_block(list(runs)))
        elif block:
            words.append("\n".join(f"> {line}" for line in _write_runs(runs).split("\n")))
        else:
            words.append(_write_runs(runs))
    return "".join(words)


def _write_code_block(runs: list[Run]) -> str:
    text = "".join(text for text, _ in runs).replace("```", "``\u200b`")
    language = next((span.detail for _, spans in runs for span in spans if span.detail), "")
    named = language if re.fullmatch(r"[\w+#-]{1,20}", language) else ""
    return f"```{named}\n{text}\n```"


def _write_runs(runs: Iterable[Run]) -> str:
    """Marks that hold over several stretches are opened and closed once."""
    words: list[str] = []
    open_: list[str] = []
    for text, spans in runs:
        kinds = {span.kind for span in spans}
        wanted = [mark for kind, mark in _MARKS.items() if kind in kinds]
        keep = [mark for i, mark in enumerate(open_) if wanted[: i + 1] == open_[: i + 1]]
        words += reversed(open_[len(keep) :])
        words += wanted[len(keep) :]
        open_ = wanted
        words.append(_write_run(text, kinds, find_link(spans)))
    return "".join(words + open_[::-1])


def _write_run(text: str, kinds: set[str], link: str) -> str:
    if "code" in kinds:
        return _write_code(text)
    if link.startswith(_WEB):
        return f"[{_escape(text)}](<{link.replace('>', '%3E').replace(' ', '%20')}>)"
    written = []
    at = 0
    for start, end in find_live_spans(text):
        if text.startswith(_WEB, start):
            written += [_escape(text[at:start]), text[start:end]]
            at = end
    written.append(_escape(text[at:]))
    return "".join(written) + (f" ({_escape(link)})" if link else "")


def _write_code(text: str) -> str:
    """Between more backticks than stand in it."""
    longest = max((len(found) for found in _TICKS.findall(text)), default=0)
    fence = "`" * (longest + 1)
    room = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{room}{text}{room}{fence}"


def _escape(text: str) -> str:
    return _LINE_START.sub(r"\1\\\2", _SPECIAL.sub(r"\\\g<0>", text))
