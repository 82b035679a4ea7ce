"""The words inside a JSON move, as they are being written: people should not wait for the closing brace."""

from __future__ import annotations

import json
import re

from ..types.messages import clean

_OPENING = re.compile(r'\{\s*"tool"\s*:\s*"reply"\s*,\s*"arguments"\s*:\s*\{\s*"text"\s*:\s*"')
_UNFINISHED = re.compile(r"(\\|\\u[0-9a-fA-F]{0,3}|\\u[dD][89abAB][0-9a-fA-F]{2}(\\(u[0-9a-fA-F]{0,3})?)?)$")
_STRING = re.compile(r'(?:[^"\\]|\\.)*', re.DOTALL)


class Speech:
    """Feed it what the model writes; it gives what is new of the text of a reply. `said` is all of that so far."""

    def __init__(self) -> None:
        self.said = ""
        self._written = ""
        self._start = -1

    def feed(self, piece: str) -> str:
        self._written += piece
        if self._start < 0:
            if not (found := _OPENING.search(self._written)):
                return ""
            self._start = found.end()
        raw = _STRING.match(self._written, self._start)
        text = raw[0] if raw else ""
        if raw and raw.end() < len(self._written) and self._written[raw.end()] == '"':
            whole = text
        else:
            whole = _UNFINISHED.sub("", text)
        try:
            now = clean(json.loads(f'"{whole}"', strict=False))
        except ValueError:
            return ""  # an escape that JSON does not know; the whole reply will be refused
        new, self.said = now[len(self.said) :], now
        return new
