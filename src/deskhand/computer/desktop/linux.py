"""The desktop of Linux: AT-SPI and X11. Imported by who has the libraries for them."""

from __future__ import annotations

import errno
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import anyio.to_thread

from ...types.errors import ToolError
from .bus import open_bus
from .clipboard import Clipboard
from .desktop import Desktop
from .screen import open_virtual_screen
from .x11 import X11Screen

_VARIABLES = frozenset(
    (
        *("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "HOME", "PATH"),
        *("USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "DESKTOP_SESSION", "TMPDIR"),
    )
)
_VARIABLE_PREFIXES = ("LC_", "XDG_", "GTK_", "QT_", "GDK_")
Launch = Callable[[Sequence[str]], None]
"""Starts a program on the desktop. Raises OSError."""


async def open_desktop(
    stack: AsyncExitStack, environment: Mapping[str, str], folder: Path | None, size: str
) -> tuple[Desktop, Launch]:
    """The desktop of this environment, or with a `folder` a new one on a screen of its own, which
    ends with the stack, as do the programs on it; and how a program is started there. Raises
    ToolError."""
    environment = keep_desktop_variables(environment)
    launch: Launch = partial(_launch_detached, environment)
    cookie = b""
    if folder is not None:
        opened = await stack.enter_async_context(open_virtual_screen(folder, environment, size))
        environment, cookie = opened.environment, opened.cookie
        launch = opened.start_program
    address = environment.get("DBUS_SESSION_BUS_ADDRESS", "")
    if not address:
        raise ToolError(
            "this process belongs to no desktop: `deskhand desktop start` is for one of its own"
        )
    bus = await stack.enter_async_context(open_bus(address))
    screen = None
    name = environment.get("DISPLAY", "")
    if name and not environment.get("WAYLAND_DISPLAY"):  # there it is for old programs alone
        screen = await anyio.to_thread.run_sync(partial(X11Screen, name, cookie))
        stack.callback(screen.close)
    return Desktop(bus, screen, Clipboard(environment)), launch


def keep_desktop_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """What of our environment programs of a desktop get: no keys of ours."""
    return {
        name: value
        for name, value in environment.items()
        if name in _VARIABLES or name.startswith(_VARIABLE_PREFIXES)
    }


def _launch_detached(environment: Mapping[str, str], argv: Sequence[str]) -> None:
    """Start it so that it stays when we end, and that nobody has to wait for it."""
    program = shutil.which(argv[0], path=environment.get("PATH"))
    if program is None:
        raise FileNotFoundError(errno.ENOENT, "there is no such program", argv[0])
    quiet = subprocess.DEVNULL
    command = ["setsid", "--fork", program, *argv[1:]]
    subprocess.run(command, env=environment, stdin=quiet, stdout=quiet, stderr=quiet, check=False)
