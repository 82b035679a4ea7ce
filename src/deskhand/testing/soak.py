"""Lets the real service work for hours, with a day of people and faults pressed into each few
minutes, and sees that nothing of it grows, and that nothing is lost, repeated or left behind.

python -m deskhand.testing.soak [--minutes 120] [--seed 1] [--csv FILE] [--list]

People write on Telegram and over the API, jobs fire, tools run in the sandbox. Meanwhile Telegram
sends updates again, takes messages without saying so and asks to wait; the model refuses, breaks
off and hangs; processes of tools are killed and stopped; somebody sets the clock. A line is printed
each minute, a row of the CSV is written every few seconds, and the exit code is 1 where a limit is
broken.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from time import monotonic

import anyio
import msgspec

from .soak_child import COUNT, LIST, Says
from .soak_gauge import ResourceUse, Slope, held, slope
from .soak_truth import Truth, truth_of
from .soak_world import PEOPLE, SoakWorld

SAMPLE_S = 5.0
TELL_S = 60.0
ASK_S = 5.0
REST_S = 600.0
QUIET_S = 10.0
LOOK_S = 0.5
WARM = 0.2
"""The share of the time after which nothing may grow any more."""
GROWS_MB_H = 1.0
MORE = {"fds": 4, "tasks": 4, "threads": 4, "below": 0}
"""So much more of each there may be in the end than when it was warm, both times with nothing to
do."""
LONG_M = 60.0
SHORT_M = 5.0
"""A shorter run says how fast memory grows, and does not judge that. In one that is shorter still
no model hangs, and nothing that grows is judged: it is not warm before its end."""
SLOWEST_S = 600.0


class SoakReport(msgspec.Struct):
    """What came of it. `slope_mb_h` is how fast the memory grew that it shares with nobody,
    `error_mb_h` by how much that may be off. Of the pairs the first is from when it was warm, the
    second from the end."""

    minutes: float
    truth: Truth
    model_calls: int = 0
    model_faults: int = 0
    upsets: int = 0
    hurts: int = 0
    sets: int = 0
    slowest_answer_s: float = 0.0
    rss_mb: float = 0.0
    anon_mb: tuple[float, float] = (0.0, 0.0)
    slope_mb_h: float = 0.0
    error_mb_h: float = 0.0
    fds: tuple[int, int] = (0, 0)
    tasks: tuple[int, int] = (0, 0)
    threads: tuple[int, int] = (0, 0)
    below: tuple[int, int] = (0, 0)
    faults: list[str] = []

    @property
    def good(self) -> bool:
        return self.truth.good and not self.faults

    def show(self) -> str:
        shown = msgspec.structs.asdict(self)
        truth = msgspec.structs.asdict(shown.pop("truth"))
        shown["faults"] = truth.pop("faults") + shown.pop("faults")
        lines = [f"{name:>20}  {value}" for name, value in ({**truth, **shown}).items()]
        grew = f"{self.slope_mb_h:+.2f} ±{self.error_mb_h:.2f} MB/h"
        return "\n".join(
            [
                *lines,
                f"memory {grew} over {self.minutes:g} min: {'good' if self.good else 'BROKEN'}",
            ]
        )


class Soak:
    """One run of it, in a folder of its own."""

    def __init__(
        self, place: Path, minutes: float, seed: int, table: Path, *, lists: bool = False
    ) -> None:
        self._minutes = minutes
        self._table = table
        self._lists = lists
        self._world = SoakWorld(place, seed, hangs=minutes >= SHORT_M)
        self._began = monotonic()
        self._warm_s = 60 * minutes * WARM
        self._asked = 0
        self._says = Says(0, 0, {})
        self._samples: list[ResourceUse] = []
        self._faults: list[str] = []

    async def run(self) -> SoakReport:
        world = self._world
        async with world.telegram, world.model, world.site:
            await world.set_up()
            process = await world.start()
            self._began = monotonic()
            try:
                async with anyio.create_task_group() as tasks:
                    for chat in PEOPLE:
                        tasks.start_soon(world.write, chat)
                    works = (
                        world.web.run,
                        world.upset,
                        world.hurt,
                        world.set_clock,
                        self._sample,
                        self._tell,
                    )
                    for work in works:
                        tasks.start_soon(work)
                    first, last = await self._live()
                    tasks.cancel_scope.cancel()
            finally:
                self._faults += await world.end(process)
            return self._judged(await truth_of(world), first, last)

    async def _live(self) -> tuple[ResourceUse, ResourceUse]:
        """Warm up, come to rest, go on, come to rest. What it holds each time with nothing to
        do."""
        await anyio.sleep(self._warm_s)
        first = await self._quiet()
        self._world.be_busy(True)
        await anyio.sleep(60 * self._minutes - self._warm_s)
        self._world.web.take_no_more()
        return first, await self._quiet()

    async def _quiet(self) -> ResourceUse:
        """Let all that is owed be done. The least that it then holds: jobs go on."""
        world = self._world
        store = self._world.store()
        began_at = monotonic()
        settled = 0
        world.be_busy(False)
        while settled < 5 and monotonic() < began_at + REST_S:
            await anyio.sleep(LOOK_S)
            settled = 0 if await world.owes(store) else settled + 1
        if owed := await world.owes(store) if settled < 5 else "":
            self._faults.append(f"it did not come to rest within {REST_S:.0f} s: {owed}")
        await store.close()
        samples = list[ResourceUse]()
        quiet_at = monotonic()
        while monotonic() < quiet_at + min(QUIET_S, 6 * self._minutes):
            samples.append(await self._look())
            await anyio.sleep(LOOK_S)
        if self._lists:
            await self._ask(LIST)
            sys.stdout.write(f"{msgspec.json.encode(self._says).decode()}\n")
        return ResourceUse(
            *(min(values) for values in zip(*map(msgspec.structs.astuple, samples), strict=True))
        )

    # ------------------------------------------------------------------ what it holds

    async def _look(self) -> ResourceUse:
        await self._ask(COUNT)
        answered = len(self._world.written) - sum(map(len, self._world.waiting.values()))
        return held(self._world.worker, monotonic() - self._began, self._says.tasks, answered)

    async def _ask(self, number: int) -> None:
        """Have the worker say what it holds; one that does not answer is taken by its last word."""
        asked = self._says.asked
        with suppress(ProcessLookupError):
            os.kill(self._world.worker, number)
        with anyio.move_on_after(ASK_S):
            while self._says.asked == asked:
                await anyio.sleep(0.02)
                with suppress(OSError, msgspec.MsgspecError):
                    self._says = msgspec.json.decode(self._world.says_path.read_bytes(), type=Says)

    async def _sample(self) -> None:
        """A row each few seconds while people are busy."""
        with self._table.open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(ResourceUse.__struct_fields__)
            while True:
                await anyio.sleep(SAMPLE_S)
                if self._world.busy:
                    self._samples.append(await self._look())
                    rows.writerow(msgspec.structs.astuple(self._samples[-1]))
                    file.flush()

    async def _tell(self) -> None:
        """A line each minute."""
        while True:
            await anyio.sleep(TELL_S)
            if not self._samples:
                continue
            now = self._samples[-1]
            grows = self._slope()
            world = self._world
            sys.stdout.write(
                f"{now.at_s / 60:6.1f} min  rss {now.rss / 1024:6.1f} MB  anon "
                f"{now.anon / 1024:6.1f} MB"
                f"  {grows.per_hour:+7.2f} ±{grows.error:.2f} MB/h  fds {now.fds}  threads "
                f"{now.threads}"
                f"  tasks {now.tasks}  below {now.below}  written {len(world.written)}"
                f"  open {sum(map(len, world.waiting.values()))}  faults "
                f"{world.model.failed}/{world.model.asked}\n"
            )
            sys.stdout.flush()

    def _slope(self) -> Slope:
        """In MB, after it is warm."""
        return slope(
            [(each.at_s, each.anon / 1024) for each in self._samples if each.at_s >= self._warm_s]
        )

    def _judged(self, truth: Truth, first: ResourceUse, last: ResourceUse) -> SoakReport:
        """Whether it is right, and whether it grew."""
        world = self._world
        grows = self._slope()
        faults = self._faults
        if self._minutes >= LONG_M and grows.per_hour > GROWS_MB_H:
            faults.append(f"its memory grows by more than {GROWS_MB_H} MB/h")
        for name, more in MORE.items():
            if self._minutes >= SHORT_M and getattr(last, name) > getattr(first, name) + more:
                faults.append(
                    f"{name} were {getattr(first, name)} when it was warm and are "
                    f"{getattr(last, name)}"
                )
        if world.slowest_s > SLOWEST_S:
            faults.append(f"an answer took {world.slowest_s:.0f} s")
        return SoakReport(
            minutes=self._minutes,
            truth=truth,
            model_calls=world.model.asked,
            model_faults=world.model.failed,
            upsets=world.upsets,
            hurts=world.hurts,
            sets=world.sets,
            slowest_answer_s=round(world.slowest_s, 1),
            rss_mb=round(last.rss / 1024, 1),
            anon_mb=(round(first.anon / 1024, 1), round(last.anon / 1024, 1)),
            slope_mb_h=round(grows.per_hour, 2),
            error_mb_h=round(grows.error, 2),
            fds=(first.fds, last.fds),
            tasks=(first.tasks, last.tasks),
            threads=(first.threads, last.threads),
            below=(first.below, last.below),
            faults=faults,
        )


async def soak(minutes: float, seed: int, table: Path, *, lists: bool = False) -> SoakReport:
    """Run it in a folder of its own, which is kept where something was wrong."""
    place = Path(tempfile.mkdtemp(prefix="deskhand-soak-"))
    report = await Soak(place, minutes, seed, table, lists=lists).run()
    if report.good:
        shutil.rmtree(place)
    else:
        report.faults.append(f"its home is kept in {place}")
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--csv", type=Path, default=Path("soak.csv"))
    parser.add_argument(
        "--list", action="store_true", help="say when it is quiet what there is, and how much of it"
    )
    chosen = parser.parse_args()
    report = anyio.run(lambda: soak(chosen.minutes, chosen.seed, chosen.csv, lists=chosen.list))
    sys.stdout.write(report.show() + "\n")
    sys.exit(0 if report.good else 1)


if __name__ == "__main__":
    main()
