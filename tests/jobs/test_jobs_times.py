"""When jobs fire: after a stop, over a change of the clocks, a clock that jumps, while the last run
goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from deskhand.jobs.ledger import list_runs
from deskhand.models.base import Item, Reply, Request
from deskhand.runtime.app import App
from deskhand.testing.jobs import JobDesk
from deskhand.testing.scripted import say
from deskhand.testing.temporary_home import wait_for
from deskhand.users.user_cache import OWNER

from .seen import states

HOUR = 3600.0


@pytest.mark.parametrize(
    ("misfire", "runs"), [("skip", 0), ("run_once", 1), ("", 1), ("run_all", 3)]
)
async def test_down_for_three_hours_over_three_times(
    tmp_path: Path, misfire: str, runs: int
) -> None:
    """Where nothing is said, once."""
    desk = JobDesk(tmp_path)
    desk.write("j", "hourly", **({"misfire": misfire} if misfire else {}))
    async with desk.running() as app:
        await desk.look(app)
    desk.clock.advance(3 * HOUR)  # from 22:13 to 01:13
    async with desk.running() as app:
        await desk.look(app)
        await wait_for(lambda: _ran(app, "j", runs))
        await desk.pass_time(app, 60)
        assert [state for state in await states(app, "j") if state != "missed"] == ["done"] * runs
        told = [run.said for run in await list_runs(app.store, "j", 20) if run.state == "missed"]
        assert bool(told) == (misfire != "run_all")
        assert len(desk.model.requests) == runs


async def _ran(app: App, name: str, number: int) -> bool:
    return sum(state == "done" for state in await states(app, name)) == number


async def test_times_that_the_clocks_skip_or_show_twice_come_once(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path, timezone="America/New_York")
    desk.write("gap", "30 2 * * *")
    desk.write("twice", "30 1 * * *")
    for name, begin, slot in (
        ("gap", 1772942400.0, "2026-03-08T07:00:00Z"),
        ("twice", 1793505600.0, "2026-11-01T05:30:00Z"),
    ):
        desk.clock.at = begin
        async with desk.running() as app:
            await desk.look(app)
            before = len(
                [run for run in await list_runs(app.store, name, 99) if run.state == "done"]
            )
            for _ in range(20):  # twenty hours
                await desk.pass_time(app, HOUR / 2)
                await desk.pass_time(app, HOUR / 2)
            done = [run for run in await list_runs(app.store, name, 99) if run.state == "done"]
            assert [run.slot for run in done][: len(done) - before] == [slot]


async def test_a_clock_that_jumps_fires_nothing_twice(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    desk.write("j", "hourly", misfire="run_all", overlap="queue_one")
    async with desk.running() as app:
        await desk.look(app)
        await desk.pass_time(app, HOUR)
        await desk.ended(app, "j")
        await desk.pass_time(app, 2 * HOUR)  # it jumps ahead: two are made up for
        await desk.ended(app, "j", 3)
        await desk.pass_time(app, -2 * HOUR)  # and back
        for _ in range(3):
            await desk.pass_time(app, HOUR)
        await desk.ended(app, "j", 4)
        slots = [run.slot for run in await list_runs(app.store, "j", 20)]
        assert slots == [f"2023-11-{day}:00:00Z" for day in ("15T02", "15T01", "15T00", "14T23")]
        desk.clock.at += 10 * 365 * 24 * HOUR  # a wrong clock, and the right one again
        await desk.look(app)
        desk.clock.at -= 10 * 365 * 24 * HOUR
        await desk.look(app)
        before = len(await list_runs(app.store, "j", 99))
        await desk.pass_time(app, HOUR)
        assert (await desk.ended(app, "j", before + 1)).due_at > 0
        assert any(
            run.slot == "2023-11-15T03:00:00Z" for run in await list_runs(app.store, "j", 99)
        )
        desk.clock.at += 10 * 365 * 24 * HOUR  # the same, and back to before what has run
        await desk.look(app)
        desk.clock.at -= 10 * 365 * 24 * HOUR + 2 * HOUR
        await desk.look(app)
        for _ in range(2):
            await desk.pass_time(app, HOUR)
        done = [run for run in await list_runs(app.store, "j", 99) if run.state == "done"]
        assert (await app.features.jobs.api.get(OWNER, "j")).counters.runs == len(done)


class Slow:
    """A model that answers when it is told to. `asked` is set with the first request."""

    def __init__(self) -> None:
        self.asked = anyio.Event()
        self.go = anyio.Event()

    async def reply(self, request: Request) -> AsyncIterator[Item]:
        self.asked.set()
        await self.go.wait()
        yield Reply(say("done"), "stop")


@pytest.mark.parametrize(
    ("overlap", "found"), [("skip", ["skipped", "skipped"]), ("queue_one", ["skipped", "waiting"])]
)
async def test_the_last_one_still_runs(tmp_path: Path, overlap: str, found: list[str]) -> None:
    desk = JobDesk(tmp_path)
    slow = Slow()
    desk.model = slow  # type: ignore[assignment]
    desk.write("j", "every 1m", overlap=overlap)
    async with desk.running() as app:
        for _ in range(3):
            await desk.pass_time(app, 60)
        assert await states(app, "j") == [*found, "running"]
        slow.go.set()
        await desk.ended(app, "j", 3)
        await desk.look(app)
        ended = await wait_for(lambda: _all_over(app, "j"))
        assert ended == (
            ["skipped", "done", "done"]
            if overlap == "queue_one"
            else ["skipped", "skipped", "done"]
        )
        assert (await app.features.jobs.api.get(OWNER, "j")).counters.skips == found.count(
            "skipped"
        )


async def _all_over(app: App, name: str) -> list[str]:
    found = await states(app, name)
    return [] if "waiting" in found or "running" in found else found


async def test_what_takes_too_long_is_stopped(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    slow = Slow()
    desk.model = slow  # type: ignore[assignment]
    desk.write("j", "every 1h", timeout="2m")
    async with desk.running() as app:
        await desk.pass_time(app, HOUR)
        with anyio.fail_after(30):
            await (
                slow.asked.wait()
            )  # its time counts from when its turn began, not from when it was handed in
        await desk.pass_time(app, 119)
        assert await states(app, "j") == ["running"]
        await desk.pass_time(app, 2)
        run = await desk.ended(app, "j")
        assert (run.state, run.said) == ("error", "it took longer than 2 minutes and was stopped")
        assert (await app.features.jobs.api.get(OWNER, "j")).counters.errors == 1
