"""The torture with several workers on one database, whose clocks are apart: each is killed, or
stopped and let go on, at any moment, all lose their connections, and some transactions cannot be
serialized. Meanwhile people write, and jobs fire.

python -m deskhand.testing.torture_workers [--kills 40] [--workers 5] [--seed 1]
    [--longest-stop 15] [--refused 0] [--jobs 0] [--standby]
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from contextlib import nullcontext, suppress
from pathlib import Path

import anyio
import anyio.abc
import anyio.to_thread
import msgspec
import psycopg

from ..types.events import MessageReceived, TurnEnded
from .clock import Shift
from .postgres import PostgresServer, open_schema, running_server, running_standby
from .torture import READY_S, SESSIONS, TortureReport
from .torture_child import ANN, WORKER, agents_beside, shift_beside, store_beside, worker_of
from .torture_postgres import PostgresTorture

AGENTS = 5
SHORTEST_STOP_S = 0.2
LONGEST_STOP_S = 15.0
"""A process is stopped for as long as between these two: beyond 8 s another one takes its place."""
APART_S = 90.0
"""Their clocks are apart by up to so much."""
LIVES_S = 1.5
"""How long all live from one blow to the next, at most, where people come to write meanwhile."""
MESSAGES_A_BLOW = 6
"""So many messages are written for each blow, however slow the machine is."""
BLOWS = {"killed": 50, "stopped": 30, "cut": 15, "crashed": 5}
"""How often a blow kills a process, stops one, cuts all connections, crashes the server."""
LAGGED = 40
"""How often the standby falls behind, where there is one."""
REFUSE = """
CREATE SEQUENCE refused;
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF abs(hashint8(pg_current_xact_id()::text::bigint) % 1000) < {share} THEN
    PERFORM nextval('refused');
    RAISE EXCEPTION 'could not serialize access' USING ERRCODE = 'serialization_failure';
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON event DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON inbox DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION refuse();
"""
"""The server refuses so many of 1,000 transactions, when they commit events or take something in. A
sequence counts them, also where all else of the transaction is undone."""


class TortureOptions(msgspec.Struct, frozen=True):
    """`kills` blows, against so many processes. A process is stopped for `longest_stop_s` at most;
    the share `refused` of the transactions fails. There are so many `jobs`, and with `standby` a
    second server that has everything before a commit returns, and falls behind."""

    kills: int = 40
    workers: int = 5
    seed: int = 1
    longest_stop_s: float = LONGEST_STOP_S
    refused: float = 0.0
    jobs: int = 0
    standby: bool = False


JOB = """---
schedule: every {every}s
misfire: run_once
agent: a{agent}
session: {name}
---

It is time.
"""
JOBS_A_SECOND = 2.5
LAST_JOBS_S = 3.0
"""So long after its file is gone a job may still be started."""


class WorkersTorture(PostgresTorture):
    """One run of it. The first process leads; the others work beside it."""

    def __init__(
        self,
        home: Path,
        server: PostgresServer,
        chosen: TortureOptions,
    ) -> None:
        super().__init__(home, chosen.kills, chosen.seed, server)
        workers = chosen.workers
        self._chosen = chosen
        self._modes = ["true", *(f"{WORKER}{number}" for number in range(1, workers))]
        self._running: dict[str, anyio.abc.Process] = {}
        for mode in self._modes:
            if worker := worker_of(mode):
                Shift(shift_beside(home, worker)).set(
                    self.platform.random.uniform(-APART_S, APART_S)
                )
        self._chances = BLOWS | ({"lagged": LAGGED} if chosen.standby else {})
        self.blows = dict.fromkeys(self._chances, 0)
        self.replaced = 0
        self.runs = 0
        every = max(5, round(chosen.jobs / JOBS_A_SECOND))
        for number in range(chosen.jobs):
            file = home / "jobs" / f"j{number}" / "JOB.md"
            file.parent.mkdir(parents=True)
            file.write_text(JOB.format(every=every, agent=number % AGENTS, name=f"j{number}"))

    async def kill_all(self) -> None:
        try:
            for mode in self._modes:
                await self._start_one(mode)
            if self._chosen.refused:
                await self._refuse_transactions()
            for _ in range(self.kills):
                await anyio.sleep(self.platform.random.uniform(0.1, LIVES_S))
                await self._wait_for_messages()
                await self._strike()
                await self.look_after()
                self.report.kills += 1
            self.take_no_more()
            if self._chosen.jobs:
                shutil.rmtree(self.home / "jobs")
                await anyio.sleep(LAST_JOBS_S)
            await self.drain()
        finally:
            with anyio.CancelScope(shield=True):
                for process in self._running.values():
                    _signal(process, signal.SIGKILL)
                    await process.wait()

    async def _wait_for_messages(self) -> None:
        """A blow hits nothing where nobody could write since the last ones."""
        wanted = MESSAGES_A_BLOW * (self.report.kills + 1)
        with anyio.fail_after(READY_S):
            while len(self.platform.updates) < wanted:
                await self.look_after()
                await anyio.sleep(0.05)

    async def _refuse_transactions(self) -> None:
        """Begin when the tables are there."""
        url = store_beside(self.home).read_text()
        script = REFUSE.format(share=round(1000 * self._chosen.refused))
        async with await psycopg.AsyncConnection.connect(url) as db:
            while True:
                try:
                    await db.execute(script)
                except psycopg.errors.UndefinedTable:
                    await db.rollback()
                    await anyio.sleep(0.1)
                else:
                    return

    async def count_refused(self) -> int:
        """How many transactions failed by that."""
        if not self._chosen.refused:
            return 0
        url = store_beside(self.home).read_text()
        async with await psycopg.AsyncConnection.connect(url) as db:
            found = await (await db.execute("SELECT last_value FROM refused")).fetchone()
        return found[0] if found else 0

    async def compare(self) -> None:
        """Also what became of the jobs: no time was taken in twice, and each is answered."""
        await super().compare()
        store = self.open_store()
        taken = Counter[str]()
        open_ = dict[int, str]()
        for row in await store.sessions(ANN, SESSIONS):
            for recorded in await store.events(row.session):
                event = recorded.event
                if isinstance(event, MessageReceived) and event.external_id.startswith("job:"):
                    taken[event.external_id] += 1
                    open_[event.inbox_id] = event.external_id
                elif isinstance(event, TurnEnded):
                    for inbox_id in event.answers:
                        open_.pop(inbox_id, None)
        await store.close()
        self.runs = len(taken)
        twice = [key for key, count in taken.items() if count > 1]
        self.report.faults += [f"{key} was taken in twice" for key in twice]
        self.report.faults += [f"{key} was not answered" for key in open_.values()]

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
        random = self.platform.random
        (blow,) = random.choices([*self._chances], [*self._chances.values()])
        process = self._running[random.choice(self._modes)]
        self.blows[blow] += 1
        match blow:
            case "killed":
                _signal(process, signal.SIGKILL)
                await process.wait()
            case "stopped":
                _signal(process, signal.SIGSTOP)
                await self._let_it_rest()
                _signal(process, signal.SIGCONT)
                with anyio.move_on_after(3):
                    await process.wait()
                self.replaced += process.returncode is not None
            case "cut":
                await anyio.to_thread.run_sync(self._cut)
            case "lagged":
                await self._lag()
            case _:
                await self.crash_server()

    async def _let_it_rest(self) -> None:
        longest = self._chosen.longest_stop_s
        await anyio.sleep(self.platform.random.uniform(SHORTEST_STOP_S, longest))

    async def _lag(self) -> None:
        """The standby is sent nothing for a while, so no commit returns."""
        with psycopg.connect(self.server.url, autocommit=True) as db:
            senders = [pid for (pid,) in db.execute("SELECT pid FROM pg_stat_replication")]
        for pid in senders:
            os.kill(pid, signal.SIGSTOP)
        await self._let_it_rest()
        for pid in senders:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

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


async def torture_workers(chosen: TortureOptions) -> TortureReport:
    """Run it with a home and a server of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="deskhand-torture-") as place,
        running_server(durable=True) as server,
        running_standby(server) if chosen.standby else nullcontext(),
        open_schema(server) as url,
    ):
        home = Path(place) / "home"
        home.mkdir()
        store_beside(home).write_text(url)
        agents_beside(home).write_text(str(AGENTS))
        made = WorkersTorture(home, server, chosen)
        made.drain_s = READY_S
        report = await made.run()
        refused = await made.count_refused()
        sys.stdout.write(
            f"{made.blows}, {made.replaced} replaced, {refused} refused, {made.runs} runs of jobs\n"
        )
        if refused < 10 and chosen.refused:
            report.faults.append(f"only {refused} transactions were refused")
        if made.runs < chosen.jobs:
            report.faults.append(f"of {chosen.jobs} jobs only {made.runs} times came")
        return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    options = TortureOptions()
    parser.add_argument("--kills", type=int, default=options.kills)
    parser.add_argument("--workers", type=int, default=options.workers)
    parser.add_argument("--seed", type=int, default=options.seed)
    parser.add_argument("--longest-stop", type=float, default=options.longest_stop_s)
    parser.add_argument("--refused", type=float, default=options.refused)
    parser.add_argument("--jobs", type=int, default=options.jobs)
    parser.add_argument("--standby", action="store_true")
    given = parser.parse_args()
    chosen = TortureOptions(
        kills=given.kills,
        workers=given.workers,
        seed=given.seed,
        longest_stop_s=given.longest_stop,
        refused=given.refused,
        jobs=given.jobs,
        standby=given.standby,
    )
    report = anyio.run(torture_workers, chosen)
    sys.stdout.write(report.show() + "\n")
    sys.exit(0 if report.is_clean else 1)


if __name__ == "__main__":
    main()
