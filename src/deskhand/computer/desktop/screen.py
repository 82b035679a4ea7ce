"""A screen of its own for programs, where a machine has none: an X server without a monitor, with a
message bus and a window manager."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
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


def find_missing() -> list[str]:
    """The Debian packages of those programs that are not installed."""
    return sorted({package for name, package in PROGRAMS.items() if shutil.which(name) is None})


class VirtualScreen:
    """A running one. `environment` is what programs need to appear on it, `cookie` what it asks of
    them."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = dict(environment)
        self.cookie = secrets.token_bytes(16)
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
    with suppress(OSError):
        os.killpg(program.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        program.wait(KILL_S)
    with suppress(OSError):
        os.killpg(program.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
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
    for name in ("WAYLAND_DISPLAY", "GDK_BACKEND", "QT_QPA_PLATFORM"):
        screen.environment.pop(name, None)
    try:
        await _start(screen, folder, size)
        yield screen
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(screen.end)


async def _start(screen: VirtualScreen, folder: Path, size: str) -> None:
    cookies = folder / "Xauthority"
    cookies.touch(0o600)
    cookies.write_bytes(_make_cookie_file(screen.cookie))
    screen.environment["XAUTHORITY"] = str(cookies)
    closed = ("-auth", str(cookies), "-nolisten", "tcp")
    xvfb = ("Xvfb", "-screen", "0", f"{size}x24", "-noreset", *closed)
    display = await _start_server(screen, *xvfb, "-displayfd", "{fd}")
    screen.environment["DISPLAY"] = f":{display}"
    address = f"--address=unix:path={folder}/bus"
    bus = ("dbus-daemon", "--session", "--nofork", address, "--print-address={fd}")
    screen.environment["DBUS_SESSION_BUS_ADDRESS"] = await _start_server(screen, *bus)
    screen.start_program(("openbox",))


def _make_cookie_file(cookie: bytes) -> bytes:
    """For any display of this machine (https://www.x.org/releases/current/doc/man/man7/Xsecurity.7):
    family, address, number, name and data, each with its length before it."""
    fields = (b"", b"", b"MIT-MAGIC-COOKIE-1", cookie)
    return b"\xff\xff" + b"".join(len(each).to_bytes(2, "big") + each for each in fields)


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
