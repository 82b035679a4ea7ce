"""Windows whose programs do not say what they show: what can be read in their pictures."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import msgspec

from ...types.errors import ToolError
from ..elements import Element, StaleRef, describe
from .base import ScreenWindow
from .picture_text import Picture, TextLine, read_lines
from .windows import PICTURED, Window, find_program

MAX_WINDOWS = 50
GRACE_S = 3.0
"""So long a program may take, once its window is shown, until it tells what is in it."""
UNREADABLE = "this program does not say what it shows, and no words are read in its picture"
OnScreen = Callable[..., Awaitable[Any]]
"""Calls a method of the screen by its name. Raises ToolError."""


class PictureKey(msgspec.Struct, frozen=True):
    """Words that were seen in a picture, and where in their window."""

    text: str
    left: int
    top: int


class PicturedWindows:
    """Reads them. Their elements are the words that can be seen, each to be clicked."""

    def __init__(self, on_screen: OnScreen) -> None:
        self._on_screen = on_screen
        self._seen_at: dict[int, float] = {}

    async def list_windows(self, known: Collection[int]) -> list[Window]:
        """The windows of processes that are not `known` to tell what they show, though they have
        had the time for it. Those of other machines are left out: nobody can say what runs
        there."""
        shown: list[ScreenWindow] = await self._on_screen("list_windows")
        now = anyio.current_time()
        quiet = [each for each in shown if each.pid and each.pid not in known]
        self._seen_at = {each.id: self._seen_at.get(each.id, now) for each in quiet}
        unknown = [each for each in quiet if now >= self._seen_at[each.id] + GRACE_S][:MAX_WINDOWS]
        if not unknown:
            return []
        active = await self._on_screen("find_active")
        found = []
        for each in unknown:
            program = await anyio.to_thread.run_sync(find_program, each.pid)
            key = (PICTURED, str(each.id))
            app = Path(program).name or "a program"
            is_active = each.id == active
            found.append(Window(key, app, each.title, "", is_active, each.pid, program))
        return found

    async def read_window(self, place: ScreenWindow) -> Element:
        """The words that can be seen in it, or why none are read. Raises ToolError."""
        root = Element("window")
        try:
            picture = await self.take_picture(place)
            lines = await self._read_lines(picture)
        except ToolError as error:
            root.children.append(Element("text", f"[{UNREADABLE}: {error}]"))
            return root
        for line in lines:
            key = _key_of(line, picture, place)
            root.children.append(Element("clickable", line.text, key=key))
        return root

    async def find_middle(self, element: Element, place: ScreenWindow) -> tuple[int, int]:
        """Where on the screen the same words are now. Raises StaleRef where they are not to be seen
        any more, or have moved, ToolError where nothing can be read."""
        was = element.key
        assert isinstance(was, PictureKey)
        picture = await self.take_picture(place)
        for line in await self._read_lines(picture):
            now = _key_of(line, picture, place)
            moved = abs(now.left - was.left) + abs(now.top - was.top)
            if now.text == was.text and moved <= line.height:
                x = picture.left + line.left + line.width // 2
                return x, picture.top + line.top + line.height // 2
        raise StaleRef(f"{element.ref} ({describe(element)}) is no longer there: look again")

    async def take_picture(self, place: ScreenWindow) -> Picture:
        """The window as it is to be seen on the screen. Raises ToolError."""
        return Picture(*await self._on_screen("take_window_picture", place.id))

    async def _read_lines(self, picture: Picture) -> list[TextLine]:
        return await anyio.to_thread.run_sync(read_lines, picture, abandon_on_cancel=True)


def _key_of(line: TextLine, picture: Picture, place: ScreenWindow) -> PictureKey:
    left = picture.left + line.left - place.left
    return PictureKey(line.text, left, picture.top + line.top - place.top)


def is_pictured(element: Element | None) -> bool:
    """Whether it was seen in a picture, and its program does not know it."""
    return element is not None and isinstance(element.key, PictureKey)
