"""A desktop for tests: real programs on a screen of their own."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio

from deskhand.computer.desktop.desktop import Desktop
from deskhand.computer.desktop.linux import open_desktop
from deskhand.computer.desktop.screen import open_virtual_screen
from deskhand.computer.elements import Element

START_S = 30


class Desk:
    """The desktop `desktop`, and the programs that were started on it."""

    def __init__(self, desktop: Desktop, environment: Mapping[str, str]) -> None:
        self.desktop = desktop
        self.environment = environment
        self.programs: list[subprocess.Popen[bytes]] = []

    async def start(self, *argv: str, window: str = "") -> subprocess.Popen[bytes]:
        """Start a program, wait for its window and look at it."""
        quiet = subprocess.DEVNULL
        program = subprocess.Popen(
            argv,
            env=self.environment,
            stdin=quiet,
            stdout=quiet,
            stderr=quiet,
            start_new_session=True,
        )
        self.programs.append(program)
        wanted = (window or argv[0]).casefold()
        with anyio.fail_after(START_S):
            while True:
                await self.desktop.list_windows()
                found = [
                    each
                    for each in self.desktop.windows
                    if wanted in each.shown_name.casefold() or wanted in each.app.casefold()
                ]
                if found and (await self.desktop.look(found[0])).children:
                    break
                await anyio.sleep(0.1)
        await self.desktop.settle()
        return program

    async def ref(self, role: str, name: str = "") -> str:
        """The ref of this element of the window that was looked at."""
        await self.desktop.look()
        found = self.desktop.find(role, name)
        assert found, (role, name, [*self.desktop.root.walk()])
        return found[0].ref

    async def values(self, role: str) -> list[str]:
        root = await self.desktop.look()
        return [each.value or each.name for each in root.walk() if each.role == role]

    async def all(self) -> list[Element]:
        return [*(await self.desktop.look()).walk()]


@asynccontextmanager
async def open_desk() -> AsyncIterator[Desk]:
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            environment = {**os.environ, "HOME": folder}
            run = Path(folder) / "run"
            run.mkdir(mode=0o700)
            opened = await stack.enter_async_context(open_virtual_screen(run, environment))
            desktop, _ = await open_desktop(stack, opened.environment, None, "")
            desk = Desk(desktop, opened.environment)
            try:
                yield desk
            finally:
                for program in desk.programs:
                    program.kill()
                    program.wait()
