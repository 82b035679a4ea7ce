"""The desktop that this process has: opened when it is first used, and closed with the process."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec

from ...types.errors import ToolError
from .desktop import Desktop
from .screen import SIZE

INSTALL_COMMAND = "pip install 'deskhand[desktop]'"
LIBRARIES = ("dbus_fast", "Xlib")


class DesktopConfig(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Which desktop agents use that may: that of whoever started Deskhand, or with `virtual` one
    without a monitor, of this `size`, that is begun when it is first used."""

    screen: str = ""
    size: str = SIZE


def is_installed() -> bool:
    """Whether what is needed to read a desktop is."""
    return all(find_spec(name) is not None for name in LIBRARIES)


class DesktopHost:
    """The desktop of this process. `config` is what the settings say now, and `environment` that of
    whoever started it. `lock` is held by who uses the desktop: one at a time."""

    def __init__(
        self, config: Callable[[], DesktopConfig], environment: Callable[[], Mapping[str, str]]
    ) -> None:
        self._config = config
        self._environment = environment
        self._stack = AsyncExitStack()
        self._opening = anyio.Lock()
        self._desktop: Desktop | None = None
        self._is_running = False
        self.lock = anyio.Lock()
        self._launch: Callable[[Sequence[str]], None] | None = None

    async def run(self) -> None:
        """Hold what is open until cancelled."""
        self._is_running = True
        try:
            await anyio.sleep_forever()
        finally:
            self._is_running = False
            with anyio.CancelScope(shield=True):
                await self.close()

    async def close(self) -> None:
        """Let go of the desktop; one of our own ends."""
        self._desktop = None
        stack, self._stack = self._stack, AsyncExitStack()
        await stack.aclose()

    async def launch(self, argv: Sequence[str]) -> None:
        """Start a program on the open desktop. Raises ToolError."""
        if self._launch is None:
            raise ToolError("no desktop is open")
        try:
            self._launch(argv)
        except OSError as error:
            raise ToolError(f"{argv[0]} was not started: {error.strerror}") from error

    def peek(self) -> Desktop | None:
        """The desktop, where it is open."""
        return self._desktop

    async def open(self) -> Desktop:
        """The desktop. Raises ToolError where there is none."""
        if not self._is_running:
            raise ToolError("there is no desktop here: start Deskhand with `deskhand serve`")
        async with self._opening:
            if self._desktop is not None and self._desktop.is_connected:
                return self._desktop
            await self.close()  # what is left of one that has ended
            if not is_installed():
                raise ToolError(
                    f"desktops are read by libraries that are missing: {INSTALL_COMMAND}"
                )
            config = self._config()
            folder = None
            if config.screen == "virtual":
                made = tempfile.TemporaryDirectory(prefix="deskhand-desktop-")
                self._stack.callback(made.cleanup)
                folder = Path(made.name)
            module = await anyio.to_thread.run_sync(import_module, f"{__package__}.linux")
            try:
                self._desktop, self._launch = await module.open_desktop(
                    self._stack, self._environment(), folder, config.size
                )
            except ToolError:
                await self.close()
                raise
            opened: Desktop = self._desktop
            return opened
