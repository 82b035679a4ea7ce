"""A screen of its own for programs, where a machine has none: an X server without a monitor, with a
message bus and a window manager."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread

from ...types.errors import ToolError

PROGRAMS = {
    "Xvfb": "xvfb",
    "dbus-daemon": "dbus",
    "openbox": "openbox",
}
"""What is needed, and the Debian package that brings it."""
SIZE = "1280x800"
START_S = 15.0
KILL_S = 3.0
_ACCESSIBLE = {
    # Have every toolkit say what it shows.
    "GTK_MODULES": "gail:atk-bridge",
    "GTK_A11Y": "atspi",
    "NO_AT_BRIDGE": "0",
    "QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1",
    "QT_ACCESSIBILITY": "1",
    "GSETTINGS_BACKEND": "memory",
    "LIBGL_ALWAYS_SOFTWARE": "1",
}


def find_missing(programs: Mapping[str, str] = PROGRAMS) -> list[str]:
    """The Debian packages of those programs that are not installed."""
    return sorted({package for name, package in programs.items() if shutil.which(name) is None})


class VirtualScreen:
    """A running one. `environment` is what programs need to appear on it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = dict(environment)
        self._programs: list[subprocess.Popen[bytes]] = []

    def start_program(self, argv: Sequence[str], pass_fds: Sequence[int] = ()) -> None:
        """Start a program on it, which ends with it. Raises OSError."""
        self._programs = [each for each in self._programs if each.poll() is None]
        quiet = subprocess.DEVNULL
        started = subprocess.Popen(
            argv,
            env=self.environment,
            stdin=quiet,
            stdout=quiet,
            stderr=quiet,
            start_new_session=True,
            pass_fds=pass_fds,
        )
        self._programs.append(started)

    def end(self) -> None:
        """Kill all that was started on it, the last first."""
        for each in reversed(self._programs):
            _kill_group(each)


def _kill_group(program: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(program.pid, signal.SIGTERM)
        program.wait(KILL_S)
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, signal.SIGKILL)
        program.wait(KILL_S)
    except ProcessLookupError:
        program.wait(KILL_S)


@asynccontextmanager
async def open_virtual_screen(
    folder: Path, environment: Mapping[str, str], size: str = SIZE
) -> AsyncIterator[VirtualScreen]:
    """One of this size that keeps its sockets in `folder`, which is private. Programs on it have
    this environment beside. Raises ToolError where something is not installed, or does not
    start."""
    if missing := find_missing():
        raise ToolError(f"there is no screen: sudo apt-get install {' '.join(missing)}")
    screen = VirtualScreen({**environment, **_ACCESSIBLE, "XDG_RUNTIME_DIR": str(folder)})
    screen.environment.pop("WAYLAND_DISPLAY", None)
    try:
        await _start(screen, size)
        yield screen
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(screen.end)


async def _start(screen: VirtualScreen, size: str) -> None:
    xvfb = ("Xvfb", "-screen", "0", f"{size}x24", "-nolisten", "tcp", "-noreset")
    display = await _start_server(screen, *xvfb, "-displayfd", "{fd}")
    screen.environment["DISPLAY"] = f":{display}"
    bus = ("dbus-daemon", "--session", "--nofork", "--print-address={fd}")
    screen.environment["DBUS_SESSION_BUS_ADDRESS"] = await _start_server(screen, *bus)
    screen.start_program(("openbox",))


async def _start_server(screen: VirtualScreen, *argv: str) -> str:
    """Start what all else hangs on, and wait for the line that it writes to the descriptor `{fd}`.
    It is killed with us, whatever kills us: that is bound to this thread, which stays."""
    ours, theirs = os.pipe()
    try:
        words = [each.replace("{fd}", str(theirs)) for each in argv]
        screen.start_program(("setpriv", "--pdeathsig", "KILL", *words), (theirs,))
    finally:
        os.close(theirs)
    line = ""
    with os.fdopen(ours, "r") as said, anyio.move_on_after(START_S):
        await anyio.wait_readable(said)
        line = said.readline().strip()
    if not line:
        raise ToolError(f"{argv[0]} does not start")
    return line
