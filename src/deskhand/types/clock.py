"""Time and names, injected so that tests decide them."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Wall time for what people read, monotonic time for how long something took. Seconds."""

    def now(self) -> float:
        """Seconds since the Unix epoch, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed point; never goes back."""
        ...


class Ids(Protocol):
    """New names that nobody else has."""

    def new(self, kind: str) -> str:
        """A fresh id such as `ask_6f1c…`; `kind` is its readable prefix."""
        ...
