"""A window in which a person signs in to a site. What the browser keeps of the site then is their
sign-in."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import Process

from ...types.errors import ConfigError, ToolError
from .hosts import find_host, is_beneath
from .launch import JOIN_PIPES
from .page_scripts import READ_STORAGE
from .protocol import WRONG_SHAPES, Protocol
from .sign_ins import (
    Cookie,
    SiteSignIn,
    StoredOrigin,
    cookies_of_chromium,
    make_sign_in,
    make_stored_origin,
)

LOOK_S = 0.5
END_S = 5.0
_FLAGS = (
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-sync",
    "--password-store=basic",
)
NO_SCREEN = (
    "there is no screen here: sign in on a machine that has one, with "
    "`npx playwright codegen --save-storage=state.json URL`, or export a cookies.txt there; "
    "and give that file with --file"
)


async def take_sign_in(
    program: str,
    url: str,
    site: str,
    now: float,
    environment: Mapping[str, str],
    flags: Sequence[str] = (),
) -> SiteSignIn:
    """Open a browser without a past at this address, and wait until its window is closed. Raises
    ConfigError where there is no screen, or nobody has signed in."""
    require_screen(environment)
    if os.geteuid() == 0 and "--no-sandbox" not in flags:
        raise ConfigError("Chromium opens no window for root: use another account")
    profile = await anyio.to_thread.run_sync(partial(tempfile.mkdtemp, prefix="deskhand-sign-in-"))
    command = [
        *("/bin/sh", "-c", JOIN_PIPES, "sh", program),
        *(*_FLAGS, *flags, f"--user-data-dir={profile}", url),
    ]
    process = None
    try:
        # What it complains of is nothing for the terminal, and nobody reads it.
        process = await anyio.open_process(command, env=environment, stderr=subprocess.DEVNULL)
        window = _Window(process, site)
        await window.watch()
    except OSError as error:
        raise ConfigError(f"{program} could not be started: {error.strerror}") from error
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process)
            await anyio.to_thread.run_sync(partial(shutil.rmtree, profile, ignore_errors=True))
    if not window.was_open:
        raise ConfigError(f"{program} ended before it showed a window: try to start it yourself")
    return make_sign_in(site, window.cookies, window.origins.values(), now)


def require_screen(environment: Mapping[str, str]) -> None:
    """Raises ConfigError where no window can be opened."""
    if not (environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY")):
        raise ConfigError(NO_SCREEN)


class _Window:
    """The browser of a person. `cookies` and `origins` are what it kept when it was last looked at,
    `was_open` whether it has shown a page by then."""

    def __init__(self, process: Process, site: str) -> None:
        self._process = process
        self._site = site
        self._protocol = Protocol(self, lambda session, method, said: None)
        self._sessions: dict[str, str] = {}
        self.ended = ""
        self.was_open = False
        self.cookies: tuple[Cookie, ...] = ()
        self.origins: dict[str, StoredOrigin] = {}

    def describe_end(self) -> str:
        return self.ended

    async def send(self, line: bytes) -> None:
        assert self._process.stdin is not None
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._process.stdin.send(line + b"\0")

    async def watch(self) -> None:
        """Look at what it keeps until it is closed."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._listen)
            tasks.start_soon(self._protocol.run_sender)
            while not self.ended:
                # A page that asks something, or says what cannot be read, is looked at again.
                with suppress(ToolError, *WRONG_SHAPES):
                    if not await self._look():
                        break
                await anyio.sleep(LOOK_S)
            tasks.cancel_scope.cancel()

    async def _listen(self) -> None:
        assert self._process.stdout is not None
        message = bytearray()
        async for piece in self._process.stdout:
            *whole, rest = piece.split(b"\0")
            for last in whole:
                self._protocol.take(bytes(message) + last)
                message.clear()
            message += rest
        self.ended = "the window was closed"
        self._protocol.end()

    async def _look(self) -> bool:
        """Take in what is kept now. Returns whether a page is still open. Raises ToolError."""
        found = await self._protocol.call("Storage.getCookies")
        self.cookies = cookies_of_chromium(found["cookies"])
        targets = (await self._protocol.call("Target.getTargets"))["targetInfos"]
        pages = [each for each in targets if each.get("type") == "page"]
        if not pages:
            return not self.was_open
        self.was_open = True
        for page in pages:
            with suppress(ToolError, *WRONG_SHAPES):
                await self._look_at(str(page["targetId"]), str(page.get("url", "")))
        return True

    async def _look_at(self, target: str, url: str) -> None:
        if not is_beneath(find_host(url), self._site):
            return
        if target not in self._sessions:
            asked: dict[str, Any] = {"targetId": target, "flatten": True}
            attached = await self._protocol.call("Target.attachToTarget", asked)
            self._sessions[target] = str(attached["sessionId"])
        asked = {"expression": READ_STORAGE, "returnByValue": True}
        session = self._sessions[target]
        answer = await self._protocol.call("Runtime.evaluate", asked, session, LOOK_S)
        text = str(answer["result"]["value"]).encode()
        origin, items = msgspec.json.decode(text, type=tuple[str, dict[str, str]])
        kept = make_stored_origin(origin, items)
        if kept is not None and kept.local_storage:
            self.origins[origin] = kept


async def _end(process: Process | None) -> None:
    if process is None:
        return
    with suppress(ProcessLookupError):
        process.terminate()
    with anyio.move_on_after(END_S) as limit:
        await process.wait()
    if limit.cancelled_caught:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    await process.aclose()
