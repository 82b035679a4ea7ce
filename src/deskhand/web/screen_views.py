"""What is told of the pages and the screen that an agent sees."""

from __future__ import annotations

from typing import Literal

import msgspec


class ScreenView(msgspec.Struct, frozen=True):
    """A tab of a browser, with its `url`, or a screen, with the `program` whose window is looked
    at. `title` is that of the page or the window. `at` is when an agent used it last, in seconds
    since the epoch."""

    id: str
    kind: Literal["browser", "desktop"]
    title: str
    url: str
    program: str
    at: float


class Screen(msgspec.Struct, frozen=True):
    """What a conversation has open, first what was used last. `why_not` says why there may be more
    that cannot be watched; '' where that is all."""

    views: list[ScreenView]
    why_not: str = ""
