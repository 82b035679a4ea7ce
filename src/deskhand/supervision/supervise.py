"""The parent of `deskhand serve`: one worker process, started again when it asks for that, and
never left behind."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from select import select
from subprocess import DEVNULL
from typing import Any, NamedTuple

import anyio
from anyio.abc import Process, TaskStatus

from .start_log import READY_VARIABLE

log = logging.getLogger(__name__)

RESTART = 75
CRASHED = 76
"""Exit codes: start me again (EX_TEMPFAIL of sysexits.h); it broke, and `startup_error.json` says
why."""
DRAIN_S = 20.0
"""So long may what is under way go on after the order to end. Docker and systemd are told to wait
for 30 s."""
SETTLED_S = 10.0
"""A worker that lived longer has not failed at its start."""
LONGEST_PAUSE_S = 60.0
CRASHES = frozenset(
    {signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE}
)
"""Signals by which a worker ends that nobody told to: the system ran out of memory, or a library
broke."""
MAX_QUICK_CRASHES = 5
"""After so many in a row that ended soon after their start, one that crashes is not started
again."""
GRACE_S = DRAIN_S + 3.0
START_S = 60.0
HUNG_GRACE_S = 3.0
"""So long a start may take, and so long one that takes longer may take to end."""


def worker_backoff_s(quick: int) -> float:
    """How long to wait before the next start, after so many workers in a row ended soon after
    theirs."""
    return 0.0 if quick < 1 else min(2.0 ** (quick - 1), LONGEST_PAUSE_S)


async def _cannot_mend(why: str = "") -> bool:
    return False


class Mending(NamedTuple):
    """What is done about a worker that does not come up. `came_up` gives something else after each
    one that did; `mend` is given why one did not, '' where it ended by itself with an error, and
    says whether another start is worth while. One that is not ready after `start_s` is ended only
    where something `could` be mended: else it may be slow with good reason. Where it then was not,
    the next start may take as long as it likes."""

    last_start: Callable[[], object] = object
    mend: Callable[[int, str], Awaitable[bool]] = lambda code, why: _cannot_mend(why)
    can_mend: Callable[[], Awaitable[bool]] = _cannot_mend
    start_s: float = START_S


class Supervisor:
    """Runs `command` as the worker. With `reload`, SIGHUP has the worker started anew; else it ends
    everything, as a terminal that is closed means it."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        now: Callable[[], float],
        *,
        reload: bool = True,
        pause: Callable[[int], float] = worker_backoff_s,
        mending: Mending | None = None,
    ) -> None:
        self._command = command
        self._environment = environment
        self._now = now
        self._reload = reload
        self._pause = pause
        self._mending = mending or Mending()
        self._worker: Process | None = None
        self._hung = ""
        self._begun = False
        self._ending = anyio.Event()

    async def run(self) -> int:
        """Until a worker ends by itself with anything but RESTART, crashes again and again, or we
        are told to end; the exit code is the worker's."""
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._handle_signals)
            code = await self._run_workers()
            tasks.cancel_scope.cancel()
        return code

    async def _run_workers(self) -> int:
        quick = 0
        watched = True
        while True:
            began = self._now()
            before = self._mending.last_start()
            code = await self._run_worker(watched)
            failed = (
                self._mending.last_start() == before
                and not self._begun
                and not self._ending.is_set()
            )
            mended = failed and (bool(self._hung) or code not in (0, RESTART))
            mended = mended and await self._mending.mend(code, self._hung)
            quick = quick + 1 if self._now() - began < SETTLED_S else 0
            again = (
                code - 128 in CRASHES and quick <= MAX_QUICK_CRASHES and not self._ending.is_set()
            )
            if again and not mended:
                log.warning(
                    "The worker was ended by %s; it is started again.",
                    signal.Signals(code - 128).name,
                )
            if code != RESTART and not mended and not self._hung and not again:
                return code
            watched = (
                mended or not self._hung
            )  # what does not help, or was only slow, is not ended a second time
            with anyio.move_on_after(self._pause(quick)):
                await self._ending.wait()
            if self._ending.is_set():
                return 0

    async def _run_worker(self, watched: bool) -> int:
        """One worker's life. It is in a session of its own: a Ctrl+C in the terminal reaches it
        through us alone.

        `_hung` says then why we ended it, and `_begun` that it had said by then that it was ready:
        its code says nothing of either, since one that is told to end may do so in good order."""
        told, tells = os.pipe()
        self._hung = ""
        self._begun = False
        try:
            env = {**self._environment, READY_VARIABLE: str(tells)}
            try:
                std: dict[str, Any] = {"stdin": DEVNULL, "stdout": None, "stderr": None}
                process = await anyio.open_process(
                    self._command, env=env, start_new_session=True, pass_fds=(tells,), **std
                )
            finally:
                os.close(tells)
            async with process, anyio.create_task_group() as tasks:
                self._worker = process
                if self._ending.is_set():
                    process.send_signal(signal.SIGTERM)
                if watched:
                    tasks.start_soon(self._end_if_hung, process, told)
                code = await process.wait()
                self._worker = None
                tasks.cancel_scope.cancel()
            self._begun = bool(self._hung and select([told], [], [], 0)[0] and os.read(told, 1))
        finally:
            os.close(told)
        return code if code >= 0 else 128 - code

    async def _end_if_hung(self, process: Process, told: int) -> None:
        """A worker that hangs before it is ready is ended, if that may help."""
        with anyio.move_on_after(self._mending.start_s) as bounded:
            await anyio.wait_readable(told)  # its word, or the end of it
        if not bounded.cancelled_caught or self._ending.is_set():
            return
        why = f"it was not ready {self._mending.start_s:.0f} s after its start"
        if not await self._mending.can_mend():
            log.warning("The service has not begun: %s. It is left to go on.", why)
            return
        if select([told], [], [], 0)[0]:
            return  # just now
        log.warning("The service has not begun: %s. It is ended.", why)
        self._hung = why
        with suppress(ProcessLookupError):
            process.terminate()
            with anyio.move_on_after(HUNG_GRACE_S):
                await process.wait()
            process.kill()

    async def _handle_signals(self, *, task_status: TaskStatus[None]) -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as orders:
            task_status.started()
            async with anyio.create_task_group() as tasks:
                async for order in orders:
                    if order == signal.SIGHUP and self._reload:
                        self._signal_worker(signal.SIGHUP)
                        continue
                    if not self._ending.is_set():
                        tasks.start_soon(self._kill_late)
                    self._ending.set()
                    self._signal_worker(signal.SIGTERM)

    async def _kill_late(self) -> None:
        await anyio.sleep(GRACE_S)
        self._signal_worker(signal.SIGKILL)

    def _signal_worker(self, order: signal.Signals) -> None:
        if self._worker is not None:
            with suppress(ProcessLookupError):
                self._worker.send_signal(order)
