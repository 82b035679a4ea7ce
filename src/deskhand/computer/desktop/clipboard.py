"""The clipboard of a desktop, by the programs that terminals use for it."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

import anyio
import msgspec

from ...types.errors import ToolError

MAX_BYTES = 1_000_000
ANSWER_S = 5.0
"""What is on the clipboard is asked of the program that has put it there, which may hang."""
POLL_S = 0.05
SECRET_TYPE = "x-kde-passwordManagerHint"
"""With this beside it, password managers put there what nobody else is to read.
https://phabricator.kde.org/D12539"""
_GONE = re.compile(rb"can't open display|failed to connect to a wayland server", re.IGNORECASE)
"""What these programs say where there is no desktop; else there is nothing on the clipboard."""
TEXT_TYPES = frozenset(("UTF8_STRING", "STRING", "TEXT", "text/plain", "text/plain;charset=utf-8"))


class _Commands(msgspec.Struct, frozen=True):
    """How its types are listed, its text is read, and a text is put there; and the Debian package
    that has these programs."""

    types: tuple[str, ...]
    read: tuple[str, ...]
    write: tuple[str, ...]
    package: str


_X11 = _Commands(
    ("xclip", "-selection", "clipboard", "-out", "-target", "TARGETS"),
    ("xclip", "-selection", "clipboard", "-out", "-target", "UTF8_STRING"),
    ("xclip", "-selection", "clipboard", "-in"),
    "xclip",
)
_WAYLAND = _Commands(
    ("wl-paste", "--list-types"),
    ("wl-paste", "--no-newline", "--type", "text"),
    ("wl-copy", "--type", "text/plain;charset=utf-8"),
    "wl-clipboard",
)


class Clipboard:
    """That of the desktop to which this environment belongs. All raise ToolError."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._commands = _WAYLAND if environment.get("WAYLAND_DISPLAY") else _X11

    def find_missing(self) -> str:
        """The Debian package of the programs for it, '' where they are installed."""
        return "" if self._find_program(self._commands.types[0]) else self._commands.package

    def _find_program(self, name: str) -> str | None:
        return shutil.which(name, path=self._environment.get("PATH"))

    async def read(self) -> str:
        """Its text, cut behind MAX_BYTES; '' where there is none. What a password manager has put
        there is not read."""
        if TEXT_TYPES.isdisjoint(await self._list_types()):
            return ""
        status, said = await self._run(self._commands.read)
        if status != 0:
            raise ToolError("the program that has filled the clipboard does not give its text")
        await self._list_types()  # it may have been filled anew meanwhile
        return said.decode(errors="replace")

    async def _list_types(self) -> set[str]:
        status, said = await self._run(self._commands.types)
        if status != 0:
            if _GONE.search(said):
                raise ToolError("the desktop with this clipboard is gone")
            return set()
        types = set(said.decode(errors="replace").split())
        if SECRET_TYPE in types:
            raise ToolError("a password manager has filled the clipboard: it is not read")
        return types

    async def write(self, text: str) -> None:
        """Put a text there, and read it back. It stays until something else is put there, also when
        we end."""
        status, _ = await self._run(self._commands.write, text.encode())
        if status != 0:
            raise ToolError("the clipboard did not take it")
        with anyio.move_on_after(ANSWER_S):
            while await self.read() != text:  # noqa: ASYNC110 -- it is taken a moment later
                await anyio.sleep(POLL_S)
            return
        raise ToolError("the clipboard holds something else now: read it before you paste")

    async def _run(self, command: Sequence[str], given: bytes | None = None) -> tuple[int, bytes]:
        """Its exit code, and with nothing `given` what it says; of the types, also why there are
        none."""
        program = self._find_program(command[0])
        if program is None:
            package = self._commands.package
            raise ToolError(f"the clipboard cannot be used: sudo apt-get install {package}")
        quiet = subprocess.DEVNULL
        async with await anyio.open_process(
            [program, *command[1:]],
            stdin=quiet if given is None else subprocess.PIPE,
            # Who writes leaves a process behind, which would hold this open.
            stdout=subprocess.PIPE if given is None else quiet,
            stderr=subprocess.STDOUT if command is self._commands.types else quiet,
            env=self._environment,
            start_new_session=True,
        ) as process:
            said = bytearray()
            with anyio.move_on_after(ANSWER_S):
                if process.stdin is not None:
                    with suppress(anyio.BrokenResourceError):  # it has ended: its exit code tells
                        await process.stdin.send(given or b"")
                    await process.stdin.aclose()
                if process.stdout is not None:
                    async for piece in process.stdout:
                        said += piece
                        if len(said) > MAX_BYTES:
                            process.kill()
                            return 0, bytes(said[:MAX_BYTES])
                return await process.wait(), bytes(said)
            process.kill()
        raise ToolError("the clipboard does not answer")
