"""Jobs that fail or cannot be read, too many starts, orders that are not theirs, and a run that
waits for a person."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.jobs.ledger import list_runs
from deskhand.models.base import Request
from deskhand.runtime.app import App, Parts, open_app
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.jobs import JobDesk
from deskhand.testing.scripted import say
from deskhand.testing.temporary_home import wait_for
from deskhand.types.commit import Change
from deskhand.types.errors import JobInvalid, ModelRequestRefused, StoreUnavailable
from deskhand.types.events import CommandRun
from deskhand.types.identity import Address, Command, Inbound, Principal, Said
from deskhand.types.messages import Message, Text, ToolCall

from .seen import states, texts, truth

OWNER = Principal("owner", ("owner",))
HOUR = 3600.0


async def test_what_is_broken_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    desk.write("good", "every 1m")
    desk.write("never", "0 0 30 2 *")
    desk.write("four", "0 30 2 *")
    for name, data in (
        ("bytes", b"\xff\xfe\0"),
        ("empty", b""),
        ("bomb", b"---\na: &a [1]\nb: [*a, *a]\n---\nx" * 9),
    ):
        (desk.jobs / name).mkdir()
        (desk.jobs / name / "JOB.md").write_bytes(data)
    (desk.jobs / "folder" / "JOB.md").mkdir(parents=True)
    (desk.jobs / "loose.md").write_text("not a job")
    async with desk.running() as app:
        await desk.pass_time(app, 60)
        await desk.ended(app, "good")
        problems = {
            view.name: view.problem for view in await app.features.jobs.api.list_jobs(OWNER)
        }
        assert (
            problems["good"] == "" and "no month that it names has such a day" in problems["never"]
        )
        assert "has 4 fields" in problems["four"] and "is not UTF-8" in problems["bytes"]
        assert "no front matter" in problems["empty"] and "it is not a file" in problems["folder"]
        with pytest.raises(JobInvalid, match="cannot run as it is written"):
            await app.features.jobs.api.run(OWNER, "never")


async def test_the_owner_is_told_less_and_less_and_then_that_it_works(tmp_path: Path) -> None:
    broken = True

    def script(request: Request) -> Message:
        if broken:
            raise ModelRequestRefused("the model is out of order")
        return say("fine")

    desk = JobDesk(tmp_path, script)
    channel = MemoryChannel()
    desk.write("j", "hourly")
    desk.write("quiet", "hourly", alert=False)
    async with desk.running([channel]) as app:
        await _reachable(app)
        for number in range(1, 8):
            await desk.pass_time(app, HOUR)
            await desk.ended(app, "j", number)
            await desk.ended(app, "quiet", number)
        told = [text for _, text in texts(channel)]
        await wait_for(lambda: truth(len(texts(channel)) == 3))  # after 0, 1 and 5 hours
        told = [text for _, text in texts(channel)]
        assert told[0].startswith("The job 'j' failed: ") and "the model is out of order" in told[0]
        assert "`deskhand jobs runs j`" in told[0] and "It has failed 6 times in a row." in told[2]
        assert (await app.features.jobs.api.get(OWNER, "j")).counters.errors == 7
        broken = False
        await desk.pass_time(app, HOUR)
        await desk.ended(app, "j", 8)
        await wait_for(lambda: truth(texts(channel)[-1][1] == "The job 'j' works again."))
        assert len(texts(channel)) == 4


class Killed(SqliteStore):
    """One whose process can die: from then on nothing is written any more."""

    dead = False

    async def change(self, changes: Sequence[Change]) -> list[int]:
        if self.dead:
            raise StoreUnavailable("this process is dead")
        return await super().change(changes)

    async def end_run(self) -> None:
        if not self.dead:
            await super().end_run()


@asynccontextmanager
async def crashing(desk: JobDesk) -> AsyncIterator[App]:
    """A life that ends as `kill -9` ends it."""
    desk.store = Killed
    async with desk.running() as app:
        yield app
        assert isinstance(app.store, Killed)
        app.store.dead = True
    desk.store = SqliteStore


async def test_a_storm_of_crashes_pauses_all_jobs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    desk = JobDesk(tmp_path)
    channel = MemoryChannel()
    desk.write("j", "every 1m")
    for _ in range(3):
        async with crashing(desk) as app:
            assert not (await app.features.jobs.api.get(OWNER, "j")).paused
        desk.clock.advance(120)
    async with desk.opened() as app:
        await _reachable(app)
    async with desk.running([channel]) as app:
        await wait_for(lambda: truth(bool(channel.sent)))
        said = texts(channel)[0][1]
        assert said.startswith("All jobs are paused: Deskhand crashed 3 times within 10 minutes")
        assert "To resume: `deskhand jobs resume`" in said
        await desk.pass_time(app, 60)
        view = await app.features.jobs.api.get(OWNER, "j")
        assert view.paused and "waiting" not in await states(app, "j")
        fact = next(fact for fact in (await app.health()).facts if fact.name == "jobs")
        assert (fact.state, fact.last_error) == ("degraded", "To resume: deskhand jobs resume")
        assert fact.detail.startswith("paused: Deskhand crashed 3 times")
        assert (
            "No job runs: Deskhand crashed 3 times" in caplog.text
            and "deskhand jobs resume" in caplog.text
        )
        assert (await app.features.jobs.api.resume(OWNER)).startswith("Deskhand crashed 3 times")
        ran = len(await states(app, "j"))
        await desk.pass_time(app, 60)
        await wait_for(lambda: _more(app, "j", ran))
        assert (
            next(fact for fact in (await app.health()).facts if fact.name == "jobs").state == "ok"
        )
    async with desk.running() as app:  # what was lifted does not come back at the next start
        assert not (await app.features.jobs.api.get(OWNER, "j")).paused


async def _more(app: App, name: str, than: int) -> bool:
    return len(await states(app, name)) > than


class Fatal(BaseException):
    """Nothing catches it."""


class Broken(MemoryChannel):
    """Ends the whole process once it may."""

    def __init__(self) -> None:
        super().__init__()
        self.go = anyio.Event()

    async def receive(self) -> AsyncIterator[Inbound]:
        await self.go.wait()
        raise Fatal
        yield


async def test_a_crash_right_after_the_start_counts_too(tmp_path: Path) -> None:
    """What is driven first kills it, before anybody has looked at a job."""
    killed = list[Killed]()

    def script(request: Request) -> Message:
        for store in killed:
            store.dead = True
        return say("never said")

    desk = JobDesk(tmp_path, script)
    desk.write("j", "every 1m")
    for number in range(3):
        async with desk.opened() as app:
            said = Said(Message("user", (Text("go on"),)))
            inbound = Inbound(
                str(number), Address("memory", "", "1"), "owner", desk.clock.now(), said
            )
            await app.store.accept(inbound, OWNER, "default/memory:1")
        parts = Parts(lambda name: desk.model, sandbox=desk.proven, clock=desk.clock, store=Killed)
        async with open_app(desk.settings, parts) as app, anyio.create_task_group() as tasks:
            assert isinstance(app.store, Killed)
            killed[:] = [app.store]
            tasks.start_soon(app.run)
            await wait_for(lambda: truth(killed[0].dead))
            tasks.cancel_scope.cancel()
    killed.clear()
    async with desk.running() as app:
        assert (await app.features.jobs.api.get(OWNER, "j")).paused.startswith(
            "Deskhand crashed 3 times"
        )


async def test_a_part_that_breaks_is_a_crash(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    desk.write("j", "every 1h")
    for _ in range(3):
        channel = Broken()
        with pytest.raises(BaseExceptionGroup):
            async with desk.running([channel]):
                channel.go.set()
                await anyio.sleep_forever()
    async with desk.running() as app:
        assert (await app.features.jobs.api.get(OWNER, "j")).paused.startswith(
            "Deskhand crashed 3 times"
        )


@pytest.mark.parametrize(
    "ends", ["in good order", "in good order, and killed before it was through"]
)
async def test_starts_that_were_asked_for_are_no_storm(tmp_path: Path, ends: str) -> None:
    """Who ends it and starts it again, however often, has asked for that: with one job or many."""
    desk = JobDesk(tmp_path)
    desk.write("j", "every 1h")
    for _ in range(6):
        async with desk.running() if ends == "in good order" else crashing(desk) as app:
            assert not (await app.features.jobs.api.get(OWNER, "j")).paused
            await app.drain()
        desk.clock.advance(1)


async def test_crashes_that_are_far_apart_are_no_storm(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    desk.write("j", "every 1h")
    for _ in range(4):
        async with crashing(desk) as app:
            assert not (await app.features.jobs.api.get(OWNER, "j")).paused
        desk.clock.advance(301)


async def test_a_job_at_each_start_cannot_keep_starts_going(tmp_path: Path) -> None:
    """Whatever way it found to have Deskhand started again."""
    desk = JobDesk(tmp_path)
    desk.write("boot", "startup")
    desk.write("j", "every 1h")
    for number in range(1, 4):
        async with desk.running() as app:
            await desk.ended(app, "boot", number)
        desk.clock.advance(1)
    async with desk.running() as app:
        run = (await list_runs(app.store, "boot", 20))[0]
        assert (run.state, run.said) == (
            "skipped",
            "after 3 of its runs within 10 minutes Deskhand was restarted immediately",
        )
        assert not (await app.features.jobs.api.get(OWNER, "j")).paused
        assert await states(app, "boot") == ["skipped", "done", "done", "done"]
    desk.clock.advance(600)
    async with desk.running() as app:
        assert (await desk.ended(app, "boot", 5)).state == "done"


async def test_a_job_at_each_start_runs_at_each_that_was_asked_for(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    desk.write("boot", "startup")
    for number in range(1, 6):
        async with desk.running() as app:
            assert (await desk.ended(app, "boot", number)).state == "done"
        desk.clock.advance(61)


@pytest.mark.parametrize("where", ["in the process that runs", "in another"])
async def test_the_process_in_which_jobs_go_on_may_crash_too(tmp_path: Path, where: str) -> None:
    """What was before is forgotten, and it is not."""
    desk = JobDesk(tmp_path)
    desk.write("j", "every 1h")
    for _ in range(3):
        async with crashing(desk):
            pass
        desk.clock.advance(1)
    async with crashing(desk) as app:
        if where == "in another":
            async with desk.opened() as other:
                await other.features.jobs.api.resume(OWNER)
        else:
            await app.features.jobs.api.resume(OWNER)
        assert await app.store.query("job_boot_count", (0.0, desk.clock.at)) == [(1,)]
    async with desk.opened() as other:
        await other.features.jobs.api.resume(OWNER)
        assert await other.store.query("job_boot_count", (0.0, desk.clock.at)) == [(0,)], (
            "nothing runs"
        )


async def test_a_job_may_not_restart_us(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    desk.write("j", "every 1m", "/restart")
    async with desk.running() as app:
        await desk.pass_time(app, 60)
        run = await desk.ended(app, "j")
        assert (
            run.state == "done" and not app.restart.requested.is_set()
        )  # it is a message like any other
        by = Principal("job:j", ("owner",), "clock", "owner")
        place = Address("job", chat="j")
        order = Inbound("1", place, by.id, desk.clock.at, Command("restart"), run.session)
        await app.features.injector.hand_in(order, by)
        await wait_for(lambda: _refused(app, run.session))
        assert not app.restart.requested.is_set()


async def _refused(app: App, session: str) -> bool:
    events = [each.event for each in await app.store.events(session)]
    return any(isinstance(event, CommandRun) and event.refused for event in events)


async def test_a_run_that_waits_for_a_yes_is_told_and_not_stopped(tmp_path: Path) -> None:
    def script(request: Request) -> Message:
        if request.messages[-1].message.role == "tool":
            return say("done")
        return say("", ToolCall("c1", "shell", msgspec.Raw(b'{"command": "rm -rf x"}')))

    desk = JobDesk(tmp_path, script, policy=[{"verdict": "ask", "tool": "shell"}])
    channel = MemoryChannel()
    desk.write("j", "daily 22:14", timeout="5m")
    async with desk.running([channel]) as app:
        await _reachable(app)
        await desk.pass_time(app, 60)
        await wait_for(lambda: truth(bool(channel.sent)))
        assert "The job 'j' waits for your yes" in texts(channel)[0][1]
        await desk.pass_time(app, 600)
        await desk.pass_time(app, 600)
        assert await states(app, "j") == ["running"]
        (ask,) = await app.store.open_asks(OWNER)
        await app.door.answer(ask.ask_id, "no", OWNER)
        assert (await desk.ended(app, "j")).state == "done"


@pytest.mark.parametrize(
    ("why", "said"),
    [
        ("the model", "the key has expired"),
        (
            "its steps",
            (
                "it took all its steps without an answer; raise `steps:` in its file, or ask "
                "for less at a time"
            ),
        ),
    ],
)
async def test_a_chat_is_told_which_job_failed_why_and_what_to_do(
    tmp_path: Path, why: str, said: str
) -> None:
    def script(request: Request) -> Message:
        if why == "the model":
            raise ModelRequestRefused("the key has expired")
        return say(
            "", ToolCall(f"c{len(request.messages)}", "list_files", msgspec.Raw(b'{"path": "."}'))
        )

    desk = JobDesk(tmp_path, script)
    channel = MemoryChannel()
    desk.write("brief", "every 1h", to="memory:7", steps=1)
    async with desk.running([channel]) as app:
        await _reachable(app)
        await desk.pass_time(app, HOUR)
        assert (await desk.ended(app, "brief")).said == said
        await wait_for(lambda: truth(len(texts(channel)) == 2))
        what_to_do = (
            "See `deskhand jobs runs brief`; `deskhand jobs disable brief` switches it off."
        )
        words = f"The job 'brief' failed: {said}.\n{what_to_do}"
        assert sorted(texts(channel)) == [("7", words), ("9", words)]


async def test_an_owner_in_that_chat_is_told_once(tmp_path: Path) -> None:
    def script(request: Request) -> Message:
        raise ModelRequestRefused("the key has expired")

    desk = JobDesk(tmp_path, script)
    channel = MemoryChannel()
    desk.write("brief", "every 1h", to="memory:9")
    desk.write("other", "every 1h")
    async with desk.running([channel]) as app:
        await _reachable(app)
        await desk.pass_time(app, HOUR)
        await desk.ended(app, "brief")
        await desk.ended(app, "other")
        await wait_for(lambda: truth(len(texts(channel)) == 2))
        assert sorted(text.partition(" failed")[0] for _, text in texts(channel)) == [
            "The job 'brief'",
            "The job 'other'",
        ]
        await wait_for(lambda: _all_sent(app, 2))
        assert await app.alerts.unreached() == []


async def _all_sent(app: App, number: int) -> bool:
    return [each.state for each in await app.alerts.latest()] == ["sent"] * number


async def test_one_that_fails_every_other_time_is_told_no_more_often(tmp_path: Path) -> None:
    asked = list[int]()

    def script(request: Request) -> Message:
        asked.append(1)
        if len(asked) % 2:
            raise ModelRequestRefused("the model is out of order")
        return say("fine")

    desk = JobDesk(tmp_path, script)
    channel = MemoryChannel()
    desk.write("j", "every 1m")
    async with desk.running([channel]) as app:
        await _reachable(app)
        for number in range(1, 9):
            await desk.pass_time(app, 60)
            await desk.ended(app, "j", number)
        await wait_for(lambda: truth(len(texts(channel)) == 2))
        told = [text for _, text in texts(channel)]
        assert told[0].startswith("The job 'j' failed: ") and told[1] == "The job 'j' works again."
        desk.clock.advance(HOUR)
        for number in (9, 10):
            await desk.pass_time(app, 60)
            await desk.ended(app, "j", number)
        await wait_for(lambda: truth(len(texts(channel)) == 4))
        assert (await app.features.jobs.api.get(OWNER, "j")).counters.errors == 5


async def test_where_all_fail_the_owner_is_told_of_a_few(tmp_path: Path) -> None:
    def script(request: Request) -> Message:
        raise ModelRequestRefused("the key has expired")

    desk = JobDesk(tmp_path, script)
    channel = MemoryChannel()
    for number in range(9):
        desk.write(f"j{number}", "every 1h")
    async with desk.running([channel]) as app:
        await _reachable(app)
        await desk.pass_time(app, HOUR)
        for number in range(9):
            await desk.ended(app, f"j{number}")
        await wait_for(lambda: truth(len(texts(channel)) == 6))
        told = [text for _, text in texts(channel)]
        assert told[5].endswith(
            "More jobs fail, and you are not told of each: see `deskhand jobs`."
        )
        assert sum("More jobs fail" in each for each in told) == 1


async def _reachable(app: App) -> None:
    """The owner can be told something."""
    where = msgspec.json.encode(Address("memory", chat="9"))
    await app.store.change([Change("user_identity_add", ("memory", "", "9", "owner", where, 0.0))])
