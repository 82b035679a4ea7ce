"""A process and all that it started, as /proc shows them: whether they work, and ending them."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import anyio

LOOK_S = 0.5
IDLE_S = 2.0
"""It must have done nothing for so long."""
IDLE_SHARE = 0.25
"""Of one core: what a service and an engine that wait may use."""
_TICKS = os.sysconf("SC_CLK_TCK")


def tree(pid: int) -> set[int]:
    """This process and all below it."""
    found = set[int]()
    todo = [pid]
    while todo:
        pid = todo.pop()
        found.add(pid)
        with suppress(OSError):  # it may end at any moment
            for task in Path(f"/proc/{pid}/task").iterdir():
                with suppress(OSError):
                    todo += [int(child) for child in (task / "children").read_text().split()]
    return found


class ProcessWatch:
    """Watches a process by its id."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._seen: set[int] = {pid}

    async def until_idle(self) -> None:
        """Returns when all of them have used next to no processor for a while, and none waits for
        one or for the disk: on a busy machine somebody may have much to do and get nothing."""
        quiet_s = 0.0
        while quiet_s < IDLE_S:
            before_s = self._used_s()
            await anyio.sleep(LOOK_S)
            used_s = self._used_s() - before_s
            busy = used_s > IDLE_SHARE * LOOK_S or self._wants_more()
            quiet_s = 0.0 if busy else quiet_s + LOOK_S

    def signal_all(self, number: int) -> None:
        """Send a signal to all of them, the process itself last."""
        for pid in sorted(tree(self._pid), reverse=True):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def _used_s(self) -> float:
        """Processor time of all that live, in seconds."""
        ticks = 0
        for pid in tree(self._pid):
            with suppress(OSError, IndexError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12])
        return ticks / _TICKS

    def _wants_more(self) -> bool:
        for pid in tree(self._pid):
            for task in Path(f"/proc/{pid}/task").glob("*/stat"):
                with suppress(OSError, IndexError):
                    if task.read_text().rpartition(")")[2].split()[0] in "RD":
                        return True
        return False
