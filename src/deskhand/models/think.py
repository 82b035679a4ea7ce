"""Splits off reasoning that a local server leaves in the text, between <think> tags at its
beginning."""

from __future__ import annotations

from typing import Literal

OPEN = "<think>"
CLOSE = "</think>"

Piece = tuple[Literal["text", "thinking"], str]


class ThinkTags:
    """Feed it text as it comes; it says which of it is thinking. Tags that come later are part of
    the text: people ask about them. White space behind the closing tag is dropped."""

    __slots__ = ("_held", "_where")

    def __init__(self) -> None:
        self._where: Literal["before", "inside", "behind", "after"] = "before"
        self._held = ""

    @property
    def is_over(self) -> bool:
        """All that is yet to come is text."""
        return self._where == "after"

    def feed(self, text: str) -> list[Piece]:
        """The pieces that are now certain."""
        if self._where == "after":
            return [("text", text)]
        self._held += text
        found: list[Piece] = []
        if self._where == "before":
            start = self._held.lstrip()
            if OPEN.startswith(start[: len(OPEN)]) and len(start) < len(OPEN):
                return []
            if not start.startswith(OPEN):
                return self._take_held()
            self._where = "inside"
            self._held = start[len(OPEN) :]
        if self._where == "inside":
            thought, closed, rest = self._held.partition(CLOSE)
            kept = 0 if closed else _overlap(thought)
            if told := thought[: len(thought) - kept]:
                found.append(("thinking", told))
            self._held = rest if closed else thought[len(thought) - kept :]
            if not closed:
                return found
            self._where = "behind"
        self._held = self._held.lstrip()
        return found + (self._take_held() if self._held else [])

    def close(self) -> list[Piece]:
        """What was held back."""
        kind: Literal["text", "thinking"] = "thinking" if self._where == "inside" else "text"
        held = self._held
        self._held = ""
        return [(kind, held)] if held else []

    def _take_held(self) -> list[Piece]:
        self._where = "after"
        held = self._held
        self._held = ""
        return [("text", held)]


def _overlap(text: str) -> int:
    """How many of the last characters may be the beginning of the closing tag."""
    for size in range(min(len(CLOSE) - 1, len(text)), 0, -1):
        if CLOSE.startswith(text[-size:]):
            return size
    return 0
