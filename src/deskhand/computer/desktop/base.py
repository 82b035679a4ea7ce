"""What a desktop is to whoever acts on it: programs that say what they show, and a screen with real
keys and a mouse. A backend implements both."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from ...types.errors import ToolError

SPI = "org.a11y.atspi"
ACCESSIBLE = f"{SPI}.Accessible"
REGISTRY = f"{SPI}.Registry"
ROOT = "/org/a11y/atspi/accessible/root"

NodeKey = tuple[str, str]
"""Who shows it, by the name on the bus, and its path there."""


class NoAnswer(ToolError):
    """A program does not answer, has ended, or does not know what it was asked."""


class Bus(Protocol):
    """The accessibility bus of a desktop.

    https://gitlab.gnome.org/GNOME/at-spi2-core/-/tree/main/xml
    """

    @property
    def is_connected(self) -> bool: ...

    async def call(
        self, node: NodeKey, interface: str, member: str, signature: str = "", *body: Any
    ) -> list[Any]:
        """What it answers. Raises NoAnswer."""
        ...

    async def get(self, node: NodeKey, interface: str, name: str) -> Any:
        """A property. Raises NoAnswer."""
        ...


class ScreenWindow(msgspec.Struct, frozen=True):
    """A window as the window manager has it. `pid` is that of the process which shows it, as the
    screen knows it; 0 where that is on another machine. The place is that of its content, in
    pixels."""

    id: int
    title: str
    pid: int
    left: int
    top: int
    width: int
    height: int


class DesktopScreen(Protocol):
    """A screen. It blocks, so it is called from a thread; all raise ToolError."""

    @property
    def is_connected(self) -> bool: ...

    def list_windows(self) -> list[ScreenWindow]:
        """All that the window manager has, also those that are hidden, the lowest first."""
        ...

    def find_active(self) -> int:
        """The id of the window that has the keys; 0 for none."""
        ...

    def activate(self, id_: int) -> None:
        """Bring it to the front, and give it the keys."""
        ...

    def take_picture(self) -> tuple[int, int, bytes]:
        """Width, height, and the pixels as BGRX."""
        ...

    def press_keys(self, keys: str) -> None:
        """Press `ctrl+s`, `Enter`, or several with spaces between."""
        ...

    def type_text(self, text: str) -> None:
        """Type it key by key."""
        ...

    def take_window_picture(self, id_: int) -> tuple[int, int, int, int, bytes]:
        """What of this window is on the screen: its left, top, width and height there, and the
        pixels as BGRX. Raises ToolError where a window of another process covers any of it."""
        ...

    def click(self, x: int, y: int, button: int = 1, times: int = 1, inside: int = 0) -> None:
        """Move the mouse there, and click. Buttons have the numbers of X11; 4 to 7 are the wheel.
        With `inside`, the id of a window, only where that one is on top there; else ToolError."""
        ...

    def drag(self, start: tuple[int, int], end: tuple[int, int], inside: int = 0) -> None:
        """Press the left button at one place, and let it go at the other. `inside` as above."""
        ...

    def close_window(self, id_: int) -> None:
        """Ask it to close, as its button for that does."""
        ...
