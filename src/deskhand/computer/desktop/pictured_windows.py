"""Windows whose programs do not say what they show: what can be read in their pictures."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Any

import anyio.to_thread
import msgspec

from ..elements import Element, StaleRef, describe
from .base import ScreenWindow
from .picture_text import Picture, TextLine, is_installed, read_lines
from .windows import PICTURED, Window, find_program

MAX_WINDOWS = 50
UNREADABLE = (
    "this program does not say what it shows; where tesseract is installed "
    "(sudo apt-get install tesseract-ocr), its words are read in its picture"
)
COVERED = "another window may cover it: focus it first"
OnScreen = Callable[..., Awaitable[Any]]
"""Calls a method of the screen by its name. Raises ToolError."""


class PictureKey(msgspec.Struct, frozen=True):
    """Where words were seen in a picture of a window."""

    text: str
    left: int
    top: int


class PicturedWindows:
    """Reads them. Their elements are the words that can be seen, each to be clicked."""

    def __init__(self, on_screen: OnScreen) -> None:
        self._on_screen = on_screen

    async def list_windows(self, known: Collection[int]) -> list[Window]:
        """The windows of processes that are not `known` to tell what they show."""
        shown: list[ScreenWindow] = await self._on_screen("list_windows")
        unknown = [each for each in shown if each.pid not in known][:MAX_WINDOWS]
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
        """The words that can be seen in it. Raises ToolError."""
        root = Element("window")
        if not is_installed():
            root.children.append(Element("text", f"[{UNREADABLE}]"))
            return root
        if await self._on_screen("find_active") != place.id:
            root.children.append(Element("text", f"[{COVERED}]"))
        for line in await self._read_lines(place):
            key = PictureKey(line.text, line.left, line.top)
            root.children.append(Element("clickable", line.text, key=key))
        return root

    async def find_middle(self, element: Element, place: ScreenWindow) -> tuple[int, int]:
        """Where on the screen the same words are now, nearest to where they were. Raises StaleRef
        where they are not to be seen any more."""
        key = element.key
        assert isinstance(key, PictureKey)
        same = [each for each in await self._read_lines(place) if each.text == key.text]
        if not same:
            raise StaleRef(f"{element.ref} ({describe(element)}) is not to be seen now: look again")
        line = min(same, key=lambda each: abs(each.left - key.left) + abs(each.top - key.top))
        return place.left + line.left + line.width // 2, place.top + line.top + line.height // 2

    async def take_picture(self, place: ScreenWindow) -> Picture:
        """The window as it is to be seen on the screen. Raises ToolError."""
        picture = Picture(*await self._on_screen("take_picture"))
        return picture.crop(place.left, place.top, place.width, place.height)

    async def _read_lines(self, place: ScreenWindow) -> list[TextLine]:
        picture = await self.take_picture(place)
        return await anyio.to_thread.run_sync(read_lines, picture, abandon_on_cancel=True)


def is_pictured(element: Element | None) -> bool:
    """Whether it was seen in a picture, and its program does not know it."""
    return element is not None and isinstance(element.key, PictureKey)
