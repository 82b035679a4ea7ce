"""Addresses in text: whether one stands there as a whole, and answers that lead nowhere by
themselves. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import islice

from ..types.addresses import find_live_spans

_OF_A_URL = r"[^\s<>\"'`\\^{}|]"
_URL = re.compile(
    rf"(?<![a-z0-9+.-])(?:[a-z][a-z0-9+.-]*+://|www\.|mailto:){_OF_A_URL}++",
    re.IGNORECASE,
)
_LINK = re.compile(
    r"(!?)\[([^\[\]\n]*+)\]\([ \t\n]{0,9}<?([^)>\s]{1,4096}+)>?(?:\s{1,9}[\"'(][^)\n]{0,999}+)?\)"
)
_DEFINITION = re.compile(
    r"^ {0,3}\[([^\[\]\n]++)\]:[ \t]{0,9}\n?[ \t]{0,9}<?([^\s>]++)>?(?=\s|$)", re.MULTILINE
)
_CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)
_INLINE = re.compile(r"(`[^`\n]*`)")
MAX_LINKS = 100
"""What an answer names beyond these leads nowhere."""
MAX_STARTS = 16
MAX_ENDS = 4
KNOWN_CHARS = 200_000
"""So much of what was read last is looked through for the addresses that an answer names."""
_RUN = re.compile(rf"{_OF_A_URL}+")
_DOT = re.compile(r"[.:/@]")
_BEFORE = re.compile(r"[(\[*_,;=]")
_HTTP = re.compile(r"https?://", re.IGNORECASE)
_ENDS = ".,;:!?)]}*_~"
"""What ends a sentence or a bracket, and hardly ever an address."""


def is_address_in(url: str, text: str) -> bool:
    """Whether this very address stands in the text as a whole: not as the beginning or a part of a
    longer one."""
    url = url.partition("#")[0]
    for form in {url, url.rstrip("/"), url.partition("://")[2].rstrip("/")} - {""}:
        at = text.find(form)
        while at >= 0:
            end = at + len(form)
            if _is_start(text, at) and _is_end(text, end):
                return True
            at = text.find(form, at + 1)
    return False


def _is_start(text: str, at: int) -> bool:
    """Nothing of an address stands before it but its own scheme."""
    before = text[max(0, at - 9) : at]
    return not before or bool(re.search(r"(?:^|[\s<>\"'`(\[{*_,;=|])(?:https?://)?$", before))


def _is_end(text: str, at: int) -> bool:
    """The address is over here: whatever follows is no part of one."""
    after = text[at : at + 40].lstrip("/")
    rest = after[:1]
    if not rest or not re.match(_OF_A_URL, rest) or rest == "#":
        return True
    tail = after.lstrip(_ENDS)
    return rest in _ENDS and (not tail or not re.match(_OF_A_URL, tail))


class KnownAddresses:
    """The addresses that stand in a text as a whole: what `stands_in` says of each, for many of
    them. The text is read once. What could begin or end in too many ways is none."""

    def __init__(self, text: str) -> None:
        self._known: set[str] = set()
        for found in _RUN.finditer(text[-KNOWN_CHARS:]):
            if _DOT.search(found[0]):
                self._add(found[0])

    def _add(self, run: str) -> None:
        """All that may be an address in a stretch without blanks."""
        run, fragment, _ = run.partition("#")
        cut = run.rstrip(_ENDS)
        ends = {len(run)}  # an address with a fragment is over where that begins
        if not fragment:
            ends |= {len(cut), *range(len(cut), min(len(run), len(cut) + MAX_ENDS) + 1)}
        begins = [0, *(found.end() for found in islice(_BEFORE.finditer(cut), MAX_STARTS))]
        for begin in begins:
            bare = _HTTP.match(run, begin)
            start = bare.end() if bare else begin
            for end in ends:
                if address := run[start:end].rstrip("/"):
                    self._known.add(address)

    def __contains__(self, url: str) -> bool:
        url = url.partition("#")[0]
        found = _HTTP.match(url)
        return url[found.end() if found else 0 :].rstrip("/") in self._known


def find_known_links(text: str, known: str) -> tuple[str, ...]:
    """The addresses in the text that stand in `known` as a whole, each once and at most MOST_LINKS:
    only they may lead anywhere."""
    found = [match[3] for match in _LINK.finditer(text)]
    found += [match[2] for match in _DEFINITION.finditer(text)]
    found += [match[0].rstrip(_ENDS) for match in _URL.finditer(text)]
    found += [text[start:end] for start, end in find_live_spans(text)]
    asked = list(dict.fromkeys(found))[:MAX_LINKS]
    addresses = KnownAddresses(known) if asked else ()
    return tuple(url for url in asked if url in addresses)


def defang_text(text: str, live: Collection[str]) -> str:
    """The text with every address but those of `live` shown as code, which no platform fetches and
    no touch follows: a link that somebody else's words composed may carry what they should not get.
    Pictures from elsewhere become words.

    This is Markdown still. What its renderer decodes is looked at once more by the channel
    (`Outgoing.links`)."""
    if (
        "://" not in text
        and "](" not in text
        and "]:" not in text
        and "www." not in text
        and "mailto:" not in text
    ):
        return text

    def link(found: re.Match[str]) -> str:
        picture = found[1]
        words = found[2]
        url = found[3]
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
