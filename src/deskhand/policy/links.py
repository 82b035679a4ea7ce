"""Addresses in text: whether one stands there as a whole, and answers that lead nowhere by themselves. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

from ..types.addresses import live_stretches

_OF_A_URL = r"[^\s<>\"'`\\^{}|]"
_URL = re.compile(
    rf"(?<![a-z0-9+.-])(?:[a-z][a-z0-9+.-]*+://|www\.|mailto:){_OF_A_URL}++",
    re.IGNORECASE,
)
_LINK = re.compile(r"(!?)\[([^\[\]\n]*+)\]\([ \t\n]{0,9}<?([^)>\s]{1,4096}+)>?(?:\s{1,9}[\"'(][^)\n]{0,999}+)?\)")
_DEFINITION = re.compile(r"^ {0,3}\[([^\[\]\n]++)\]:[ \t]{0,9}\n?[ \t]{0,9}<?([^\s>]++)>?(?=\s|$)", re.MULTILINE)
_CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)
_INLINE = re.compile(r"(`[^`\n]*`)")
MOST_LINKS = 100
"""What an answer names beyond these leads nowhere."""
_ENDS = ".,;:!?)]}*_~"
"""What ends a sentence or a bracket, and hardly ever an address."""


def stands_in(url: str, text: str) -> bool:
    """Whether this very address stands in the text as a whole: not as the beginning or a part of a longer one."""
    url = url.partition("#")[0]
    for form in {url, url.rstrip("/"), url.partition("://")[2].rstrip("/")} - {""}:
        at = text.find(form)
        while at >= 0:
            end = at + len(form)
            if _begins(text, at) and _is_end(text, end):
                return True
            at = text.find(form, at + 1)
    return False


def _begins(text: str, at: int) -> bool:
    """Nothing of an address stands before it but its own scheme."""
    before = text[max(0, at - 9) : at]
    return not before or bool(re.search(r"(?:^|[\s<>\"'`(\[{*_,;=|])(?:https?://)?$", before))


def _is_end(text: str, at: int) -> bool:
    """The address is over here: whatever follows is no part of one."""
    rest = text[at : at + 40].lstrip("/")[:1] if text[at : at + 1] == "/" else text[at : at + 1]
    if not rest or not re.match(_OF_A_URL, rest) or rest == "#":
        return True
    tail = text[at : at + 40].lstrip(_ENDS)
    return rest in _ENDS and (not tail or not re.match(_OF_A_URL, tail))


def live_links(text: str, known: str) -> tuple[str, ...]:
    """The addresses in the text that stand in `known` as a whole, each once and at most MOST_LINKS: only they may lead
    anywhere."""
    found = [match[3] for match in _LINK.finditer(text)]
    found += [match[2] for match in _DEFINITION.finditer(text)]
    found += [match[0].rstrip(_ENDS) for match in _URL.finditer(text)]
    found += [text[start:end] for start, end in live_stretches(text)]
    asked = list(dict.fromkeys(found))[:MOST_LINKS]
    return tuple(url for url in asked if stands_in(url, known))


def neutralised(text: str, live: Collection[str]) -> str:
    """The text with every address but those of `live` shown as code, which no platform fetches and no touch follows: a
    link that somebody else's words composed may carry what they should not get. Pictures from elsewhere become words.

    This is Markdown still. What its renderer decodes is looked at once more by the channel (`Outgoing.links`)."""
    if "://" not in text and "](" not in text and "]:" not in text and "www." not in text and "mailto:" not in text:
        return text

    def link(found: re.Match[str]) -> str:
        picture, words, url = found[1], found[2], found[3]
        if picture:
            return f"[picture: {words}] `{url}`"
        return found[0] if url in live else f"{words} `{url}`"

    def bare(found: re.Match[str]) -> str:
        url = found[0].rstrip(_ENDS)
        return found[0] if url in live else f"`{url}`{found[0][len(url) :]}"

    def definition(found: re.Match[str]) -> str:
        return found[0] if found[2] in live else f"{found[1]}: `{found[2]}`"

    pieces = _CODE.split(text)
    for i in range(0, len(pieces), 2):
        done = _DEFINITION.sub(definition, pieces[i])
        inner = _INLINE.split(_LINK.sub(link, done))
        inner[::2] = [_URL.sub(bare, piece) for piece in inner[::2]]
        pieces[i] = "".join(inner)
    return "".join(pieces)
