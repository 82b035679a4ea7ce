"""Words in pieces that an engine takes at once. Pure."""

from __future__ import annotations

import re

_END = re.compile(r"[.!?…:;]['\")\]]*\s|[\u3002\uff01\uff1f]")


def split_sentences(text: str, most: int) -> list[str]:
    """The words in order, in pieces of at most `most` characters, which end with a sentence where
    one ends, else with a word where one ends. Together they have all the words."""
    pieces = []
    rest = text.strip()
    while len(rest) > most:
        at = _find_cut(rest, most)
        pieces.append(rest[:at].rstrip())
        rest = rest[at:].lstrip()
    return [piece for piece in (*pieces, rest) if piece]


def _find_cut(text: str, most: int) -> int:
    begin = text[: most + 1]
    ends = [found.end() for found in _END.finditer(begin) if found.end() <= most + 1]
    if ends:
        return ends[-1]
    spaces = [at for at, char in enumerate(begin) if char.isspace() and at]
    return spaces[-1] if spaces else most
