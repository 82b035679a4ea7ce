"""The torture with several workers on one database, whose clocks are apart: each is killed, or
stopped and let go on, at any moment, and all lose their connections.

python -m deskhand.testing.torture_workers [--kills 40] [--workers 5] [--seed 1]
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.abc
import anyio.to_thread
import psycopg

from .clock import Shift
from .postgres import PostgresServer, open_schema, running_server
from .torture import READY_S, TortureReport
from .torture_child import WORKER, agents_beside, shift_beside, store_beside, worker_of
from .torture_postgres import PostgresTorture

AGENTS = 5
STOPPED_S = (0.2, 15.0)
"""How long a process is stopped: beyond 8 s another one takes its place."""
APART_S = 90.0
"""Their clocks are apart by up to so much."""
LIVES_S = 1.5
"""How long all live from one blow to the next, at most."""
KILLED, STOPPED, CUT = 0.5, 0.8, 0.95
"""How often a blow kills a process, stops one, cuts all connections; what is left crashes the
server."""


class WorkersTorture(PostgresTorture):
    """One run of it. The first process leads; the others work beside it."""

    def __init__(
        self, home: Path, kills: int, seed: int, server: PostgresServer, workers: int
    ) -> None:
        super().__init__(home, kills, seed, server)
        self._modes = ["true", *(f"{WORKER}{number}" for number in range(1, workers))]
        self._running: dict[str, anyio.abc.Process] = {}
        for mode in self._modes:
            if worker := worker_of(mode):
                Shift(shift_beside(home, worker)).set(
                    self.platform.random.uniform(-APART_S, APART_S)
                )
        self.blows: dict[str, int] = dict.fromkeys(("killed", "stopped", "cut", "crashed"), 0)
        self.replaced = 0

    async def kill_all(self) -> None:
        try:
            for mode in self._modes:
                await self._start_one(mode)
            for _ in range(self.kills):
                await anyio.sleep(self.platform.random.uniform(0.1, LIVES_S))
                await self._strike()
                await self.look_after()
                self.report.kills += 1
            self.take_no_more()
            await self.drain()
        finally:
            with anyio.CancelScope(shield=True):
                for process in self._running.values():
                    _signal(process, signal.SIGKILL)
                    await process.wait()

    async def _start_one(self, mode: str) -> None:
        command = [sys.executable, "-m", "deskhand.testing.torture_child"]
        self._running[mode] = await anyio.open_process(
            [*command, str(self.home), self.url, mode], stdin=None, stdout=None, stderr=None
        )

    async def look_after(self) -> None:
        """What a supervisor does."""
        for mode, process in self._running.items():
            if process.returncode is not None:
                await self._start_one(mode)

    async def _strike(self) -> None:
        chance = self.platform.random.random()
        mode = self.platform.random.choice(self._modes)
        process = self._running[mode]
        if chance < KILLED:
            self.blows["killed"] += 1
            _signal(process, signal.SIGKILL)
            await process.wait()
        elif chance < STOPPED:
            self.blows["stopped"] += 1
            _signal(process, signal.SIGSTOP)
            await anyio.sleep(self.platform.random.uniform(*STOPPED_S))
            _signal(process, signal.SIGCONT)
            with anyio.move_on_after(3):
                await process.wait()
            self.replaced += process.returncode is not None
        elif chance < CUT:
            self.blows["cut"] += 1
            await anyio.to_thread.run_sync(self._cut)
        else:
            self.blows["crashed"] += 1
            await self.crash_server()

    def _cut(self) -> None:
        with psycopg.connect(self.server.url, autocommit=True) as db:
            db.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'deskhand'"
            )


def _signal(process: anyio.abc.Process, which: signal.Signals) -> None:
    """To a process that may have ended by itself."""
    with suppress(ProcessLookupError):
        process.send_signal(which)


async def torture_workers(kills: int, seed: int, workers: int) -> TortureReport:
    """Run it with a home and a server of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="deskhand-torture-") as place,
        running_server(durable=True) as server,
        open_schema(server) as url,
    ):
        home = Path(place) / "home"
        home.mkdir()
        store_beside(home).write_text(url)
        agents_beside(home).write_text(str(AGENTS))
        made = WorkersTorture(home, kills, seed, server, workers)
        made.drain_s = READY_S
        report = await made.run()
        sys.stdout.write(f"{made.blows}, {made.replaced} replaced\n")
        return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--workers", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    report = anyio.run(torture_workers, chosen.kills, chosen.seed, chosen.workers)
    sys.stdout.write(report.show() + "\n")
    sys.exit(0 if report.is_clean else 1)


if __name__ == "__main__":
    main()
