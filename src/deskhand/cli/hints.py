"""What may be meant by the command, file or conversation that is being written, and which of these
is chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

MAX_SHOWN = 8


class Hint(msgspec.Struct, frozen=True):
    """`shown` stands in the list, `about` says what it is. `text` is what the text before the
    cursor becomes when it is taken."""

    shown: str
    text: str
    about: str = ""


class Hints:
    """The list below the line that is written on. `find` gives what may be meant by the text before
    the cursor."""

    def __init__(self, find: Callable[[str], Sequence[Hint]]) -> None:
        self._find_hints = find
        self._before = ""
        self._at: int | None = None

    def find(self, before: str) -> Sequence[Hint]:
        if before != self._before:
            self._before = before
            self._at = None
        return self._find_hints(before)

    def move(self, before: str, step: int) -> None:
        """Choose the next one, or the one before; around the ends."""
        count = len(self.find(before))
        if self._at is None:
            self._at = 0 if step > 0 else count - 1
        else:
            self._at = (self._at + step) % count

    def chosen(self, before: str) -> Hint | None:
        """The one that was chosen since the text was changed last."""
        found = self.find(before)
        return found[self._at] if self._at is not None and self._at < len(found) else None

    def window(self, before: str) -> list[tuple[Hint, bool]]:
        """Those to show, each with whether it is chosen."""
        found = self.find(before)
        at = self._at if self._at is not None else 0
        first = max(0, min(at - MAX_SHOWN // 2, len(found) - MAX_SHOWN))
        return [
            (hint, number == self._at)
            for number, hint in enumerate(found[first : first + MAX_SHOWN], first)
        ]
