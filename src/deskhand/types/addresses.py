"""Which stretches of a text some platform makes a link, a mention or a command of, whatever the
text means by them."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(r"[^\s<>\"'`(){}\[\]|*]+")
_LIVE = re.compile(
    r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]++:[^\s]"  # mailto:, tg:, tel:, https://
    # a name with a top-level domain: example.org, notes.py
    r"|[^\W_][.\u2024\u3002\ufe52\uff0e\uff61][^\W\d_]{2,}"
    r"|[^\W_][.\u2024\u3002\ufe52\uff0e\uff61]xn--"
    r"|\d{1,3}(?:\.\d{1,3}){3}"
    r"|@\w{2,}"  # somebody who is told of it
    r"|^/\w",  # a command that a touch sends
    re.IGNORECASE,
)
SENTENCE_ENDS = ".,;:!?…*_~"
"""What ends a sentence, and hardly ever an address."""


def find_live_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where they stand, from left to right. Rather too many than too few: linear, and knows no list
    of domains."""
    for found in _TOKEN.finditer(text):
        token = found[0].rstrip(SENTENCE_ENDS)
        if _LIVE.search(token):
            yield found.start(), found.start() + len(token)
