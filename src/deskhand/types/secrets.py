"""Values that must never be said: the forms in which they turn up, and what is said in their
place."""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

MIN_SECRET_CHARS = 8
"""A shorter value is no secret worth hiding, and would be found in ordinary words."""
MIN_LINE_CHARS = 20
"""From here on a line of a value that has several is a secret by itself."""
SECRET_NAME_PATTERN = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}", re.IGNORECASE)
HANDLE_PATTERN = re.compile(r"\{\{secret:([A-Za-z0-9][A-Za-z0-9_.-]{0,62})\}\}")
_URL_SAFE = str.maketrans("+/", "-_")
_ESCAPE = re.compile(r"%[0-9A-F]{2}")


def format_handle(name: str) -> str:
    """What stands for a secret wherever its value may not. No value looks like it, and the broker
    knows it."""
    return "{{secret:" + name + "}}"


def list_secret_forms(value: str) -> tuple[str, ...]:
    """The value as it is, and as JSON, an address, a page, base64 (also in the middle of a longer
    text) and hexadecimal digits have it. The lines of a long one count by themselves."""
    raw = value.encode(errors="surrogateescape")
    found = {
        value,
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        html.escape(value),
    }
    found |= {line.strip() for line in value.splitlines() if len(line.strip()) >= MIN_LINE_CHARS}
    for quoted in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        found |= {quoted, _ESCAPE.sub(lambda match: match[0].lower(), quoted)}
    for before in range(3):  # where it begins within a group of three bytes
        core = b64encode(bytes(before) + raw).decode()[
            before + bool(before) : (before + len(raw)) * 8 // 6
        ]
        found |= {core, core.translate(_URL_SAFE)}
    found |= {raw.hex(), raw.hex().upper()}
    return tuple(form for form in found if len(form) >= MIN_SECRET_CHARS)


class Scrubber:
    """Replaces values in a stream of bytes, wherever it is cut into pieces. Holds back only what
    may be the beginning of a value."""

    def __init__(self, named: Iterable[tuple[str, str]]) -> None:
        self._instead = {
            form.encode(errors="surrogateescape"): instead.encode()
            for value, instead in named
            for form in list_secret_forms(value)
        }
        ordered = sorted(self._instead, key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, ordered))) if ordered else None
        self._longest = len(ordered[0]) if ordered else 0
        self._forms = tuple(ordered)
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """What may go on now."""
        if self._pattern is None:
            return data
        data = self._held + data
        safe = len(data) - self._count_partial_bytes(data)
        out = bytearray()
        at = 0
        for match in self._pattern.finditer(data):
            if match.start() >= safe:
                break
            out += data[at : match.start()] + self._instead[match[0]]
            at = match.end()
        self._held = data[max(at, safe) :]
        return bytes(out + data[at : max(at, safe)])

    def flush(self) -> bytes:
        """What was held back: no more comes."""
        rest = self._held
        self._held = b""
        return self.scrub(rest)

    def scrub(self, data: bytes) -> bytes:
        """All of it at once."""
        if self._pattern is None:
            return data
        return self._pattern.sub(lambda match: self._instead[match[0]], data)

    def _count_partial_bytes(self, data: bytes) -> int:
        """How many bytes at the end may be the beginning of a form."""
        for size in range(min(self._longest - 1, len(data)), 0, -1):
            tail = data[-size:]
            if any(form.startswith(tail) and len(form) > size for form in self._forms):
                return size
        return 0
