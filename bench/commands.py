"""What it costs to run `true` in the sandbox, beside bare bubblewrap: in a process of its own,
which collects whatever comes of a command, so that its CPU time can be told.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from deskhand.sandbox import kernel
from deskhand.sandbox.base import Mount, SandboxCommand
from deskhand.sandbox.choose import open_sandbox

_TIMES = 60
_BARE = (
    "--unshare-all --ro-bind /usr /usr --symlink usr/lib /lib --symlink usr/lib64 /lib64 --proc "
    "/proc --dev /dev"
)


def _cpu_ms() -> float:
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used) * 1e3


def _collect() -> None:
    """Wait for what bubblewrap left to us: the first process of its namespace."""
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        return


async def _cost(once: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """Wall and CPU milliseconds of one call: the median of the first, the mean of the second."""
    for _ in range(5):
        await once()
    _collect()
    walls = []
    before = _cpu_ms()
    for _ in range(_TIMES):
        start = time.perf_counter()
        await once()
        walls.append((time.perf_counter() - start) * 1e3)
        _collect()
    return statistics.median(walls), (_cpu_ms() - before) / _TIMES


async def main() -> None:
    """Print (wall ours, wall bare, CPU ours, CPU bare) as JSON."""
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    sandbox, bwrap = (await open_sandbox()).sandbox, shutil.which("bwrap") or "bwrap"

    async def bare() -> None:
        subprocess.run([bwrap, *_BARE.split(), "/usr/bin/true"], check=True)

    with tempfile.TemporaryDirectory(prefix="deskhand-bench-") as folder:
        place = str(Path(folder).resolve())
        command = SandboxCommand(("/usr/bin/true",), place, (Mount(place, write=True),))
        wall, cpu = await _cost(lambda: sandbox.run(command, lambda piece, error: None))
        bare_wall, bare_cpu = await _cost(bare)
    print(json.dumps([wall, bare_wall, cpu, bare_cpu]))


def figures() -> tuple[float, float, float, float]:
    """As `main` prints them, for the median of three runs."""
    runs = [
        json.loads(
            subprocess.run([sys.executable, __file__], capture_output=True, check=True).stdout
        )
        for _ in range(3)
    ]
    wall, bare_wall, cpu, bare_cpu = (
        statistics.median(column) for column in zip(*runs, strict=True)
    )
    return wall, bare_wall, cpu, bare_cpu


if __name__ == "__main__":
    anyio.run(main)
