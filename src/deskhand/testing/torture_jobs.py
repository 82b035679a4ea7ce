"""Kills a Deskhand with jobs that fire every few seconds, again and again, and then counts what
became of each time.

python -m deskhand.testing.torture_jobs [--kills 100] [--seed 1] [--every 5] [--mutant two-commits]
"""

from __future__ import annotations

import argparse
import collections
import random
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import PIPE
from time import monotonic

import anyio
import anyio.abc
import msgspec

from ..config.config import Config, Home, Settings
from ..config.statements import load_statements
from ..jobs.ledger import list_runs, open_runs
from ..runtime.app import Parts, open_app
from ..store.base import Accepted, FirstCommit
from ..store.sqlite import SqliteStore
from ..types import events as e
from ..types.commit import Change
from ..types.identity import Inbound, Principal
from ..types.interpreter import tune_interpreter
from ..types.jobs import OPEN_STATES, Run
from ..types.schedules import due_within, parse_schedule
from .scripted import ScriptedModel

OWNER = Principal("owner", ("owner",))
EVERY_S = 5
"""Ten of them, as many as are made up for, take longer than a start on a busy machine."""
JOBS = {
    "plain": "",
    "one-chat": "session: news\n",
    "said": "kind: deliver\nto: nowhere:1\n",
    "gated": "hooks: {prerun: check.sh}\n",
}
READY_S = 60.0
LIFE_S = 1.5
DRAIN_S = {"true": 60.0, "two-commits": 8.0}
MUTANT_S = 0.3


class JobsTortureReport(msgspec.Struct):
    """What happened, and what of it must not have. `skipped` are times that were decided and not
    run, since the one before them took too long; `given_up` were cut off three times in the same
    prerun, and the owner was told; `cut` says in which state runs were hit; `too_many` are beyond
    the ten that are made up for after a long pause: the row before those ten counts them, and
    without it they are lost."""

    kills: int = 0
    times: int = 0
    done: int = 0
    skipped: int = 0
    again: int = 0
    given_up: int = 0
    cut: dict[str, int] = {}
    too_many: int = 0
    lost: int = 0
    doubled: int = 0
    faults: list[str] = []

    @property
    def good(self) -> bool:
        return not (self.lost or self.doubled or self.faults) and self.done > 0 and self._well

    @property
    def _well(self) -> bool:
        return self.skipped <= 0.1 * self.times and self.given_up <= 0.02 * self.times

    def show(self) -> str:
        return "\n".join(
            f"{name:>10}  {value}" for name, value in msgspec.structs.asdict(self).items()
        )


class TwoCommits(SqliteStore):
    """The mutant that must be caught: a time is written down before the message that it becomes is
    handed in."""

    async def accept(
        self,
        inbound: Inbound,
        principal: Principal,
        session: str,
        first: FirstCommit | None = None,
        changes: Sequence[Change] = (),
    ) -> Accepted:
        await self.change(changes)
        await anyio.sleep(MUTANT_S)
        return await super().accept(inbound, principal, session, first)


def settings_at(home: Path) -> Settings:
    raw = {"defaults": {"models": ["scripted/x"]}, "jobs": {"storm_starts": 0}}
    return Settings(Home(home), msgspec.convert(raw, Config), (), {"HOME": str(home)})


def lay_out(home: Path, every: str) -> None:
    """The jobs, as a person writes them."""
    for name, front in JOBS.items():
        folder = home / "jobs" / name
        folder.mkdir(parents=True)
        head = f"schedule: {every}\nmisfire: run_all\noverlap: queue_one\n{front}"
        (folder / "JOB.md").write_text(f"---\n{head}---\n\nIt is time.\n")
    check = home / "jobs" / "gated" / "check.sh"
    check.write_text("#!/bin/sh\necho one\n")
    check.chmod(0o755)


async def live(home: Path, mode: str) -> None:
    """Run until killed; says so when the clock has decided what to do about the time in which
    nobody was there."""
    store = TwoCommits if mode == "two-commits" else SqliteStore
    async with (
        open_app(settings_at(home), Parts(lambda name: ScriptedModel(), store=store)) as app,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(app.run)
        while app.features.jobs.scheduler.next_at is None and mode != "drain":  # noqa: ASYNC110 -- it is on its way
            await anyio.sleep(0.01)
        sys.stdout.write("ready\n")
        sys.stdout.flush()


class JobsTorture:
    """One run of it: so many kills, and more until so many times have been decided, which a quick
    machine needs."""

    def __init__(
        self, home: Path, kills: int, seed: int, mode: str, every_s: int, times: int
    ) -> None:
        self._home = home
        self._kills = kills
        self._mode = mode
        self._every = f"every {every_s}s"
        self._times = times
        self._decided = 0
        self._random = random.Random(seed)
        self.report = JobsTortureReport()

    async def run(self) -> JobsTortureReport:
        """Kill, drain, compare."""
        lay_out(self._home, self._every)
        while self.report.kills < self._kills or self._decided < self._times:
            began = monotonic()
            child = await self._start()
            # A busy machine must not make a life so short that nothing is done in any of them.
            await anyio.sleep(self._random.uniform(0, max(LIFE_S, (monotonic() - began) / 2)))
            await self._kill(child)
            self.report.kills += 1
            await self._look_where_it_hit()
        await self._drain()
        await self._compare()
        return self.report

    async def _start(self, mode: str = "") -> anyio.abc.Process:
        command = [
            sys.executable,
            "-m",
            "deskhand.testing.torture_jobs",
            "--live",
            str(self._home),
            mode or self._mode,
        ]
        child = await anyio.open_process(command, stdin=None, stdout=PIPE, stderr=None)
        if child.stdout is None:
            raise AssertionError("it has a pipe")
        with anyio.fail_after(READY_S):
            if b"ready" not in await child.stdout.receive():
                raise RuntimeError("the child did not come up")
        return child

    async def _kill(self, child: anyio.abc.Process) -> None:
        child.kill()
        await child.wait()
        await child.aclose()

    def _store(self) -> SqliteStore:
        return SqliteStore(self._home / "state" / "deskhand.db", load_statements())

    async def _look_where_it_hit(self) -> None:
        store = self._store()
        states = (entry.run.state for entry in await open_runs(store))
        counts = collections.Counter(self.report.cut) + collections.Counter(states)
        self.report.cut = dict(counts)
        self._decided = 0
        for name in JOBS:
            self._decided += len(await list_runs(store, name, self._times))
        await store.close()

    async def _drain(self) -> None:
        """Let a last life finish everything; then nothing more is due."""
        for name in JOBS:
            path = self._home / "jobs" / name / "JOB.md"
            path.write_text(path.read_text().replace("---\n", "---\nenabled: false\n", 1))
        child = await self._start("drain")
        store = self._store()
        give_up = monotonic() + DRAIN_S[self._mode]
        settled = 0
        while settled < 5 and monotonic() < give_up:
            await anyio.sleep(0.1)
            owed = await open_runs(store) or await store.open_sessions()
            settled = 0 if owed else settled + 1
        await store.close()
        await self._kill(child)
        if settled < 5:
            self.report.faults.append(f"it did not come to rest within {DRAIN_S[self._mode]:.0f} s")

    async def _compare(self) -> None:
        store = self._store()
        report = self.report
        try:
            received, answered = collections.Counter[str](), set[str]()
            for row in await store.sessions(OWNER, 100_000):
                log = await store.events(row.session)
                received.update(
                    r.event.external_id for r in log if isinstance(r.event, e.MessageReceived)
                )
                answered |= _answered(log)
            said = await self._said(store)
            for name in JOBS:
                runs = {run.slot: run for run in await list_runs(store, name, 1_000_000)}
                self._compare_job(name, runs, received, answered)
                done = sum(run.state == "done" for run in runs.values())
                if name == "said" and (len(said), len(set(said))) != (done, done):
                    report.faults.append(
                        f"{done} were delivered, and {len(said)} said ({len(set(said))} different)"
                    )
            report.faults += [f"integrity: {found}" for found in store.check_integrity()]
            report.faults += [f"chain: {broken}" for broken in (await store.audit())[1]]
        finally:
            await store.close()

    async def _said(self, store: SqliteStore) -> list[str]:
        """The keys of what is to be sent."""
        return [row.outgoing.key for row in await store.outbox_due(1e12, 1_000_000, ["nowhere"])]

    def _compare_job(
        self,
        name: str,
        runs: Mapping[str, Run],
        received: collections.Counter[str],
        answered: set[str],
    ) -> None:
        """Each time from the first to the last is decided once, and done once where it was done."""
        report = self.report
        times = [run.due_at for run in runs.values()]
        expected = (
            list(due_within(parse_schedule(self._every), min(times) - 1, max(times)))
            if times
            else []
        )
        report.times += len(expected)
        told = beyond_ten(
            expected,
            {run.due_at: run.said for run in runs.values() if run.state == "missed"},
        )
        report.too_many += len(told)
        report.lost += len({*expected} - {*times} - told)
        report.doubled += len(told & {*times})
        for slot, run in runs.items():
            key = f"job:{name}@{slot}"
            state = run.state
            report.done += state == "done"
            report.skipped += state in ("skipped", "missed")
            report.again += run.attempts > 1
            report.given_up += state == "interrupted"
            if (
                state in OPEN_STATES
                or state == "error"
                or (state == "interrupted" and name != "gated")
            ):
                report.faults.append(f"{key} is {state}: {run.said}")
            if name != "said" and state == "done":
                report.doubled += received[key] > 1
                report.lost += received[key] == 0 or key not in answered


def beyond_ten(expected: Sequence[float], missed: Mapping[float, str]) -> set[float]:
    """The times without a row of their own that are decided all the same: after a long pause ten
    are made up for, the one before them has a row, and that says how many there were before it."""
    found = set[float]()
    for at, said in missed.items():
        counted = re.search(r"; (\d+)( or more)? earlier ones too$", said)
        here = expected.index(at)
        number = 0 if counted is None else here if counted[2] else int(counted[1])
        found |= {*expected[max(0, here - number) : here]}
    return found


def _answered(log: list[e.Recorded]) -> set[str]:
    """The messages whose turn is over."""
    numbers = dict[int, str]()
    ended = set[str]()
    for recorded in log:
        if isinstance(recorded.event, e.MessageReceived):
            numbers[recorded.event.inbox_id] = recorded.event.external_id
        elif isinstance(recorded.event, e.TurnEnded) and recorded.event.reason == "done":
            ended |= {numbers[number] for number in recorded.event.answers if number in numbers}
    return ended


async def torture(
    kills: int, seed: int, mode: str = "true", every_s: int = EVERY_S, times: int = 0
) -> JobsTortureReport:
    """Run it in a home of its own."""
    with tempfile.TemporaryDirectory(prefix="deskhand-jobs-") as home:
        return await JobsTorture(Path(home), kills, seed, mode, every_s, times).run()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=int, default=EVERY_S, metavar="SECONDS")
    parser.add_argument("--mutant", default="true", choices=["true", "two-commits"])
    parser.add_argument("--live", nargs=2, metavar=("HOME", "MODE"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.live:
        tune_interpreter()
        anyio.run(live, Path(chosen.live[0]), chosen.live[1])
        return
    report = anyio.run(torture, chosen.kills, chosen.seed, chosen.mutant, chosen.every)
    sys.stdout.write(report.show() + "\n")
    sys.exit(0 if report.good else 1)


if __name__ == "__main__":
    main()
