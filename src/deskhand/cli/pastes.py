"""Long pastes in the line that is written on: one short mark each, which stands for the whole
text."""

from __future__ import annotations

MAX_LINES = 8
MAX_CHARS = 1_000
"""A paste of more lines or characters is shown as a mark."""


class Pastes:
    """What the marks in one line stand for."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def collapse(self, text: str) -> str:
        """What to show of a paste: itself, or a mark of it."""
        lines = text.rstrip("\n").count("\n") + 1
        if lines <= MAX_LINES and len(text) <= MAX_CHARS:
            return text
        size = f"{lines} lines" if lines > 1 else f"{len(text):,} characters"
        mark = f"[pasted {size}]"
        number = 1
        while self._texts.get(mark, text) != text:
            number += 1
            mark = f"[pasted {size}, no. {number}]"
        self._texts[mark] = text
        return mark

    def expand(self, text: str) -> str:
        """The line with every mark replaced by what was pasted."""
        for mark, pasted in self._texts.items():
            text = text.replace(mark, pasted)
        return text

    def mark_before(self, text: str) -> str:
        """The mark with which this ends; '' for none."""
        return next((mark for mark in self._texts if text.endswith(mark)), "")

    def clear(self) -> None:
        self._texts.clear()
