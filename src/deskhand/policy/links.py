"""Addresses in text: whether one stands there as a whole, and answers that lead nowhere by themselves. Pure."""

from __future__ import annotations

import re

_OF_A_URL = r"[^\s<>\"'`\\^{}|]"
_URL = re.compile(rf"\b[a-z][a-z0-9+.-]*://{_OF_A_URL}+|\b(?:www\.|mailto:){_OF_A_URL}+", re.IGNORECASE)
_LINK = re.compile(r"(!?)\[([^\]\n]*)\]\(\s*<?([^)>\s]+)>?(?:\s+[\"'(][^)\n]*)?\)")
_DEFINITION = re.compile(r"^ {0,3}\[([^\]\n]+)\]:\s*<?(\S+?)>?(?=\s|$)", re.MULTILINE)
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


def neutralised(text: str, known: str) -> str:
    """The text with every address that does not stand in `known` as a whole shown as code, which no platform fetches
    and no touch follows: a link that somebody else's words composed may carry what they should not get. Pictures from
    elsewhere become words."""
    if "://" not in text and "](" not in text and "]:" not in text and "www." not in text and "mailto:" not in text:
        return text

    def link(found: re.Match[str]) -> str:
        picture, words, url = found[1], found[2], found[3]
        if picture:
            return f"[picture: {words}] `{url}`"
        return found[0] if stands_in(url, known) else f"{words} `{url}`"

    def bare(found: re.Match[str]) -> str:
        url = found[0].rstrip(_ENDS)
        rest = found[0][len(url) :]
        return found[0] if stands_in(url, known) else f"`{url}`{rest}"

    pieces = re.split(r"(```.*?```|`[^`\n]*`)", text, flags=re.DOTALL)
    for i in range(0, len(pieces), 2):
        done = _DEFINITION.sub(
            lambda found: found[0] if stands_in(found[2], known) else f"{found[1]}: `{found[2]}`", pieces[i]
        )
        done = _LINK.sub(link, done)
        inner = re.split(r"(`[^`\n]*`)", done)
        inner[::2] = [_URL.sub(bare, piece) for piece in inner[::2]]
        pieces[i] = "".join(inner)
    return "".join(pieces)
