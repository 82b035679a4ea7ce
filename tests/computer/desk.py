"""A desktop for tests: real programs on a screen of their own."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio

from deskhand.computer.desktop.bus import open_bus
from deskhand.computer.desktop.clipboard import Clipboard
from deskhand.computer.desktop.desktop import Chosen, Desktop
from deskhand.computer.desktop.screen import open_virtual_screen
from deskhand.computer.desktop.windows import Window
from deskhand.computer.desktop.x11 import X11Screen
from deskhand.computer.elements import Element, find_elements

START_S = 30


class Desk:
    """The desktop `desktop`, what is looked at of it, and the programs that were started on it."""

    def __init__(self, desktop: Desktop, environment: Mapping[str, str]) -> None:
        self.desktop = desktop
        self.environment = environment
        self.view = desktop.view_of("test")
        self.programs: list[subprocess.Popen[bytes]] = []

    async def start(self, *argv: str, window: str = "") -> subprocess.Popen[bytes]:
        """Start a program, wait for its window and look at it."""
        quiet = subprocess.DEVNULL
        program = subprocess.Popen(
            argv,
            env=self.environment,
            stdin=quiet,
            stdout=subprocess.PIPE,
            stderr=quiet,
            start_new_session=True,
        )
        self.programs.append(program)
        wanted = (window or argv[0]).casefold()
        with anyio.fail_after(START_S):
            while True:
                await self.desktop.list_windows()
                found = [each for each in self.desktop.windows if wanted in each.app.casefold()]
                if found and (await self.desktop.look(self.view, found[0])).children:
                    break
                await anyio.sleep(0.1)
        await self.desktop.settle(self.window)
        return program

    @property
    def window(self) -> Window:
        assert self.view.current is not None
        return self.view.current

    async def choose(self, role: str, name: str = "") -> Chosen:
        """This element of the window that was looked at."""
        root = await self.desktop.look(self.view, self.window)
        found = find_elements(root, role, name)
        assert found, (role, name, [*root.walk()])
        return Chosen(self.window, found[0])

    async def values(self, role: str) -> list[str]:
        return [each.value or each.name for each in await self.all() if each.role == role]

    async def all(self) -> list[Element]:
        await self.desktop.settle(self.window)
        return [*(await self.desktop.look(self.view, self.window)).walk()]


@asynccontextmanager
async def open_desk() -> AsyncIterator[Desk]:
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            environment = {**os.environ, "HOME": folder}
            run = Path(folder) / "run"
            run.mkdir(mode=0o700)
            opened = await stack.enter_async_context(open_virtual_screen(run, environment))
            address = opened.environment["DBUS_SESSION_BUS_ADDRESS"]
            bus = await stack.enter_async_context(open_bus(address))
            screen = X11Screen(opened.environment["DISPLAY"], opened.cookie)
            stack.callback(screen.close)
            desk = Desk(Desktop(bus, screen, Clipboard(opened.environment)), opened.environment)
            try:
                yield desk
            finally:
                for program in desk.programs:
                    program.kill()
                    program.wait()
                    if program.stdout is not None:
                        program.stdout.close()
