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
from .desktop import Desktop
from .screen import open_virtual_screen
from .x11 import X11Screen

Launch = Callable[[Sequence[str]], None]
"""Starts a program on the desktop. Raises OSError."""


async def open_desktop(
    stack: AsyncExitStack, environment: Mapping[str, str], folder: Path | None, size: str
) -> tuple[Desktop, Launch]:
    """The desktop of this environment, or with a `folder` a new one on a screen of its own, which
    ends with the stack, as do the programs on it; and how a program is started there. Raises
    ToolError."""
    launch: Launch = partial(_launch_detached, environment)
    if folder is not None:
        opened = await stack.enter_async_context(open_virtual_screen(folder, environment, size))
        environment = opened.environment
        launch = opened.start_program
    address = environment.get("DBUS_SESSION_BUS_ADDRESS", "")
    if not address:
        raise ToolError(
            "this process belongs to no desktop: `deskhand desktop start` is for one of its own"
        )
    bus = await stack.enter_async_context(open_bus(address))
    screen = None
    if name := environment.get("DISPLAY", ""):
        screen = await anyio.to_thread.run_sync(partial(X11Screen, name))
        stack.callback(screen.close)
    return Desktop(bus, screen), launch


def _launch_detached(environment: Mapping[str, str], argv: Sequence[str]) -> None:
    """Start it so that it stays when we end, and that nobody has to wait for it."""
    program = shutil.which(argv[0], path=environment.get("PATH"))
    if program is None:
        raise FileNotFoundError(errno.ENOENT, "there is no such program", argv[0])
    quiet = subprocess.DEVNULL
    command = ["setsid", "--fork", program, *argv[1:]]
    subprocess.run(command, env=environment, stdin=quiet, stdout=quiet, stderr=quiet, check=False)
