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
import re
import signal
import sys
import tempfile
import tracemalloc
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Any

import anyio
import apsw
import msgspec
from msgspec.structs import replace

from ..cli.run import load_service_settings
from ..cli.worker_process import run_worker_process
from ..config.config import worker_environment
from ..net.client import Net
from ..runtime.app import Parts
from ..supervision.supervise import Supervisor
from .clock import Shift, ShiftedClock

WARM_BYTES = 4_000_000
"""Conversations in memory grow up to a bound, which is hours away for a service. Here it is reached
while it warms up, so that this does not look like a leak."""
NAMES = 200_000
"""Python keeps a table of interned strings, into which pathlib puts each part of a path. It doubles
once, by 2 MB, when so many have come and gone as a service sees in hours; here it does at the first
signal."""
COUNT = signal.SIGUSR1
LIST = signal.SIGUSR2
"""Say how much there is; say also of what."""
MOST_KINDS = 60
MOST_DEEP = 40
MOST_LINES = 400
_HEAP = re.compile(r"<heap nr.*?</heap>", re.DOTALL)
_SYSTEM = re.compile(r'<system type="current" size="(\d+)"')
_FREE = re.compile(r'<total type="(?:fast|rest)" count="\d+" size="(\d+)"')
_MAPPED = re.compile(r'<total type="mmap" count="\d+" size="(\d+)"')


class Says(msgspec.Struct, frozen=True):
    """What a worker holds: asyncio's tasks, by what they do, and where it was asked to list them,
    where each of them is and all objects by their kind; with PYTHONTRACEMALLOC also how many bytes
    each line of code has asked for, and still holds. `heap` is what each heap of the C library
    has from the kernel, and what of it is in use, in bytes; `open` are its descriptors by what they
    lead to. `asked` counts the signals."""

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
        if not self._asked:
            for name in range(NAMES):
                sys.intern(f"a name of this soak {name}")
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


def _heap() -> dict[str, int]:
    """What each heap of the C library has from the kernel and how much of that is in use, in bytes,
    by malloc_info(3); and what SQLite has of it. (mallinfo tells of the first heap only.)"""
    libc = ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    with tempfile.NamedTemporaryFile("r") as file:
        stream = libc.fopen(file.name.encode(), b"w")
        libc.malloc_info(0, ctypes.c_void_p(stream))
        libc.fclose(ctypes.c_void_p(stream))
        text = file.read()
    found = {"sqlite": apsw.status(apsw.SQLITE_STATUS_MEMORY_USED)[0]}
    for number, heap in enumerate(_HEAP.findall(text)):
        system = int(_SYSTEM.search(heap)[1])  # type: ignore[index]  # it is always there
        free = sum(int(size) for size in _FREE.findall(heap))
        found |= {f"heap {number}": system, f"heap {number} used": system - free}
    mapped = _MAPPED.search(text)
    found["mapped"] = int(mapped[1]) if mapped else 0
    return found


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
