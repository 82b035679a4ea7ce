"""The worker of `deskhand serve`: drives until it is stopped or restarted."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio
from anyio.abc import TaskGroup

from ..config.config import Settings
from ..sandbox import kernel
from ..secrets.redaction import Redactor
from ..supervision.allocator import trim_memory
from ..supervision.start_log import record_start, write_startup_error
from ..supervision.supervise import CRASHED, DRAIN_S, RESTART
from ..types.errors import NotLeading, StoreError, StoreUnavailable
from .app import App

log = logging.getLogger(__name__)

PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> bool:
    """Let the kernel stop this process when its parent dies. False when the parent has died
    already. Raises OSError."""
    kernel.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    return os.getppid() == parent


async def run_worker(
    app: App, started: Callable[[], None], up: Callable[[], None] = lambda: None
) -> int:
    """Drive. SIGTERM and SIGINT end it within DRAIN_S, and a second one at once. `/restart` ends it
    with RESTART. SIGHUP reloads the configuration.

    `started` is called when it drives, which may be much later while another process drives. `up`
    is called again and again once it is about to drive or waits for that process.
    """
    app.supervised, app.on_up, ends = True, up, _Ends(app)
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as orders:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(app.run, started)
            tasks.start_soon(ends.restart_when_asked, tasks)
            tasks.start_soon(trim_memory)
            async for order in orders:
                if order == signal.SIGHUP:
                    await app.current.try_reload()
                else:
                    ends.on_signal(tasks)
    return ends.code


class _Ends:
    """Why and how the worker ends; `code` is its exit code."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._ending = False
        self.code = 0

    async def restart_when_asked(self, tasks: TaskGroup) -> None:
        await self._app.restart.requested.wait()
        if not self._ending:
            self._ending = True
            self.code = RESTART
            await self._drain(tasks)

    def on_signal(self, tasks: TaskGroup) -> None:
        if self._ending:
            tasks.cancel_scope.cancel()
        else:
            self._ending = True
            tasks.start_soon(self._drain, tasks)

    async def _drain(self, tasks: TaskGroup) -> None:
        log.info("Stopping. Running turns have %.0f s to finish.", DRAIN_S)
        with anyio.move_on_after(DRAIN_S):
            await self._app.drain()
        try:
            await self._app.restart.notify_requesters()
        except StoreError as error:
            log.warning("Could not notify those who asked for the restart: %s", error)
        tasks.cancel_scope.cancel()


async def run_guarded(
    settings: Settings, main: Callable[[], Awaitable[int]], now: Callable[[], float]
) -> int:
    """Run `main`. An exception is written to the log and to `startup_error.json`, and gives
    CRASHED; RESTART where a database server is away, or another process drives now."""
    try:
        return await main()
    except Exception as error:
        away = _find_unavailable(error)
        if away and (settings.config.store or isinstance(away, NotLeading)):
            log.warning("Starting again: %s", away)
            sys.stderr.write(f"deskhand: {away}. Trying again.\n")
            return RESTART
        log.exception("The worker crashed.")
        with suppress(OSError):  # a full disk may be what broke it
            write_startup_error(settings.home, error, now(), Redactor(settings))
        return CRASHED


def _find_unavailable(error: BaseException) -> StoreUnavailable | None:
    """That the database is away, if that is why it ended."""
    if isinstance(error, BaseExceptionGroup):
        found = map(_find_unavailable, error.exceptions)
        return next((each for each in found if each is not None), None)
    return error if isinstance(error, StoreUnavailable) else None


def note_start(settings: Settings, now: Callable[[], float]) -> None:
    """Record that this process drives. A full disk is logged and does not stop it."""
    try:
        record_start(settings.home, now())
    except OSError as error:
        log.warning("Could not record this start: %s", error)
    log.info("Driving.")
