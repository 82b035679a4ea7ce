"""What a job may not: take a person's turn, come for ever, fill the disk, wait without end."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.config.statements import load_statements
from deskhand.jobs.ledger import (
    RunEntry,
    add_run,
    end_run,
    find_run,
    list_runs,
    new_run,
    prune_runs,
)
from deskhand.jobs.target import render_heading
from deskhand.models.base import Item, Reply, Request
from deskhand.runtime.app import App
from deskhand.store.schema import connect
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.jobs import JobDesk
from deskhand.testing.scripted import say
from deskhand.testing.temporary_home import wait_for
from deskhand.types.errors import JobInvalid
from deskhand.types.events import TurnEnded
from deskhand.types.identity import Address, Inbound, Principal, Said
from deskhand.types.jobs import Job, Run
from deskhand.types.labels import OWNER as OWN_WORDS
from deskhand.types.messages import Message, Text

from .seen import messages, states, truth

OWNER = Principal("owner", ("owner",))
HOUR = 3600.0
DAY = 86_400.0


class Slow:
    """A model that answers one call each time when it is told to."""

    def __init__(self) -> None:
        self.calls, self.go = 0, anyio.Event()

    async def reply(self, request: Request) -> AsyncIterator[Item]:
        self.calls += 1
        go = self.go
        await go.wait()
        yield Reply(say("done"), "stop")

    def next(self) -> None:
        """The one that waits may answer."""
        self.go, go = anyio.Event(), self.go
        go.set()


@pytest.mark.parametrize(
    ("slot", "why"),
    [
        ("run_1 by ann", "was started by ann"),
        ("file:notes by anna.md:5f", "was set off"),
        ("session:default/web:x by y:3", "was set off"),
        ("2026-11-22T09:00", "is due (2026-11-22T09:00)"),
    ],
)
def test_it_is_told_why_it_comes(slot: str, why: str) -> None:
    assert f"The job 'j' {why}." in render_heading(
        RunEntry(Run("j", slot, "waiting", 0.0), Job("j"))
    )


async def reasons(app: App, session: str) -> list[str]:
    return [
        e.event.reason for e in await app.store.events(session) if isinstance(e.event, TurnEnded)
    ]


async def test_a_job_that_waits_behind_a_persons_turn_stops_nothing(tmp_path: Path) -> None:
    """Its time begins when its own turn does; then it holds."""
    desk = JobDesk(tmp_path, memory={"enabled": False})
    slow = Slow()
    chat = "default/web:owner:news"
    desk.model = slow  # type: ignore[assignment]
    desk.write("j", "daily 22:14", session="news", timeout="5m")
    async with desk.running() as app:
        place = Address("web", "owner", "news")
        said = Said(Message("user", (Text("think long", OWN_WORDS),)))
        await app.features.injector.hand_in(
            Inbound("1", place, "owner", desk.clock.now(), said, chat), OWNER
        )
        await wait_for(lambda: truth(slow.calls == 1))
        await desk.pass_time(app, 60)
        for _ in range(30):
            await desk.pass_time(app, 60)
        assert (await states(app, "j"), await reasons(app, chat)) == (["running"], [])
        slow.next()
        await wait_for(lambda: _ended(app, chat, 1))
        await wait_for(lambda: truth(slow.calls == 2))
        await desk.pass_time(app, 120)
        assert await states(app, "j") == ["running"]
        await desk.pass_time(app, 300)
        run = await desk.ended(app, "j")
        assert (run.state, run.said) == ("error", "it took longer than 5 minutes and was stopped")
        assert (
            await reasons(app, chat) == ["done", "stopped"] and len(await messages(app, chat)) == 2
        )


@pytest.mark.parametrize("jump_s", [0.0, -2 * 86_400.0, 2 * 86_400.0])
async def test_a_job_that_waited_most_of_its_time_has_all_of_it(
    jump_s: float, tmp_path: Path
) -> None:
    """And no more: also where somebody sets the clock meanwhile."""
    desk = JobDesk(tmp_path, memory={"enabled": False})
    slow = Slow()
    chat = "default/web:owner:news"
    desk.model = slow  # type: ignore[assignment]
    desk.write("j", "daily 22:14", session="news", timeout="10m")
    async with desk.running() as app:
        place = Address("web", "owner", "news")
        said = Said(Message("user", (Text("think long", OWN_WORDS),)))
        await app.features.injector.hand_in(
            Inbound("1", place, "owner", desk.clock.now(), said, chat), OWNER
        )
        await wait_for(lambda: truth(slow.calls == 1))
        await desk.pass_time(app, 60)
        await wait_for(lambda: _is(app, "running"))
        await desk.pass_time(app, 540)
        slow.next()
        await wait_for(lambda: truth(slow.calls == 2))
        desk.clock.at += jump_s
        for _ in range(9):
            await desk.pass_time(app, 61)
        assert (await states(app, "j"))[-1] == "running" and await reasons(app, chat) == ["done"]
        await desk.pass_time(app, 61)
        await wait_for(lambda: _ended(app, chat, 2))
        await desk.look(app)
        run = (await list_runs(app.store, "j", 9))[-1]
        assert (run.state, run.said) == ("error", "it took longer than 10 minutes and was stopped")


async def _is(app: App, state: str) -> bool:
    return await states(app, "j") == [state]


async def _ended(app: App, session: str, number: int) -> bool:
    return len(await reasons(app, session)) == number


async def test_nobody_waits_for_what_is_paused_and_no_two_wait(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    slow = Slow()
    desk.model = slow  # type: ignore[assignment]
    desk.write("j", "daily 09:00")
    async with desk.running() as app:
        jobs = app.features.jobs.api
        await jobs.pause(OWNER, "on holiday")
        with pytest.raises(
            JobInvalid, match="no job runs now: on holiday; `deskhand jobs resume` lets them go on"
        ):
            await jobs.run(OWNER, "j")
        await jobs.resume(OWNER)
        await jobs.run(OWNER, "j")
        await wait_for(lambda: truth(slow.calls == 1))
        await jobs.run(OWNER, "j")
        for _ in range(3):
            with pytest.raises(JobInvalid, match="'j' waits to be run already"):
                await jobs.run(OWNER, "j")
        assert sorted(await states(app, "j")) == ["running", "waiting"]
        slow.next()
        await wait_for(lambda: truth(slow.calls == 2))
        slow.next()
        await desk.ended(app, "j", 2)


async def test_of_many_events_at_once_one_is_taken(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    slow = Slow()
    desk.model = slow  # type: ignore[assignment]
    desk.write("j", prompt="Look.", on=["webhook"])
    async with desk.running() as app, anyio.create_task_group() as tasks:
        for number in range(20):
            payload = Text(f"event {number} " + "x" * 20_000)
            tasks.start_soon(app.features.jobs.scheduler.trigger, "j", f"webhook:{number}", payload)
        await wait_for(lambda: _so_many(app, 20))
        await wait_for(lambda: truth(slow.calls == 1))
        slow.next()
        await desk.ended(app, "j", 20)
        assert sorted(await states(app, "j")) == ["done", *["skipped"] * 19]
        rows = await app.store.query("job_run_list", ("j", 99))
        assert {(len(row[10]) < 100, row[11]) for row in rows if row[2] == "skipped"} == {
            (True, None)
        }


async def _so_many(app: App, number: int) -> bool:
    return len(await list_runs(app.store, "j", 99)) == number


async def test_a_job_has_so_many_events_and_no_more(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    async with desk.opened() as app:
        own = app.features.jobs.api
        lines = tuple(f"page https://example.org/{number}" for number in range(21))
        with pytest.raises(JobInvalid, match="it has 21 lines under `on`: at most 20"):
            await own.create(OWNER, Job("j", "x", on=lines))
        await own.create(OWNER, Job("j", "x", on=lines[:20]))


async def test_old_runs_are_forgotten_while_it_goes_on(tmp_path: Path) -> None:
    """Also in a process that never ends."""
    desk = JobDesk(tmp_path)
    desk.write("j", "every 1h", kind="deliver", to="nowhere:1")
    async with desk.running() as app:
        for number in range(1, 121):
            await desk.pass_time(app, HOUR)
            await desk.ended(app, "j", number)
        await desk.pass_time(app, 24 * DAY)
        assert len(await list_runs(app.store, "j", 999)) > 120
        await desk.pass_time(app, 8 * DAY)
        assert 100 <= len(await list_runs(app.store, "j", 999)) <= 103


async def test_what_is_forgotten_and_what_is_not(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "x.db", load_statements())
    job = Job("j", "x" * 5000, on=("webhook",))
    now = 100 * DAY
    rows = []
    for number in range(10_400):
        slot = f"body:{number:05}" if number < 100 else f"mqtt:{number:05}"
        entry = msgspec.structs.replace(
            new_run(job, slot, now - 3 * DAY + number), payload=Text("y" * 50)
        )
        rows += [add_run(entry, "waiting"), end_run(entry.run, "done", now - 3 * DAY + number, "")]
    await store.change(rows)
    await prune_runs(store, now)
    kept = [run.slot for run in await list_runs(store, "j", 99_999)]
    assert len(kept) == 10_100 and kept[-100:] == [
        f"body:{number:05}" for number in reversed(range(100))
    ]
    known = await find_run(store, "j", "body:00003")
    assert known is not None and (known.job, known.payload) == (Job("j"), None), (
        "its name stays, and nothing else"
    )
    await prune_runs(store, now + 40 * DAY)
    kept = [run.slot for run in await list_runs(store, "j", 99_999)]
    assert len(kept) == 200 and sum(slot.startswith("body:") for slot in kept) == 100
    await store.close()


async def test_a_job_that_was_gone_begins_anew(tmp_path: Path) -> None:
    """One that is taken away by hand, and is there again a day later, makes up for nothing of that
    day."""
    desk = JobDesk(tmp_path)
    desk.write("j", "hourly", misfire="run_all", overlap="queue_one")
    path = desk.jobs / "j" / "JOB.md"
    os.utime(path, (desk.clock.at, desk.clock.at))
    async with desk.running() as app:
        await desk.pass_time(app, HOUR)
        await desk.ended(app, "j")
        path.rename(tmp_path / "aside")
        await desk.pass_time(app, 12 * HOUR)
        (tmp_path / "aside").rename(path)
        await desk.pass_time(app, 60)
        await desk.pass_time(app, HOUR)
        await desk.ended(app, "j", 2)
        assert len(await list_runs(app.store, "j", 20)) == 2
        path.write_text("---\nschedule: [\n---\nbroken for a while")
        await desk.pass_time(app, 2 * HOUR)
        desk.write("j", "hourly", misfire="run_all", overlap="queue_one")
        os.utime(path, (desk.clock.at, desk.clock.at))
        await desk.look(app)
        await wait_for(partial(_ran, app, 4))


async def _ran(app: App, number: int) -> bool:
    return await states(app, "j") == ["done"] * number


class Crossed(SqliteStore):
    """One into which another process writes right after its version was read."""

    write: Callable[[], object] | None = None
    wanted: Callable[[], bool] = staticmethod(lambda: False)

    def version(self) -> int:
        version = super().version()
        if self.write is not None and self.wanted():
            write = self.write
            self.write = None
            write()
        return version


async def test_what_is_written_while_the_clock_begins_to_look_is_seen(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    desk.store = Crossed
    desk.write("j", "hourly")
    async with desk.running() as app:
        await desk.look(app)
        clock = app.features.jobs.scheduler
        store = app.store
        assert isinstance(store, Crossed)
        row = add_run(
            new_run(
                (await app.features.jobs.api.get(OWNER, "j")).job or Job("j"),
                "run_1 by owner",
                desk.clock.at,
            ),
            "waiting",
        )
        db = connect(desk.settings.home.database, write=True)
        looks = clock.tick_count
        store.wanted = lambda: clock.tick_count > looks
        store.write = lambda: db.execute(load_statements()[row.statement], row.args).fetchall()
        clock.wake()
        await desk.ended(app, "j")
        db.close()


async def test_a_computer_that_slept_is_late_by_a_moment(tmp_path: Path) -> None:
    """The clock on the wall went on while nothing here was reckoned: nobody pokes, and no minute is
    waited for."""
    desk = JobDesk(tmp_path)
    desk.write("j", "daily 09:00")
    async with desk.running() as app:
        await desk.look(app)
        clock = app.features.jobs.scheduler
        looks = clock.tick_count
        desk.clock.advance(30)
        with anyio.fail_after(20):
            await anyio.sleep(2.5)
            assert clock.tick_count <= looks + 3, "and in between it rests"
            desk.clock.advance(8 * HOUR)
            desk.clock.advance(8 * HOUR)
            await desk.ended(app, "j")
