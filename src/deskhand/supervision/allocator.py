"""How the C library of this process keeps what was freed."""

from __future__ import annotations

import ctypes
from contextlib import suppress

import anyio
import anyio.to_thread

M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3
M_ARENA_MAX = -8
"""From <malloc.h> of glibc."""
LARGE_BYTES = 1 << 20
ARENAS = 2
TRIM_S = 30.0


def tune_malloc() -> None:
    """Have it give back to the kernel what was freed, for as long as this process lives; to be
    called before there are threads.

    Without this each thread gets a pool of its own, and as soon as something large was freed once,
    glibc takes what is as large, up to 32 MB, from these pools: a service that works for days keeps
    the most that each of its threads ever needed at once. Other C libraries have no such settings.
    """
    libc = ctypes.CDLL(None)
    with suppress(AttributeError):
        libc.mallopt(M_ARENA_MAX, ARENAS)
        libc.mallopt(M_MMAP_THRESHOLD, LARGE_BYTES)
        libc.mallopt(M_TRIM_THRESHOLD, LARGE_BYTES)


async def trim_memory() -> None:
    """Give unused memory back to the kernel every 30 seconds, for ever.

    The thresholds above only return what lies at the end of a pool: one small object above 100 MB
    that were freed keeps all of them. `malloc_trim` also returns what lies between. It takes 15 ms
    for those, in a thread, and less than one where there is nothing. Other C libraries have none:
    then nothing happens.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    while True:
        await anyio.sleep(TRIM_S)
        if trim is not None:
            await anyio.to_thread.run_sync(trim, 0)
