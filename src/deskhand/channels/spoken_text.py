"""Markdown as somebody would read it aloud."""

from __future__ import annotations

import re

from ..types.addresses import find_live_spans
from .rich_text import iter_runs, render_markdown

_ENDS = (".", "!", "?", ":", ";", ",", "…")
_HOST = re.compile(r"(?:[a-z][a-z0-9+.-]{0,20}://)?(?:[^/@\s]*@)?([^/?#:\s]+)", re.IGNORECASE)
_SIGNS = re.compile(r"[•*_#`|>]+")
_EMOJI = re.compile("[\U0001f000-\U0001faff\u2600-\u27bf\ufe0f\u200d]+")


def render_spoken(markdown: str) -> str:
    """The words alone, on one line: no code, no signs, and of an address the name of its host. ''
    where there are none."""
    words = []
    for text, spans in iter_runs(render_markdown(markdown)):
        words.append(" … " if any(span.kind == "pre" for span in spans) else text)
    whole = "".join(words)
    said = []
    at = 0
    for start, end in find_live_spans(whole):
        host = _HOST.match(whole[start:end])
        said += [whole[at:start], host[1] if host else ""]
        at = end
    said.append(whole[at:])
    plain = _EMOJI.sub(" ", _SIGNS.sub(" ", "".join(said)))
    if not any(map(str.isalnum, plain)):
        return ""
    lines = filter(None, (" ".join(line.split()) for line in plain.splitlines()))
    return " ".join(line if line.endswith(_ENDS) else f"{line}." for line in lines)
