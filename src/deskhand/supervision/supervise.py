"""The parent process of `deskhand serve`: runs one worker, restarts it, and never leaves it
behind."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from select import select
from subprocess import DEVNULL
from typing import Protocol

import anyio
from anyio.abc import Process, TaskStatus

from .start_log import READY_VARIABLE

log = logging.getLogger(__name__)

RESTART = 75
"""Exit code of a worker that wants to be restarted (EX_TEMPFAIL of sysexits.h)."""
CRASHED = 76
"""Exit code of a worker that failed. `startup_error.json` says why."""
DRAIN_S = 20.0
"""How long running work may go on after the order to stop. Docker and systemd wait for 30 s."""
SETTLED_S = 10.0
"""A worker that ran for longer has not failed at its start."""
LONGEST_PAUSE_S = 60.0
CRASHES = frozenset(
    {signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE}
)
"""Signals that end a worker which nobody stopped: the system ran out of memory, or a library
crashed."""
MAX_QUICK_CRASHES = 5
"""After more crashes than this in a row, each soon after the start, the worker is not restarted."""
GRACE_S = DRAIN_S + 3.0
"""How long a worker may take to stop before it is killed."""
HUNG_GRACE_S = 3.0
"""How long a worker that hung at its start may take to stop before it is killed."""


def worker_backoff_s(quick: int) -> float:
    """How long to wait before the next start, after `quick` workers in a row ended soon after their
    start."""
    if quick < 1:
        return 0.0
    return min(2.0 ** (quick - 1), LONGEST_PAUSE_S)


class StartupRepair(Protocol):
    """What can be done about a worker that does not become ready."""

    @property
    def start_s(self) -> float:
        """How long a start may take. A worker that takes longer is ended if `can_repair`."""
        ...

    def last_start(self) -> float | None:
        """When a worker last became ready. Changes with each one that does."""
        ...

    async def can_repair(self) -> bool:
        """Whether `repair` could change anything. If not, a slow worker is left alone."""
        ...

    async def repair(self, code: int, why: str) -> bool:
        """Repair after a worker that ended with this code before it was ready. `why` is '' if it
        ended by itself. Returns whether another start is worth while."""
        ...


class Supervisor:
    """Runs `command` as the worker. With `reload`, SIGHUP is passed on to the worker, which reloads
    its configuration; otherwise SIGHUP means that the terminal was closed, and ends everything.
    SIGUSR1 ends the worker in good order and starts the next one, with the code that is in place by
    then."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        now: Callable[[], float],
        *,
        reload: bool = True,
        pause: Callable[[int], float] = worker_backoff_s,
        repair: StartupRepair | None = None,
    ) -> None:
        self._command = command
        self._environment = environment
        self._now = now
        self._reload = reload
        self._pause = pause
        self._repair = repair
        self._worker: Process | None = None
        self._hung = ""
        """Why we ended the last worker at its start, or ''."""
        self._begun = False
        """Whether it turned out to be ready when we ended it."""
        self._ending = anyio.Event()
        self._restarting = False
        """Whether the worker that runs was told to end, so that the next one is started."""

    async def run(self) -> int:
        """Run workers until one ends by itself with another code than RESTART, crashes again and
        again, or we are told to stop. Returns the exit code of the last worker."""
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._handle_signals)
            code = await self._run_workers()
            tasks.cancel_scope.cancel()
        return code

    async def _run_workers(self) -> int:
        quick = 0
        watched = self._repair is not None
        while True:
            began = self._now()
            before = self._repair.last_start() if self._repair else None
            self._restarting = False
            code = await self._run_worker(watched)
            if self._restarting and not self._ending.is_set():
                continue

            repaired = False
            if self._failed_to_start(before) and (self._hung or code not in (0, RESTART)):
                repaired = await self._repair_start(code)
            quick = quick + 1 if self._now() - began < SETTLED_S else 0
            crashed = code - 128 in CRASHES and quick <= MAX_QUICK_CRASHES
            restarts = crashed and not self._ending.is_set()
            if restarts and not repaired:
                name = signal.Signals(code - 128).name
                log.warning("The worker was ended by %s. Restarting it.", name)
            if not (code == RESTART or repaired or self._hung or restarts):
                return code

            # A worker that hung and was not repaired may just be slow: it is not ended again.
            watched = self._repair is not None and (repaired or not self._hung)
            with anyio.move_on_after(self._pause(quick)):
                await self._ending.wait()
            if self._ending.is_set():
                return 0

    def _failed_to_start(self, before: float | None) -> bool:
        """Whether the last worker ended before it was ready. `before` is the last start before
        it."""
        if self._repair is None or self._begun or self._ending.is_set():
            return False
        return self._repair.last_start() == before

    async def _repair_start(self, code: int) -> bool:
        return self._repair is not None and await self._repair.repair(code, self._hung)

    async def _run_worker(self, watched: bool) -> int:
        """Run one worker and return its exit code, or 128 + the number of the signal that ended it.

        It runs in a session of its own, so that a Ctrl+C in the terminal reaches it only through
        us. `watched`: it is ended if it hangs at its start. Then `_hung` says why, and `_begun`
        whether it became ready meanwhile: its code says nothing about either, since it may end in
        good order.
        """
        ready, tell_ready = os.pipe()
        self._hung = ""
        self._begun = False
        try:
            env = {**self._environment, READY_VARIABLE: str(tell_ready)}
            try:
                process = await anyio.open_process(
                    self._command,
                    env=env,
                    stdin=DEVNULL,
                    stdout=None,
                    stderr=None,
                    start_new_session=True,
                    pass_fds=(tell_ready,),
                )
            finally:
                os.close(tell_ready)

            async with process, anyio.create_task_group() as tasks:
                self._worker = process
                if self._ending.is_set():
                    process.send_signal(signal.SIGTERM)
                if watched and self._repair is not None:
                    tasks.start_soon(self._end_if_hung, process, ready, self._repair)
                code = await process.wait()
                self._worker = None
                tasks.cancel_scope.cancel()
            self._begun = bool(self._hung) and _has_news(ready) and bool(os.read(ready, 1))
        finally:
            os.close(ready)
        return code if code >= 0 else 128 - code

    async def _end_if_hung(self, process: Process, ready: int, repair: StartupRepair) -> None:
        """End a worker that is not ready in time, if a repair may help."""
        with anyio.move_on_after(repair.start_s) as bounded:
            await anyio.wait_readable(ready)  # it is ready, or has ended
        if not bounded.cancelled_caught or self._ending.is_set():
            return

        why = f"it was not ready {repair.start_s:.0f} s after its start"
        if not await repair.can_repair():
            log.warning("The service has not started: %s. Waiting for it.", why)
            return
        if _has_news(ready):  # it became ready just now
            return
        log.warning("The service has not started: %s. Stopping it.", why)
        self._hung = why
        with suppress(ProcessLookupError):
            process.terminate()
            with anyio.move_on_after(HUNG_GRACE_S):
                await process.wait()
            process.kill()

    async def _handle_signals(self, *, task_status: TaskStatus[None]) -> None:
        handled = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)
        with anyio.open_signal_receiver(*handled) as orders:
            task_status.started()
            async with anyio.create_task_group() as tasks:
                async for order in orders:
                    if order == signal.SIGUSR1:
                        if self._worker is not None and not self._restarting:
                            self._restarting = True
                            tasks.start_soon(self._end_worker, self._worker)
                        continue
                    if order == signal.SIGHUP and self._reload:
                        self._signal_worker(signal.SIGHUP)
                        continue
                    if not self._ending.is_set():
                        tasks.start_soon(self._kill_late)
                    self._ending.set()
                    self._signal_worker(signal.SIGTERM)

    async def _end_worker(self, worker: Process) -> None:
        with suppress(ProcessLookupError):
            worker.terminate()
            await anyio.sleep(GRACE_S)
            worker.kill()

    async def _kill_late(self) -> None:
        await anyio.sleep(GRACE_S)
        self._signal_worker(signal.SIGKILL)

    def _signal_worker(self, order: signal.Signals) -> None:
        if self._worker is not None:
            with suppress(ProcessLookupError):
                self._worker.send_signal(order)


def _has_news(pipe: int) -> bool:
    """Whether the pipe can be read now: a byte, or its end."""
    return bool(select([pipe], [], [], 0)[0])
