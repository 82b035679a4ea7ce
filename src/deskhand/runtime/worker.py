"""The worker of `deskhand serve`: drives until it is told to end, or to be started again."""

from __future__ import annotations

import logging
import os
import signal
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
from ..types.errors import StoreError
from .app import App

log = logging.getLogger(__name__)

PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> bool:
    """Be told to end when the process that started us dies, however it dies. False: it has died
    already, while this one was still being started, and nobody would ever tell us. Raises
    OSError."""
    kernel.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    return os.getppid() == parent


async def run_worker(
    app: App, started: Callable[[], None], up: Callable[[], None] = lambda: None
) -> int:
    """Drive. SIGTERM and SIGINT end it within DRAIN_S, a second one at once; `/restart` ends it
    with RESTART. SIGHUP has the configuration read again.

    `started` is called when it drives, which may be long after: another process may drive now. `up`
    is called, as often as it likes, from when it is about to drive, or waits for another that does.
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
    """How it comes to an end: `code` is what for."""

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
        log.info("told to end: what is under way has %.0f s", DRAIN_S)
        with anyio.move_on_after(DRAIN_S):
            await self._app.drain()
        try:
            await self._app.restart.notify_requesters()
        except StoreError as error:
            log.warning("nobody will be told of the restart: %s", error)
        tasks.cancel_scope.cancel()


async def run_guarded(
    settings: Settings, main: Callable[[], Awaitable[int]], now: Callable[[], float]
) -> int:
    """Run `main`; what it raises is written to the log and to `startup_error.json`, and becomes
    CRASHED."""
    try:
        return await main()
    except Exception as error:
        log.exception("the worker broke")
        with suppress(OSError):  # a full disk may be what broke it
            write_startup_error(settings.home, error, now(), Redactor(settings))
        return CRASHED


def note_start(settings: Settings, now: Callable[[], float]) -> None:
    """Record that this process drives. A full disk is logged and does not stop it."""
    try:
        record_start(settings.home, now())
    except OSError as error:
        log.warning("the start is not noted: %s", error)
    log.info("driving")
