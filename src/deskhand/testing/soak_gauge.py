"""What a process holds, as /proc shows it, and whether that grows."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Sequence
from pathlib import Path

import msgspec

from .everyday.processes import tree

_KB = re.compile(r"^(\w+):\s+(\d+) kB$", re.MULTILINE)


class ResourceUse(msgspec.Struct, frozen=True):
    """What a process and those below it hold at `at_s` seconds. Memory is in KB, `anon` is what it
    shares with nobody and no file: a share of what is shared with its children counts. `below` are
    the processes that it has started, `dead` those of them that nobody has taken notice of yet."""

    at_s: float = 0.0
    rss: int = 0
    anon: int = 0
    fds: int = 0
    threads: int = 0
    tasks: int = 0
    below: int = 0
    dead: int = 0
    answered: int = 0


class Slope(msgspec.Struct, frozen=True):
    """How fast something grows, each hour, and by how much that may be off (two standard
    errors)."""

    per_hour: float = 0.0
    error: float = math.inf


def held(pid: int, at_s: float, tasks: int = 0, answered: int = 0) -> ResourceUse:
    """Raises OSError where it is gone."""
    status = dict(_KB.findall(Path(f"/proc/{pid}/status").read_text()))
    rollup = dict(_KB.findall(Path(f"/proc/{pid}/smaps_rollup").read_text()))
    below = tree(pid) - {pid}
    return ResourceUse(
        at_s,
        int(status["VmRSS"]),
        int(rollup["Pss_Anon"]),
        sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()),
        sum(1 for _ in Path(f"/proc/{pid}/task").iterdir()),
        tasks,
        len(below),
        sum(state_of(each) == "Z" for each in below),
        answered,
    )


def state_of(pid: int) -> str:
    """A letter as in ps; '' for one that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def arguments_of(pid: int) -> str:
    """What it was started with, its parent and its group; '' for one that is gone."""
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    command = b" ".join(arguments).decode(errors="replace")[:300].strip()
    return f"{command} (parent {fields[1]}, group {fields[2]}, session {fields[3]})"


def began(pid: int) -> str:
    """With its id this names a process for ever; '' for one that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def slope(samples: Sequence[tuple[float, float]]) -> Slope:
    """The straight line through (seconds, value) with the least squares."""
    if len(samples) < 3:
        return Slope()
    hours = [at_s / 3600 for at_s, _ in samples]
    values = [value for _, value in samples]
    spread = sum((hour - statistics.fmean(hours)) ** 2 for hour in hours)
    if not spread:
        return Slope()
    line = statistics.linear_regression(hours, values)
    rest = sum(
        (value - line.slope * hour - line.intercept) ** 2
        for hour, value in zip(hours, values, strict=True)
    )
    return Slope(line.slope, 2 * math.sqrt(rest / (len(samples) - 2) / spread))
