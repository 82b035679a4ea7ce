"""The service that is soaked: what `deskhand serve` runs, with a clock that is set from outside,
names that lead to a site on this machine, and a signal at which it says what it holds.

python -m deskhand.testing.soak_child SHIFT SAYS SITE [WORKER]

SITE is the address and the port to which every name leads.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import signal
import sys
import tracemalloc
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Any

import anyio
import msgspec
from msgspec.structs import replace

from ..cli.run import load_service_settings
from ..cli.worker import run_worker_process
from ..config.config import worker_environment
from ..net.client import Net
from ..runtime.app import Parts
from ..supervision.supervise import Supervisor
from .clock import Shift, ShiftedClock

WARM_BYTES = 4_000_000
"""Conversations in memory grow up to a bound, which is hours away for a service. Here it is reached
while it warms up, so that this does not look like a leak."""
COUNT = signal.SIGUSR1
LIST = signal.SIGUSR2
"""Say how much there is; say also of what."""
MOST_KINDS = 60
MOST_DEEP = 40
MOST_LINES = 400


class Says(msgspec.Struct, frozen=True):
    """What a worker holds: asyncio's tasks, by what they do, and where it was asked to list them,
    where each of them is and all objects by their kind; with PYTHONTRACEMALLOC also how many bytes
    each line of code has asked for, and still holds. `heap` is what the C library has from the
    kernel, and what of it is in use, in bytes; `open` are its descriptors by what they lead to.
    `asked` counts the signals."""

    asked: int
    tasks: int
    doing: dict[str, int]
    places: list[str] = []
    objects: dict[str, int] = {}
    bytes: dict[str, int] = {}
    heap: dict[str, int] = {}
    open: dict[str, int] = {}


class SignalAnswers:
    """Answers signals in a file, which is there whole or not at all."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._asked = 0

    def begin(self) -> None:
        for number in (COUNT, LIST):
            signal.signal(number, self._say)

    def _say(self, number: int, frame: FrameType | None) -> None:
        self._asked += 1
        try:
            places = [_place(task.get_coro()) for task in asyncio.all_tasks()]
        except RuntimeError:  # it has not begun, or is over
            places = []
        said = Says(
            self._asked, len(places), dict(Counter(place.partition(":")[0] for place in places))
        )
        if number == LIST:
            objects = Counter(map(_kind, gc.get_objects())).most_common(MOST_KINDS)
            said = replace(said, places=sorted(places), objects=dict(objects), bytes=_lines())
            said = replace(said, heap=_heap(), open=_open())
        part = self._path.with_suffix(".part")
        part.write_bytes(msgspec.json.encode(said))
        part.replace(self._path)


def _place(waiting: Any) -> str:
    """Where a task is: from the coroutine that it began with to what that waits for."""
    found = list[str]()
    while waiting is not None and len(found) < MOST_DEEP:
        frame = getattr(waiting, "cr_frame", None) or getattr(waiting, "gi_frame", None)
        found.append(
            f"{getattr(waiting, '__qualname__', type(waiting).__name__)}:"
            f"{frame.f_lineno if frame else ''}"
        )
        waiting = getattr(waiting, "cr_await", None) or getattr(waiting, "gi_yieldfrom", None)
    return " > ".join(found)


def _lines() -> dict[str, int]:
    if not tracemalloc.is_tracing():
        return {}
    found = tracemalloc.take_snapshot().statistics("lineno")
    return {str(each.traceback): each.size for each in found[:MOST_LINES]}


MALLINFO = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"


class _Mallinfo(ctypes.Structure):
    """`struct mallinfo2` of <malloc.h>, glibc 2.33."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in MALLINFO.split())


def _heap() -> dict[str, int]:
    asked = ctypes.CDLL(None).mallinfo2
    asked.restype = _Mallinfo
    found = asked()
    return {
        "arenas": found.arena,
        "mapped": found.hblkhd,
        "used": found.uordblks,
        "free": found.fordblks,
    }


def _open() -> dict[str, int]:
    """Sockets by the port of who is at the other end, all else by what the kernel calls it."""
    peers = _peers()
    found = Counter[str]()
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            target = str(each.readlink())
            kind = target.partition(":[")[0]
            found[f"socket {peers.get(target, 'of no network')}" if kind == "socket" else kind] += 1
    return dict(found.most_common())


def _peers() -> dict[str, str]:
    """The state and the other port of each TCP socket, by what a descriptor of it leads to: see
    proc_net_tcp.txt."""
    rows = Path("/proc/self/net/tcp").read_text().splitlines()[1:]
    split = [row.split() for row in rows]
    return {
        f"socket:[{row[9]}]": f"to port {int(row[2].partition(':')[2], 16)} in state {row[3]}"
        for row in split
    }


def _kind(thing: object) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def changed(shift: Path, site: str, parts: Parts) -> Parts:
    """The same service in this small world."""

    address, _, port = site.rpartition(":")

    async def resolve(host: str, port: int) -> list[str]:
        return [address]

    return replace(
        parts,
        clock=ShiftedClock(Shift(shift)),
        net=Net(resolve=resolve, allow={(address, int(port))}),
        warm_bytes=WARM_BYTES,
    )


def main() -> None:
    shift, says, site, *worker = sys.argv[1:]
    if worker:
        SignalAnswers(Path(says)).begin()
        sys.exit(
            run_worker_process(
                load_service_settings(None, quiet=True),
                int(worker[0]),
                partial(changed, Path(shift), site),
            )
        )
    command = [
        sys.executable,
        "-P",
        "-m",
        "deskhand.testing.soak_child",
        shift,
        says,
        site,
        str(os.getpid()),
    ]
    sys.exit(anyio.run(Supervisor(command, worker_environment(), monotonic).run))


if __name__ == "__main__":
    main()
