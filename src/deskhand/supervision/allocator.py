"""How the C library of this process keeps what was freed."""

from __future__ import annotations

import ctypes
from contextlib import suppress

M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3
M_ARENA_MAX = -8
"""From <malloc.h> of glibc."""
LARGE_BYTES = 1 << 20
ARENAS = 2


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
