"""Jobs in a whole Deskhand: a file, a time, a message, an answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.models.base import Item, Reply, Request
from deskhand.runtime.app import App
from deskhand.testing.beside import wait_for
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.jobs import JobDesk
from deskhand.testing.scripted import say
from deskhand.types.commit import Change
from deskhand.types.errors import JobInvalid, ModelRequestRefused
from deskhand.types.events import CommandRun, MessageReceived
from deskhand.types.identity import Address, Command, Inbound, Principal
from deskhand.types.jobs import Job
from deskhand.types.labels import UNTRUSTED, Label
from deskhand.types.messages import Message, Text, ToolCall

OWNER = Principal("owner", ("owner",))
HOUR = 3600.0


async def messages(app: App, session: str) -> list[MessageReceived]:
    return [e.event for e in await app.store.events(session) if isinstance(e.event, MessageReceived)]


async def states(app: App, name: str) -> list[str]:
    return [run.state for run in await app.works.jobs.runs(name)]


async def of_people(app: App) -> list[str]:
    """The jobs that have a file."""
    return [view.name for view in await app.works.jobs.all() if not view.builtin]


def texts(channel: MemoryChannel) -> list[tuple[str, str]]:
    return [
        (outgoing.address.chat, "".join(part.text for part in outgoing.parts if isinstance(part, Text)))
        for outgoing, _ in channel.sent
    ]


async def test_a_file_becomes_a_message_and_an_answer_every_minute(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    desk.write("hello", "every 1m", "Say hello.")
    async with desk.running() as app:
        await desk.pass_time(app, 60)
        run = await desk.ended(app, "hello")
        assert (run.state, run.slot, run.said) == ("done", "2023-11-14T22:14:00Z", "done")
        assert run.session == "default/job:hello:1700000040"
        (message,) = await messages(app, run.session)
        assert message.principal == Principal("job:hello", ("owner",), "clock", "owner")
        assert message.message.text.endswith("Say hello.") and "send_message" in message.message.text
        assert message.message.parts == (Text(message.message.text, Label("tool_local", None, "job:hello")),)
        await desk.pass_time(app, 60)
        await desk.ended(app, "hello", 2)
        view = await app.works.jobs.get("hello")
        assert view.counters.runs == 2 and view.last_result == "success" and view.next_at == 1700000160.0
        assert len(desk.model.requests) == 2


async def test_a_file_is_taken_up_changed_and_dropped_while_we_run(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    async with desk.running() as app:
        desk.write("late", "every 1m")
        await desk.pass_time(app, 60)  # it is seen now, and counts from here
        desk.clock.at = (desk.jobs / "late" / "JOB.md").stat().st_mtime
        await desk.look(app)
        await desk.pass_time(app, 60)
        await desk.ended(app, "late")
        desk.write("late", "every 1m", enabled=False)
        await desk.look(app)
        count = len(await states(app, "late"))
        await desk.pass_time(app, 300)
        (desk.jobs / "late" / "JOB.md").unlink()
        await desk.pass_time(app, 300)
        assert len(await states(app, "late")) == count and await of_people(app) == []


async def test_a_changed_time_fires_nothing_of_the_past(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    desk.write("day", "daily 20:00")
    async with desk.running() as app:
        await desk.pass_time(app, 60)
        desk.write("day", "daily 22:10")  # three minutes ago, well within what is made up for
        await desk.pass_time(app, 60)
        assert await states(app, "day") == [] and (await app.works.jobs.get("day")).next_at == 1700086200.0


@pytest.mark.parametrize(("misfire", "runs"), [("skip", 0), ("run_once", 1), ("run_all", 3)])
async def test_down_for_three_hours_over_three_times(tmp_path: Path, misfire: str, runs: int) -> None:
    desk = JobDesk(tmp_path)
    desk.write("j", "hourly", misfire=misfire)
    async with desk.running() as app:
        await desk.look(app)
    desk.clock.advance(3 * HOUR)  # from 22:13 to 01:13
    async with desk.running() as app:
        await desk.look(app)
        await wait_for(lambda: _ran(app, "j", runs))
        await desk.pass_time(app, 60)
        assert [state for state in await states(app, "j") if state != "missed"] == ["done"] * runs
        told = [run.said for run in await app.works.jobs.runs("j") if run.state == "missed"]
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
            before = len([run for run in await app.works.jobs.runs(name, 99) if run.state == "done"])
            for _ in range(20):  # twenty hours
                await desk.pass_time(app, HOUR / 2)
                await desk.pass_time(app, HOUR / 2)
            done = [run for run in await app.works.jobs.runs(name, 99) if run.state == "done"]
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
        slots = [run.slot for run in await app.works.jobs.runs("j")]
        assert slots == [f"2023-11-{day}:00:00Z" for day in ("15T02", "15T01", "15T00", "14T23")]
        desk.clock.at += 10 * 365 * 24 * HOUR  # a wrong clock, and the right one again
        await desk.look(app)
        desk.clock.at -= 10 * 365 * 24 * HOUR
        await desk.look(app)
        before = len(await app.works.jobs.runs("j", 99))
        await desk.pass_time(app, HOUR)
        assert (await desk.ended(app, "j", before + 1)).due_at > 0
        assert any(run.slot == "2023-11-15T03:00:00Z" for run in await app.works.jobs.runs("j", 99))
        desk.clock.at += 10 * 365 * 24 * HOUR  # the same, and back to before what has run
        await desk.look(app)
        desk.clock.at -= 10 * 365 * 24 * HOUR + 2 * HOUR
        await desk.look(app)
        for _ in range(2):
            await desk.pass_time(app, HOUR)
        done = [run for run in await app.works.jobs.runs("j", 99) if run.state == "done"]
        assert (await app.works.jobs.get("j")).counters.runs == len(done)


# ---------------------------------------------------------------- while the last still runs


class Slow:
    """A model that answers when it is told to."""

    def __init__(self) -> None:
        self.go = anyio.Event()

    async def reply(self, request: Request) -> AsyncIterator[Item]:
        await self.go.wait()
        yield Reply(say("done"), "stop")


@pytest.mark.parametrize(
    ("overlap", "found"), [("skip", ["skipped", "skipped"]), ("queue_one", ["skipped", "waiting"])]
)
async def test_the_last_one_still_runs(tmp_path: Path, overlap: str, found: list[str]) -> None:
    desk, slow = JobDesk(tmp_path), Slow()
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
        assert ended == (["skipped", "done", "done"] if overlap == "queue_one" else ["skipped", "skipped", "done"])
        assert (await app.works.jobs.get("j")).counters.skips == found.count("skipped")


async def _all_over(app: App, name: str) -> list[str]:
    found = await states(app, name)
    return [] if "waiting" in found or "running" in found else found


async def test_what_takes_too_long_is_stopped(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    desk.model = Slow()  # type: ignore[assignment]
    desk.write("j", "every 1h", timeout="2m")
    async with desk.running() as app:
        await desk.pass_time(app, HOUR)
        await wait_for(lambda: _is(app, "j", ["running"]))
        await desk.pass_time(app, 119)
        assert await states(app, "j") == ["running"]
        await desk.pass_time(app, 2)
        run = await desk.ended(app, "j")
        assert (run.state, run.said) == ("error", "it took longer than 2 minutes and was stopped")
        assert (await app.works.jobs.get("j")).counters.errors == 1


async def _is(app: App, name: str, found: list[str]) -> bool:
    return await states(app, name) == found


# ---------------------------------------------------------------- where it goes on


async def test_a_text_is_delivered_without_a_model(tmp_path: Path) -> None:
    desk, channel = JobDesk(tmp_path), MemoryChannel()
    desk.write("tea", "daily 22:14", "Tea time.", kind="deliver", to="memory:7", delete_after_run=True)
    async with desk.running([channel]) as app:
        await desk.pass_time(app, 60)
        await wait_for(lambda: _truth(texts(channel) == [("7", "Tea time.")]))
        events = [e.event for e in await app.store.events("default/memory:7")]
        assert [e.reply for e in events if isinstance(e, CommandRun)] == ["Tea time."]
        assert not desk.model.requests and not (desk.jobs / "tea").exists()
        assert await states(app, "tea") == ["done"]


async def _truth(value: bool) -> bool:
    return value


async def test_an_answer_goes_where_it_is_wanted(tmp_path: Path) -> None:
    desk, channel = JobDesk(tmp_path), MemoryChannel()
    desk.write("own", "every 1m", to="memory:7")
    desk.write("chat", "every 1m", to="memory:8", session="chat")
    desk.write("fixed", "every 1m", session="news")
    async with desk.running([channel]) as app:
        await desk.pass_time(app, 60)
        for name in ("own", "chat", "fixed"):
            await desk.ended(app, name)
        await wait_for(lambda: _truth(sorted(texts(channel)) == [("7", "done"), ("8", "done")]))
        sessions = [(await app.works.jobs.runs(name))[0].session for name in ("own", "chat", "fixed")]
        assert sessions == ["default/job:own:1700000040", "default/memory:8", "default/web:owner:news"]
        await desk.pass_time(app, 60)
        await desk.ended(app, "fixed", 2)
        assert len(await messages(app, "default/web:owner:news")) == 2


async def test_a_job_has_its_own_model_steps_and_tools(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path, defaults={"models": ["scripted/usual"]})
    desk.write("j", "every 1m", model="scripted/cheap", steps=3, tokens=9000, tools=["read_*"])
    async with desk.running() as app:
        await desk.pass_time(app, 60)
        run = await desk.ended(app, "j")
        request = desk.model.requests[0]
        assert request.model == "cheap"
        assert {tool.name for tool in request.tools} and all(tool.name.startswith("read_") for tool in request.tools)
        agent = app.works.driving(run.session, app.agent_of(run.session))
        assert (agent.limits.steps, agent.limits.tokens, agent.models) == (3, 9000, ("scripted/cheap",))
        other = app.works.driving("default/web:owner:1", app.agent_of("default"))
        assert other.models == ("scripted/usual",)


async def test_a_job_acts_for_a_person_with_their_rights(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    desk.write("hers", "every 1m", **{"for": "ann"})
    desk.write("nobodys", "every 1m", **{"for": "bob"})
    async with desk.running() as app:
        await app.people.add_user("ann", "member")
        await desk.pass_time(app, 60)
        run = await desk.ended(app, "hers")
        (message,) = await messages(app, run.session)
        assert message.principal == Principal("job:hers", ("member",), "clock", "ann")
        assert await app.store.may_see(Principal("ann", ("member",)), run.session)
        assert not await app.store.may_see(Principal("carl", ("member",)), run.session)
        assert (await desk.ended(app, "nobodys")).said.startswith("`for: bob` names nobody who is known here")


# ---------------------------------------------------------------- started otherwise


async def test_somebody_runs_it(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    desk.write("j", "daily 09:00")
    async with desk.running() as app:
        slot = await app.works.jobs.run_now("j", OWNER)
        run = await desk.ended(app, "j")
        assert (run.slot, run.state) == (slot, "done") and slot.endswith(" by owner")
        with pytest.raises(JobInvalid, match="there is no job 'x'"):
            await app.works.jobs.run_now("x", OWNER)


async def test_an_event_starts_it_once(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    desk.write("j", prompt="Look at this.", on=["webhook"])
    async with desk.running() as app:
        jobs, payload = app.works.jobs, Text("<event>the door is open</event>", UNTRUSTED)
        assert await jobs.trigger("j", "webhook 1", payload) and not await jobs.trigger("j", "webhook 1", payload)
        run = await desk.ended(app, "j")
        (message,) = await messages(app, run.session)
        assert message.message.parts[-1] == payload
        assert not await jobs.trigger("j", "webhook 1", payload)
        assert await jobs.trigger("j", "webhook 2", payload)
        await desk.ended(app, "j", 2)
        sessions = {each.session for each in await jobs.runs("j")}
        assert len(sessions) == 2


async def test_a_chore_is_a_job_without_a_file(tmp_path: Path) -> None:
    did = list[str]()

    async def sweep(job: Job) -> str:
        did.append(job.name)
        if len(did) > 1:
            raise RuntimeError("no broom")
        return "swept"

    desk = JobDesk(tmp_path)
    async with desk.running() as app:
        jobs = app.works.jobs
        jobs.chores["sweep"] = sweep
        jobs.builtins.append(lambda: [Job("sweeper", kind="chore", chore="sweep", schedule="every 1m")])
        jobs.builtins.append(lambda: [Job("wrong", kind="chore", chore="sweep", schedule="sometimes")])
        await desk.look(app)
        await desk.pass_time(app, 60)
        run = await desk.ended(app, "sweeper")
        assert (run.state, run.said) == ("done", "swept") and not desk.model.requests
        view = await jobs.get("sweeper")
        assert view.builtin and view.counters.runs == 1
        assert "is no schedule" in (await jobs.get("wrong")).problem
        await desk.pass_time(app, 60)
        assert (await desk.ended(app, "sweeper", 2)).said == "it broke (RuntimeError: no broom)"
        await desk.pass_time(app, 60)
        await desk.ended(app, "sweeper", 3)  # the clock goes on


# ---------------------------------------------------------------- files through us


async def test_jobs_are_written_switched_and_removed(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    async with desk.running() as app:
        jobs = app.works.jobs
        path = await jobs.put(Job("a", "Do it.", schedule="every 1m"), OWNER)
        assert path == desk.jobs / "a" / "JOB.md" and path.stat().st_mode & 0o777 == 0o600
        desk.clock.at = path.stat().st_mtime
        await desk.look(app)
        await desk.pass_time(app, 60)
        await desk.ended(app, "a")
        assert jobs.forecast(Job("a", "x", schedule="every 1m", tokens=5)).runs_in_a_week == 10080
        await jobs.enable("a", False, OWNER)
        assert (await jobs.get("a")).next_at is None
        await jobs.remove("a", OWNER)
        assert await of_people(app) == [] and not (desk.jobs / "a").exists()
        for job, told in (
            (Job("../b", "x"), "cannot name a job"),
            (Job("b", "x", schedule="at 2020-01-01"), "is in the past"),
            (Job("b", "x", agent="nobody"), "there is no agent 'nobody'; there are: default"),
            (Job("b", "x", session="other/web:1"), "belongs to another agent"),
            (Job("b", ""), "it has no text"),
        ):
            with pytest.raises(JobInvalid, match=told):
                await jobs.put(job, OWNER)
        with pytest.raises(JobInvalid, match="there is no job 'zz'"):
            await jobs.enable("zz", True, OWNER)


async def test_what_is_broken_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    desk.write("good", "every 1m")
    desk.write("never", "0 0 30 2 *")
    desk.write("four", "0 30 2 *")
    for name, data in (("bytes", b"\xff\xfe\0"), ("empty", b""), ("bomb", b"---\na: &a [1]\nb: [*a, *a]\n---\nx" * 9)):
        (desk.jobs / name).mkdir()
        (desk.jobs / name / "JOB.md").write_bytes(data)
    (desk.jobs / "folder" / "JOB.md").mkdir(parents=True)
    (desk.jobs / "loose.md").write_text("not a job")
    async with desk.running() as app:
        await desk.pass_time(app, 60)
        await desk.ended(app, "good")
        problems = {view.name: view.problem for view in await app.works.jobs.all()}
        assert problems["good"] == "" and "no month that it names has such a day" in problems["never"]
        assert "has 4 fields" in problems["four"] and "is not UTF-8" in problems["bytes"]
        assert "no front matter" in problems["empty"] and "it is no file" in problems["folder"]
        with pytest.raises(JobInvalid, match="cannot run as it is written"):
            await app.works.jobs.run_now("never", OWNER)


# ---------------------------------------------------------------- failures, storms, orders


async def test_the_owner_is_told_less_and_less_and_then_that_it_works(tmp_path: Path) -> None:
    broken = True

    def script(request: Request) -> Message:
        if broken:
            raise ModelRequestRefused("the model is out of order")
        return say("fine")

    desk, channel = JobDesk(tmp_path, script), MemoryChannel()
    desk.write("j", "hourly")
    desk.write("quiet", "hourly", alert=False)
    async with desk.running([channel]) as app:
        await _reachable(app)
        for number in range(1, 8):
            await desk.pass_time(app, HOUR)
            await desk.ended(app, "j", number)
            await desk.ended(app, "quiet", number)
        told = [text for _, text in texts(channel)]
        await wait_for(lambda: _truth(len(texts(channel)) == 3))  # after 0, 1 and 5 hours
        told = [text for _, text in texts(channel)]
        assert told[0].startswith("The job 'j' failed: ") and "the model is out of order" in told[0]
        assert "`deskhand job runs j`" in told[0] and "It has failed 6 times in a row." in told[2]
        assert (await app.works.jobs.get("j")).counters.errors == 7
        broken = False
        await desk.pass_time(app, HOUR)
        await desk.ended(app, "j", 8)
        await wait_for(lambda: _truth(texts(channel)[-1][1] == "The job 'j' works again."))
        assert len(texts(channel)) == 4


async def _reachable(app: App) -> None:
    """The owner can be told something."""
    where = msgspec.json.encode(Address("memory", chat="9"))
    await app.store.change([Change("user_identity_add", ("memory", "", "9", "owner", where, 0.0))])


async def test_a_storm_of_starts_pauses_all_jobs(tmp_path: Path) -> None:
    desk, channel = JobDesk(tmp_path), MemoryChannel()
    desk.write("j", "every 1m")
    desk.write("boot", "startup")
    async with desk.running() as app:
        await _reachable(app)
        await desk.ended(app, "boot")
    async with desk.running() as app:
        await desk.ended(app, "boot", 2)
    desk.clock.advance(120)
    async with desk.running([channel]) as app:
        await wait_for(lambda: _truth(bool(channel.sent)))
        assert texts(channel)[0][1].startswith("No job runs any more: Deskhand was started 3 times within 10 minutes")
        assert "`deskhand job resume` lets them go on" in texts(channel)[0][1]
        await desk.pass_time(app, 60)
        view = await app.works.jobs.get("j")
        assert view.paused and view.last is None and len(await states(app, "boot")) == 2
        assert (await app.works.jobs.resume()).startswith("Deskhand was started 3 times")
        await desk.pass_time(app, 60)
        await desk.ended(app, "j")
    async with desk.running() as app:  # what was lifted does not come back at the next start
        await desk.ended(app, "boot", 3)
        assert not (await app.works.jobs.get("j")).paused


async def test_starts_that_are_far_apart_are_no_storm(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    desk.write("j", "every 1h")
    for _ in range(4):
        async with desk.running() as app:
            assert not (await app.works.jobs.get("j")).paused
        desk.clock.advance(301)


async def test_a_job_may_not_restart_us(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    desk.write("j", "every 1m", "/restart")
    async with desk.running() as app:
        await desk.pass_time(app, 60)
        run = await desk.ended(app, "j")
        assert run.state == "done" and not app.restart.asked.is_set()  # it is a message like any other
        by, place = Principal("job:j", ("owner",), "clock", "owner"), Address("job", chat="j")
        order = Inbound("1", place, by.id, desk.clock.at, Command("restart"), run.session)
        await app.works.waker.hand_in(order, by)
        await wait_for(lambda: _refused(app, run.session))
        assert not app.restart.asked.is_set()


async def _refused(app: App, session: str) -> bool:
    events = [each.event for each in await app.store.events(session)]
    return any(isinstance(event, CommandRun) and event.refused for event in events)


async def test_a_run_that_waits_for_a_yes_is_told_and_not_stopped(tmp_path: Path) -> None:
    def script(request: Request) -> Message:
        if request.messages[-1].message.role == "tool":
            return say("done")
        return say("", ToolCall("c1", "shell", msgspec.Raw(b'{"command": "rm -rf x"}')))

    desk, channel = JobDesk(tmp_path, script, policy=[{"verdict": "ask", "tool": "shell"}]), MemoryChannel()
    desk.write("j", "daily 22:14", timeout="5m")
    async with desk.running([channel]) as app:
        await _reachable(app)
        await desk.pass_time(app, 60)
        await wait_for(lambda: _truth(bool(channel.sent)))
        assert "The job 'j' waits for your yes" in texts(channel)[0][1]
        await desk.pass_time(app, 600)
        await desk.pass_time(app, 600)
        assert await states(app, "j") == ["running"]
        (ask,) = await app.store.open_asks(OWNER)
        await app.door.answer(ask.ask_id, "no", OWNER)
        assert (await desk.ended(app, "j")).state == "done"
