"""What reading a document gives: text with a title, what was taken out of it, and what was left
unread."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable

MAX_TEXT_CHARS = 1_000_000
"""What is given of a document at most."""
MAX_READ_S = 8.0
"""After so many seconds reading stops, and what was read till then is given. The sandbox kills it
later."""


class Unreadable(Exception):
    """The document gives no text. The message completes a sentence about it: `it …`."""


class Full(Exception):
    """There is enough text, or it took long enough: stop here and give what there is."""


class ExtractedText:
    """Collects the text of a document. `hidden` counts, by its kind, what no reader would have
    seen."""

    def __init__(self) -> None:
        self.title = ""
        self.notes: list[str] = []
        self.hidden: Counter[str] = Counter()
        self._pieces: list[str] = []
        self._chars = 0
        self._until = time.monotonic() + MAX_READ_S

    def add(self, piece: str) -> None:
        """Add a piece as it is. Raises Full."""
        self._pieces.append(piece)
        self._chars += len(piece)
        if self._chars > MAX_TEXT_CHARS:
            raise Full(f"only the first {MAX_TEXT_CHARS:,} characters are given")
        self.check_time()

    def check_time(self) -> None:
        """Raises Full when reading has taken long enough."""
        if time.monotonic() > self._until:
            raise Full(
                f"reading stopped after {MAX_READ_S:.0f} s; what was read until then is given"
            )

    def add_block(self, text: str) -> None:
        """Add a paragraph. Raises Full."""
        if text := text.strip("\n"):
            self.add(text + "\n\n")

    def add_table(self, rows: Iterable[list[str]]) -> None:
        """Add a table as Markdown; the first row is its head. Raises Full."""
        wide = 0
        for number, row in enumerate(rows):
            wide = wide or len(row)
            self.add("| " + " | ".join(format_cell(each) for each in row) + " |\n")
            if number == 0:
                self.add("|" + " --- |" * wide + "\n")
        if wide:
            self.add("\n")

    @property
    def text(self) -> str:
        return "".join(self._pieces)[:MAX_TEXT_CHARS]


def format_cell(text: str) -> str:
    """Text for one cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")
