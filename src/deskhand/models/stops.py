"""Ends a reply before a text that somebody named: not every wire can."""

from __future__ import annotations

from collections.abc import Sequence


class StopTexts:
    """Takes the pieces of a reply and gives what may be shown. A beginning of a stop text is held
    back until it is clear that it is none."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = [text for text in texts if text]
        self._most = max(map(len, self._texts), default=1) - 1
        self._rest = ""
        self.stopped = False

    def feed(self, piece: str) -> str:
        """What is new of the text."""
        if self.stopped:
            return ""
        text = self._rest + piece
        places = [place for place in (text.find(each) for each in self._texts) if place >= 0]
        if places:
            self.stopped = True
            self._rest = ""
            return text[: min(places)]
        held = self._count_held(text)
        self._rest = text[len(text) - held :]
        return text[: len(text) - held]

    def close(self) -> str:
        """What was held back and is no stop text after all."""
        rest = self._rest
        self._rest = ""
        return rest

    def _count_held(self, text: str) -> int:
        """How many characters at the end may begin a stop text."""
        for size in range(min(self._most, len(text)), 0, -1):
            if any(each.startswith(text[len(text) - size :]) for each in self._texts):
                return size
        return 0
