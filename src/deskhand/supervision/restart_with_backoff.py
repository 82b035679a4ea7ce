"""Keeps the parts of a running Deskhand running: each that fails is started again, and the others
do not notice."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio
import msgspec

from ..types.errors import ChannelError, DeskhandError, LoginRefused, StoreCorrupt
from .health_facts import Vitals, format_error

log = logging.getLogger(__name__)

SHORTEST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 60.0
REFUSED_PAUSE_S = 600.0
ENDED = "it ended by itself"


def restart_backoff_s(failures: int) -> float:
    """How long to wait after so many failures in a row: 0.5, 1, 2, … at most 60 seconds."""
    return float(min(SHORTEST_PAUSE_S * 2.0 ** min(max(failures - 1, 0), 16), LONGEST_PAUSE_S))


class Child(msgspec.Struct, frozen=True):
    """A part that is to run for ever. `awaited`: it is starting until it says that it is `ready`.
    Without a `vital` one nothing works."""

    name: str
    run: Callable[[], Awaitable[None]]
    awaited: bool = False
    vital: bool = False


async def keep_running(
    child: Child, vitals: Vitals, pause: Callable[[int], float] = restart_backoff_s
) -> None:
    """Run it for ever. Raises only what must end the process: a damaged database, and what is no
    Exception."""
    while True:
        vitals.record_start(child.name, awaited=child.awaited, vital=child.vital)
        try:
            await child.run()
            wait_s = _record_failure(child, DeskhandError(ENDED), vitals, pause)
        except Exception as error:
            if is_fatal(error):
                raise
            wait_s = _record_failure(child, error, vitals, pause)
        await anyio.sleep(wait_s)
        vitals.get(child.name).restarts += 1


def is_fatal(error: BaseException) -> bool:
    """Whether nothing may be built on what is left."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(is_fatal, error.exceptions))
    return isinstance(error, StoreCorrupt) or not isinstance(error, Exception)


def _record_failure(
    child: Child, error: Exception, vitals: Vitals, pause: Callable[[int], float]
) -> float:
    """Write down that it failed; returns after how many seconds it is started again."""
    failures = vitals.record_failure(child.name, error)
    vitals.record_stop(child.name)
    wait_s = REFUSED_PAUSE_S if isinstance(error, LoginRefused) else pause(failures)
    if isinstance(error, ChannelError) and error.retry_after_s is not None:
        wait_s = max(wait_s, min(error.retry_after_s, 3600.0))
    if isinstance(error, DeskhandError):
        log.warning("%s: %s; restarting in %.1f s", child.name, error, wait_s)
    else:
        log.error(
            "%s crashed (%s); restarting in %.1f s",
            child.name,
            format_error(error),
            wait_s,
            exc_info=error,
        )
    return wait_s
