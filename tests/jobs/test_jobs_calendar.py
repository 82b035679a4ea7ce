"""Two years of jobs in five zones, and a day in which nothing is to be done."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import anyio

from deskhand.jobs.due import find_due
from deskhand.jobs.ledger import list_runs
from deskhand.testing.clock import SetClock
from deskhand.testing.jobs import JobDesk
from deskhand.types.jobs import Job
from deskhand.types.schedules import parse_schedule
from deskhand.users.user_cache import OWNER

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
END = datetime(2028, 1, 1, tzinfo=UTC)
ZONES = (
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "America/Santiago",
)
WALLS = ((0, 30), (1, 30), (2, 30))


def first_shown(wall: datetime, zone: ZoneInfo) -> datetime:
    """The first minute in which a clock there shows this wall time or a later one: by looking at
    the clock."""
    about = wall.replace(tzinfo=UTC)
    offsets = [(about + timedelta(hours=h)).astimezone(zone).utcoffset() for h in (-26, 0, 26)]
    moment = about - max(offset for offset in offsets if offset is not None)
    while moment.astimezone(zone).replace(tzinfo=None) < wall:
        moment += timedelta(minutes=1)
    return moment


def expected(zone: str) -> set[float]:
    """Each wall time of each day, once: those that fall into a gap come together."""
    place = ZoneInfo(zone)
    found = set[float]()
    for day in range(-1, (END - BEGIN).days + 1):
        date = BEGIN.replace(tzinfo=None) + timedelta(days=day)
        found |= {first_shown(date.replace(hour=h, minute=m), place).timestamp() for h, m in WALLS}
    return {at for at in found if BEGIN.timestamp() < at <= END.timestamp()}


def test_two_years_in_five_zones_each_time_exactly_once() -> None:
    """Looked at late by up to a minute, and now and then not for two days, which `skip` and
    `run_once` lose alike."""
    for zone in ZONES:
        schedule = parse_schedule("30 0,1,2 * * *", zone)
        now = BEGIN.timestamp()
        seen_at = BEGIN.timestamp()
        fired = list[float]()
        while now < END.timestamp():
            found = find_due(schedule, seen_at, now, "skip", 3600.0)
            fired += found.fire
            seen_at = found.seen_at
            now = (found.next_at or now) + (len(fired) * 7) % 60
        assert fired == sorted(at for at in expected(zone) if at < now), zone


def changes(zone: str) -> list[float]:
    """The hours of a year in which the clocks there are changed."""
    place = ZoneInfo(zone)
    found = list[float]()
    before = None
    for hour in range(365 * 24):
        offset = (BEGIN + timedelta(hours=hour)).astimezone(place).utcoffset()
        if before not in (None, offset):
            found.append((BEGIN + timedelta(hours=hour)).timestamp())
        before = offset
    return found


async def test_each_change_of_the_clocks_in_the_ledger(tmp_path: Path) -> None:
    """The days around each change, in all zones at once, with a new process in the very hour of the
    change."""
    desk, came = JobDesk(tmp_path, clock=SetClock(BEGIN.timestamp())), Counter[tuple[str, float]]()
    jobs = [
        Job(
            zone.rpartition("/")[2],
            kind="chore",
            chore="note",
            schedule="30 0,1,2 * * *",
            timezone=zone,
            misfire="skip",
        )
        for zone in ZONES
    ]

    async def note(job: Job) -> str:
        came[job.name, desk.clock.at // 60 * 60] += 1
        return ""

    days = list[tuple[float, float]]()
    for change in sorted(at for zone in ZONES for at in changes(zone)):
        days += [(change - 20 * 3600, change - 600), (change - 600, change + 20 * 3600)]
    assert len(days) == 2 * 10
    for begin, end in days:
        desk.clock.at = max(begin, desk.clock.at)
        async with desk.opened() as app:
            app.features.jobs.runs.chores["note"] = note
            app.features.jobs.files.builtins.append(lambda: jobs)
            clock = app.features.jobs.scheduler
            await clock.recover()
            await clock.tick()
            while (at := clock.next_at) is not None and at <= end:
                desk.clock.at = at + (at // 60) % 60
                await clock.tick()
                while app.features.jobs.runs.live:
                    await anyio.sleep(0.002)
            desk.clock.at = max(desk.clock.at, end)
    for job, zone in zip(jobs, ZONES, strict=True):
        found = {at: count for (name, at), count in came.items() if name == job.name}
        within = {at for at in expected(zone) if any(begin < at <= end for begin, end in days)}
        assert within <= {*found} and {*found.values()} == {1} and {*found} <= expected(zone), zone


async def test_two_years_in_the_ledger(tmp_path: Path) -> None:
    """Each day at half past two in Berlin, which is skipped once a year and shown twice once a
    year, through the real ledger: a row for each, and the chore done once for each. Five seconds of
    work; five zones would take thirty."""
    begin = BEGIN.timestamp()
    end = END.timestamp()
    desk, came = JobDesk(tmp_path, clock=SetClock(begin)), Counter[float]()
    job = Job(
        "daily",
        kind="chore",
        chore="note",
        schedule="30 2 * * *",
        timezone="Europe/Berlin",
        misfire="skip",
    )

    async def note(job: Job) -> str:
        came[desk.clock.at // 60 * 60] += 1
        return ""

    async with desk.opened() as app:
        jobs = app.features.jobs
        jobs.runs.chores["note"] = note
        jobs.files.builtins[:] = [lambda: [job]]
        await jobs.scheduler.recover()
        await jobs.scheduler.tick()
        while (at := jobs.scheduler.next_at) is not None and at <= end:
            desk.clock.at = at + (at // 3600) % 60
            await jobs.scheduler.tick()
            while jobs.runs.live:
                await anyio.sleep(0)
        days = [
            BEGIN.replace(tzinfo=None) + timedelta(days=day, hours=2, minutes=30)
            for day in range(730)
        ]
        shown = [first_shown(day, ZoneInfo("Europe/Berlin")).timestamp() for day in days]
        assert sorted(came) == shown and set(came.values()) == {1}
        rows = await list_runs(app.store, "daily", 999)
        assert {run.state for run in rows} == {"done"} and len(
            rows
        ) >= 100  # older ones are forgotten on the way
        assert (await jobs.api.get(OWNER, "daily")).counters.runs == 730


async def test_a_quiet_day_costs_no_model_call_and_no_write(tmp_path: Path) -> None:
    """Twenty jobs, none of which is due: the folder is looked at once a minute, and nothing else
    happens."""
    desk = JobDesk(tmp_path, clock=SetClock(BEGIN.timestamp()))
    for number in range(20):
        desk.write(f"j{number}", "0 9 * * MON" if number % 2 else "every 1w")  # a Thursday
    async with desk.opened() as app:
        clock = app.features.jobs.scheduler
        store = app.store
        app.features.jobs.files.builtins.clear()
        await clock.recover()
        await clock.tick()
        before = clock.tick_count
        version = store.version()
        while desk.clock.at < BEGIN.timestamp() + 86_400:
            wait_s = await clock.tick()
            assert wait_s > 0
            desk.clock.advance(wait_s)
        assert clock.tick_count - before <= 24 * 60 + 2
        assert (
            store.version() == version
            and not desk.model.requests
            and not await store.open_sessions()
        )


async def test_a_quiet_day_with_gates_and_watchers_asks_no_model(tmp_path: Path) -> None:
    """Hourly jobs whose prerun finds nothing, and one that only waits for an event."""
    desk = JobDesk(tmp_path, clock=SetClock(BEGIN.timestamp()))
    desk.write("mail", "hourly", hooks={"prerun": "new.sh"})
    desk.hook("mail", "new.sh", "#!/bin/sh\nexit 1\n")
    desk.write("door", on=["webhook"])
    async with desk.running() as app:
        assert any(
            view.builtin for view in await app.features.jobs.api.list_jobs(OWNER)
        )  # gathering, tidying and the like go on
        for hour in range(1, 25):
            await desk.pass_time(app, 3600)
            assert (await desk.ended(app, "mail", hour)).state == "gated"
        assert (await app.features.jobs.api.get(OWNER, "mail")).counters.gates == 24
        assert not desk.model.requests
