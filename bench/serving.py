"""`deskhand serve` as it is run: how soon it is there, what it holds while nothing happens, and how
it ends."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import anyio

from deskhand.config.config import Config, Home, Settings
from deskhand.runtime.app import Parts, open_app
from deskhand.runtime.worker import run_worker
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.scripted import ScriptedModel
from deskhand.types.identity import Inbound, Principal

ROUNDS = 5
TURNS = 20
TURN_S = 2.0
SETTLE_S = 3.0
Figure = tuple[str, float, str, float | None]
"""What it is, how much, the unit, and what it must not exceed."""


@contextmanager
def served(
    model: str = "scripted/echo",
    *,
    channels: Mapping[str, object] | None = None,
    secrets: Mapping[str, str] | None = None,
) -> Iterator[tuple[subprocess.Popen[bytes], Path, float]]:
    """The service with these channels, its home, and when it was started."""
    with tempfile.TemporaryDirectory(prefix="deskhand-bench-", dir=Path.cwd()) as folder:
        home = Path(folder)
        config = {"defaults": {"models": [model]}, "web": {"port": 0}, "channels": channels or {}}
        (home / "deskhand.yaml").write_text(json.dumps(config))  # JSON is YAML
        place = {"PATH": os.environ["PATH"], "DESKHAND_HOME": folder, "HOME": folder}
        env = {**place, **(secrets or {})}
        argv = [sys.executable, "-P", "-m", "deskhand", "serve"]
        began = time.perf_counter()
        with subprocess.Popen(
            argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        ) as process:
            try:
                yield process, home, began
            finally:
                if process.poll() is None:
                    process.terminate()
                    process.wait()


def ready(home: Path) -> str:
    """Wait until the page answers and somebody drives; its address."""
    while True:
        try:
            url = (home / "state" / "web.json").read_text().split('"')[3]
            urllib.request.urlopen(f"{url}/health", timeout=1).close()
            if (home / "state" / "last_start").exists():
                return url
        except (OSError, IndexError, urllib.error.URLError):
            pass
        time.sleep(0.002)


def worker_of(process: subprocess.Popen[bytes]) -> int:
    return int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])


def rss_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Intake(MemoryChannel):
    """Notes when it was read no more."""

    closed_at = 0.0

    async def receive(self) -> AsyncIterator[Inbound]:
        try:
            async for inbound in super().receive():
                yield inbound
        finally:
            self.closed_at = time.perf_counter()


async def end_in_mid_turn() -> list[Figure]:
    """SIGTERM while twenty turns of TURN_S are under way: how soon nothing is taken in, and when it
    has ended."""
    channel = Intake()
    model = ScriptedModel(latency_s=TURN_S)
    owner = Principal("ann", ("owner",))
    with tempfile.TemporaryDirectory(prefix="deskhand-bench-", dir=Path.cwd()) as folder:
        settings = Settings(Home(Path(folder)), Config()).with_model("scripted/slow")
        parts = Parts(lambda name: model, {}, channels=(channel,), authorize=lambda inbound: owner)
        async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
            tasks.start_soon(run_worker, app, lambda: None)
            for number in range(TURNS):
                channel.write("hello", chat=str(number))
            while len(model.requests) < TURNS:
                await anyio.sleep(0.001)
            began = time.perf_counter()
            os.kill(os.getpid(), signal.SIGTERM)
        ended = time.perf_counter()
    return [
        ("SIGTERM in 20 turns: intake closed", (channel.closed_at - began) * 1e3, "ms wall", 100.0),
        ("SIGTERM in 20 turns of 2 s: ended", ended - began, "s wall", 25.0),
    ]


def figures() -> list[Figure]:
    starts = []
    worked = []
    idle = []
    parents = []
    busy = []
    ends = []
    for _ in range(ROUNDS):
        with served() as (process, home, began):
            ready(home)
            starts.append((time.perf_counter() - began) * 1e3)
            worker = worker_of(process)
            worked.append((cpu_s(worker) + cpu_s(process.pid)) * 1e3)
            time.sleep(SETTLE_S / 2)
            before = cpu_s(worker)
            time.sleep(SETTLE_S)
            busy.append((cpu_s(worker) - before) / SETTLE_S * 100)
            idle.append(rss_mb(worker))
            parents.append(rss_mb(process.pid))
            began = time.perf_counter()
            process.send_signal(signal.SIGTERM)
            process.wait()
            ends.append((time.perf_counter() - began) * 1e3)
    return [
        ("serve: from its start to ready", statistics.median(starts), "ms wall", 1000.0),
        ("serve: until then, both processes", statistics.median(worked), "ms CPU", None),
        ("serve: idle, the worker", statistics.median(idle), "MB", 60.0),
        ("serve: idle, its parent", statistics.median(parents), "MB", None),
        ("serve: idle, of one core", statistics.median(busy), "%", None),
        ("serve: end with nothing to do", statistics.median(ends), "ms wall", None),
    ]


if __name__ == "__main__":
    for name, value, unit, limit in (*figures(), *anyio.run(end_in_mid_turn)):
        print(f"{name:36} {value:8.2f} {unit:8} {'' if limit is None else f'<= {limit:.0f}'}")
