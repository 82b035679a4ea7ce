"""Kills a running Deskhand again and again while somebody sets its clock, by up to two days, and
compares what it did with the truth outside it.

python -m deskhand.testing.torture_clock [--kills 100] [--seed 1] [--mutant one-clock]

The clock is set while it runs, now and then many times in a row, and while nothing runs. Platform
and model ask again and again to be left alone for a while, and jobs of each policy are due all the
time. In the end everybody must have been answered within a minute; then the clock is set once more,
ahead of all that it ever showed and far behind it, and after that as well people must be answered
and jobs must come.
"""

from __future__ import annotations

import argparse
import collections
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

import anyio
import msgspec

from ..config.statements import load_statements
from ..jobs.ledger import job_records, list_runs, open_runs
from ..jobs.scheduler import SCAN_INTERVAL_S
from ..store.sqlite import SqliteStore
from ..types import events as e
from ..types.jobs import GRACE_S, OPEN_STATES, Misfire, Run
from ..types.schedules import due_within, parse_schedule
from .clock import FARTHEST_S, Shift, somewhere
from .torture import Torture, TortureReport
from .torture_child import ANN, shift_beside
from .torture_jobs import beyond_ten

LIVE_S = 2.0
SET_AT_MOST = 3
FLURRY = 25
FLURRY_S = 0.02
FLURRIES = 0.25
"""In so many lives the clock is set very often in a row, so that any wait is hit just where it is
worked out."""
UNEASY = 15
UNEASY_S = 4.0
"""How often the clock is set in the last life, and for how long."""
BUSY = 0.05
JOBS: dict[str, tuple[str, Misfire]] = {
    "skip-often": ("every 2s", "skip"),
    "once-often": ("every 2s", "run_once"),
    "all-often": ("every 3s", "run_all"),
    "skip": ("*/20 * * * *", "skip"),
    "once": ("*/20 * * * *", "run_once"),
    "all": ("*/20 * * * *", "run_all"),
}
ON_TIME_S = {"skip": 60.0, "run_once": GRACE_S, "run_all": 4 * FARTHEST_S}
"""How late a time may be run at most."""
SLACK_S = 1.0
FAR_BACK_S = 5 * 86_400.0
SESSIONS = 1_000_000
DRAIN_S = {"true": 60.0, "one-clock": 15.0}
COME_S = 60.0
END_S = 600.0


class ClockReport(TortureReport):
    """`sets` is how often the clock was set, `put_off` how often it was asked to wait. Of the times
    of jobs: `run` were run, `told` have no row of their own, as another row counts them."""

    sets: int = 0
    put_off: int = 0
    run: int = 0
    told: int = 0
    jobs_twice: int = 0
    jobs_lost: int = 0
    jobs_against_policy: int = 0

    @property
    def good(self) -> bool:
        bad = (
            self.lost
            or self.unmarked_duplicates
            or self.out_of_order
            or self.effects_twice
            or self.faults
        )
        bad = bad or self.web_lost or self.web_astray
        bad = bad or self.jobs_twice or self.jobs_lost or self.jobs_against_policy
        return not bad and self.run > 0 and self.sets >= self.kills


class ClockReading(msgspec.Struct):
    """What the clock of a process showed from the one moment to the other."""

    first: float
    last: float


class ClockTorture(Torture):
    """One run of it."""

    def __init__(self, home: Path, kills: int, seed: int, mode: str) -> None:
        super().__init__(home, kills, seed, mode)
        self.report: ClockReport = ClockReport()
        self.drain_s = DRAIN_S[mode]
        self.platform.busy = BUSY
        self._shift = Shift(shift_beside(home))
        self._shown: list[ClockReading] = []
        self._seen: dict[str, tuple[float, float]] = {}
        lay_out(home)

    # ------------------------------------------------------------------ the clock

    def _now(self) -> float:
        return time.time() + self._shift.get()  # noqa: TID251 -- the machine's own

    def _set(self, shift_s: float) -> None:
        """Set the clock, and note what it showed until now and shows from now on."""
        if self._shown:
            self._shown[-1].last = max(self._shown[-1].last, self._now())
        self._shift.set(shift_s)
        now = self._now()
        self._shown.append(ClockReading(now, now))
        self.report.sets += 1

    def _somewhere(self) -> float:
        return somewhere(self.platform.random, self._shift.get())

    async def live(self, seconds: float) -> None:
        """Set the clock a few times, or very often, and once more when it is dead: the next one
        begins with that."""
        random = self.platform.random
        if not self._shown:
            self._shown.append(ClockReading(self._now(), self._now()))
            await self._wait_for_jobs()
        seconds = random.uniform(0, LIVE_S)
        often = random.random() < FLURRIES
        sets = FLURRY if often else random.randint(0, SET_AT_MOST)
        for _ in range(sets):
            await anyio.sleep(random.uniform(0, FLURRY_S if often else seconds / sets))
            self._set(self._somewhere())
        await anyio.sleep(random.uniform(0, seconds))

    async def after_death(self) -> None:
        """Note how far it has come."""
        await self._see_how_far()
        self._set(self._somewhere())

    def is_chat(self, session: str) -> bool:
        return session.rpartition(":")[2] not in JOBS

    # ------------------------------------------------------------------ the end

    async def drain(self) -> None:
        """Let it finish everything, also what waits while the clock is set and in the end set back;
        and again, with the clock ahead of all that it showed, and far behind it."""
        for i in range(UNEASY):
            self.platform.write()
            await anyio.sleep(self.platform.random.uniform(0, UNEASY_S / UNEASY))
            self._set(self._somewhere() if i + 1 < UNEASY else -FARTHEST_S)
        await super().drain()
        for shift_s in (self._ahead(), self._behind()):
            if self.report.faults:
                return
            self._set(shift_s)
            for _ in range(3):
                self.platform.write()
            await super().drain()
            await self._wait_for_jobs()
        await self._end_jobs()

    def _ahead(self) -> float:
        return max(each.last for each in self._shown) + 60.0 - self._now() + self._shift.get()

    def _behind(self) -> float:
        return (
            min(each.first for each in self._shown) - FAR_BACK_S - self._now() + self._shift.get()
        )

    # ------------------------------------------------------------------ jobs

    def _store(self) -> SqliteStore:
        return SqliteStore(self.home / "state" / "deskhand.db", load_statements())

    async def _wait_for_jobs(self) -> None:
        """Until each of those that come often has run at a time that lies after now."""
        store = self._store()
        since = self._now()
        began = monotonic()
        missing = {name for name in JOBS if name.endswith("-often")}
        while missing and monotonic() < began + COME_S:
            await anyio.sleep(0.1)
            for name in list(missing):
                runs = await list_runs(store, name, SESSIONS)
                if any(run.state == "done" and since < run.due_at <= self._now() for run in runs):
                    missing.discard(name)
        await store.close()
        self._shown[-1].last = max(self._shown[-1].last, self._now())
        await self._see_how_far()
        self.report.faults += [
            f"the job {name} did not come within {COME_S:.0f} s" for name in sorted(missing)
        ]

    async def _end_jobs(self) -> None:
        """Have no more of them, and let those that were due come to their ends."""
        for name in JOBS:
            path = self.home / "jobs" / name / "JOB.md"
            path.write_text(path.read_text().replace("---\n", "---\nenabled: false\n", 1))
        self._set(self._shift.get() + SCAN_INTERVAL_S)  # it looks at the folder at once
        store = self._store()
        began = monotonic()
        settled = 0
        while settled < 5 and monotonic() < began + END_S:
            await anyio.sleep(0.1)
            settled = 0 if await open_runs(store) or await store.open_sessions() else settled + 1
        await store.close()
        if settled < 5:
            self.report.faults.append(f"the jobs did not come to their ends within {END_S:.0f} s")
        self._shown[-1].last = max(self._shown[-1].last, self._now())

    async def _see_how_far(self) -> None:
        """Up to where all times are decided; the farthest counts, and where that began."""
        store = self._store()
        for job, record in (await job_records(store)).items():
            first, farthest = self._seen.get(job, (record.seen_at, record.seen_at))
            self._seen[job] = (first, max(farthest, record.seen_at))
        await store.close()

    async def compare(self) -> None:
        await super().compare()
        self.report.put_off = self.platform.put_off
        store = self._store()
        received = collections.Counter[str]()
        for row in await store.sessions(ANN, SESSIONS):
            log = await store.events(row.session)
            received.update(
                r.event.external_id for r in log if isinstance(r.event, e.MessageReceived)
            )
        for name in JOBS:
            self._compare_job(name, await list_runs(store, name, SESSIONS), received)
        await store.close()

    def _compare_job(
        self, name: str, runs: Sequence[Run], received: collections.Counter[str]
    ) -> None:
        """Each time is run at most once, as late as its policy allows and no sooner, and none is
        forgotten."""
        report = self.report
        (schedule, misfire) = JOBS[name]
        times = {run.due_at: run.state for run in runs}
        missed = {run.due_at: run.said for run in runs if run.state == "missed"}
        report.jobs_twice += len(runs) - len(times)
        for run in runs:
            key = f"job:{name}@{run.slot}"
            state = run.state
            due_at = run.due_at
            report.jobs_twice += received[key] > 1
            if state in ("skipped", "missed"):
                report.jobs_twice += received[key]
                continue
            report.run += 1
            if state in OPEN_STATES or state != "done":
                report.faults.append(f"{key} is {state}: {run.said}")
            if not self._was_time(due_at, ON_TIME_S[misfire]):
                report.jobs_against_policy += 1
                report.faults.append(f"{key} was run, and it was never time for it")
        first, farthest = self._seen.get(name, (0.0, 0.0))
        expected = list(due_within(parse_schedule(schedule), first, farthest))
        told = beyond_ten(expected, {at: said for at, said in missed.items() if at in expected})
        report.told += len(told)
        report.jobs_lost += len({*expected} - {*times} - told)

    def _was_time(self, due_at: float, late_s: float) -> bool:
        """Whether the clock ever showed that time, or one that is not too long after it."""
        return any(
            each.first <= due_at + late_s + SLACK_S and each.last + SLACK_S >= due_at
            for each in self._shown
        )


def lay_out(home: Path) -> None:
    """The jobs, as a person writes them. All go on in one conversation each."""
    for name, (schedule, misfire) in JOBS.items():
        folder = home / "jobs" / name
        folder.mkdir(parents=True)
        head = f"schedule: '{schedule}'\nmisfire: {misfire}\noverlap: queue_one\nsession: {name}\n"
        (folder / "JOB.md").write_text(f"---\n{head}---\n\nIt is time.\n")


async def torture(kills: int, seed: int, mode: str = "true") -> ClockReport:
    """Run it in a home of its own."""
    with tempfile.TemporaryDirectory(prefix="deskhand-clock-") as place:
        made = ClockTorture(Path(place) / "home", kills, seed, mode)
        await made.run()
        return made.report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mutant", default="true", choices=[*DRAIN_S])
    chosen = parser.parse_args()
    report = anyio.run(torture, chosen.kills, chosen.seed, chosen.mutant)
    sys.stdout.write(report.show() + "\n")
    sys.exit(0 if report.good else 1)


if __name__ == "__main__":
    main()
