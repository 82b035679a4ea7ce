"""Jobs in a whole Deskhand: a file, a time, a message, an answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from deskhand.jobs.ledger import list_runs
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.jobs import JobDesk
from deskhand.testing.temporary_home import wait_for
from deskhand.types.errors import JobInvalid, NoSuchJob
from deskhand.types.events import CommandRun
from deskhand.types.identity import Principal
from deskhand.types.jobs import Job
from deskhand.types.labels import UNTRUSTED, Label
from deskhand.types.messages import Text

from .seen import messages, of_people, states, texts, truth

OWNER = Principal("owner", ("owner",))


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
        assert (
            message.message.text.endswith("Say hello.") and "send_message" in message.message.text
        )
        assert message.message.parts == (
            Text(message.message.text, Label("tool_local", None, "job:hello")),
        )
        await desk.pass_time(app, 60)
        await desk.ended(app, "hello", 2)
        view = await app.features.jobs.api.get(OWNER, "hello")
        assert (
            view.counters.runs == 2
            and view.last_result == "success"
            and view.next_at == 1700000160.0
        )
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
        assert (
            await states(app, "day") == []
            and (await app.features.jobs.api.get(OWNER, "day")).next_at == 1700086200.0
        )


async def test_a_text_is_delivered_without_a_model(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    channel = MemoryChannel()
    desk.write(
        "tea", "daily 22:14", "Tea time.", kind="deliver", to="memory:7", delete_after_run=True
    )
    async with desk.running([channel]) as app:
        await desk.pass_time(app, 60)
        await wait_for(lambda: truth(texts(channel) == [("7", "Tea time.")]))
        events = [e.event for e in await app.store.events("default/memory:7")]
        assert [e.reply for e in events if isinstance(e, CommandRun)] == ["Tea time."]
        assert not desk.model.requests and not (desk.jobs / "tea").exists()
        assert await states(app, "tea") == ["done"]


async def test_an_answer_goes_where_it_is_wanted(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    channel = MemoryChannel()
    desk.write("own", "every 1m", to="memory:7")
    desk.write("chat", "every 1m", to="memory:8", session="chat")
    desk.write("fixed", "every 1m", session="news")
    async with desk.running([channel]) as app:
        await desk.pass_time(app, 60)
        for name in ("own", "chat", "fixed"):
            await desk.ended(app, name)
        await wait_for(lambda: truth(sorted(texts(channel)) == [("7", "done"), ("8", "done")]))
        sessions = [
            (await list_runs(app.store, name, 20))[0].session for name in ("own", "chat", "fixed")
        ]
        assert sessions == [
            "default/job:own:1700000040",
            "default/memory:8",
            "default/web:owner:news",
        ]
        await desk.pass_time(app, 60)
        await desk.ended(app, "fixed", 2)
        assert len(await messages(app, "default/web:owner:news")) == 2


async def test_a_job_has_its_own_model_steps_and_tools(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path, defaults={"models": ["scripted/usual"]})
    desk.write(
        "j",
        "every 1m",
        model="scripted/cheap",
        steps=3,
        tokens=9000,
        tools=["read_*", "tool_search"],
    )
    async with desk.running() as app:
        await desk.pass_time(app, 60)
        run = await desk.ended(app, "j")
        request = desk.model.requests[0]
        assert request.model == "cheap"
        assert {tool.name for tool in request.tools} and all(
            tool.name.startswith("read_") for tool in request.tools
        )
        agent = app.features.agent_in_session(run.session, app.current.agent_of(run.session))
        assert (agent.limits.steps, agent.limits.tokens, agent.models) == (
            3,
            9000,
            ("scripted/cheap",),
        )
        other = app.features.agent_in_session(
            "default/web:owner:1", app.current.agent_of("default")
        )
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
        assert (await desk.ended(app, "nobodys")).said.startswith(
            "`for: bob` names nobody who is known here"
        )


async def test_somebody_runs_it(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    desk.write("j", "daily 09:00")
    async with desk.running() as app:
        slot = await app.features.jobs.api.run(OWNER, "j")
        run = await desk.ended(app, "j")
        assert (run.slot, run.state) == (slot, "done") and slot.endswith(" by owner")
        with pytest.raises(NoSuchJob, match="there is no job 'x'"):
            await app.features.jobs.api.run(OWNER, "x")


async def test_an_event_starts_it_once(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    desk.write("j", prompt="Look at this.", on=["webhook"])
    async with desk.running() as app:
        jobs = app.features.jobs.scheduler
        payload = Text("<event>the door is open</event>", UNTRUSTED)
        assert await jobs.trigger("j", "webhook 1", payload) and not await jobs.trigger(
            "j", "webhook 1", payload
        )
        run = await desk.ended(app, "j")
        (message,) = await messages(app, run.session)
        assert message.message.parts[-1] == payload
        assert not await jobs.trigger("j", "webhook 1", payload)
        assert await jobs.trigger("j", "webhook 2", payload)
        await desk.ended(app, "j", 2)
        sessions = {each.session for each in await list_runs(app.store, "j", 20)}
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
        jobs = app.features.jobs
        jobs.runs.chores["sweep"] = sweep
        jobs.files.builtins.append(
            lambda: [Job("sweeper", kind="chore", chore="sweep", schedule="every 1m")]
        )
        jobs.files.builtins.append(
            lambda: [Job("wrong", kind="chore", chore="sweep", schedule="sometimes")]
        )
        await desk.look(app)
        await desk.pass_time(app, 60)
        run = await desk.ended(app, "sweeper")
        assert (run.state, run.said) == ("done", "swept") and not desk.model.requests
        view = await jobs.api.get(OWNER, "sweeper")
        assert view.builtin and view.counters.runs == 1
        assert "is no schedule" in (await jobs.api.get(OWNER, "wrong")).problem
        await desk.pass_time(app, 60)
        assert (
            await desk.ended(app, "sweeper", 2)
        ).said == "unexpected error (RuntimeError: no broom)"
        await desk.pass_time(app, 60)
        await desk.ended(app, "sweeper", 3)  # the clock goes on


async def test_jobs_are_written_switched_and_removed(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    async with desk.running() as app:
        jobs = app.features.jobs.api
        await jobs.create(OWNER, Job("a", "Do it.", schedule="every 1m"))
        path = desk.jobs / "a" / "JOB.md"
        assert path.stat().st_mode & 0o777 == 0o600
        desk.clock.at = path.stat().st_mtime
        await desk.look(app)
        await desk.pass_time(app, 60)
        await desk.ended(app, "a")
        await jobs.set_enabled(OWNER, "a", False)
        assert (await jobs.get(OWNER, "a")).next_at is None
        await jobs.remove(OWNER, "a")
        assert await of_people(app) == [] and not (desk.jobs / "a").exists()
        for job, told in (
            (Job("../b", "x"), "cannot name a job"),
            (Job("b", "x", schedule="at 2020-01-01"), "is in the past"),
            (Job("b", "x", agent="nobody"), "there is no agent 'nobody'; there are: default"),
            (Job("b", "x", session="other/web:1"), "belongs to another agent"),
            (Job("b", ""), "it has no text"),
        ):
            with pytest.raises(JobInvalid, match=told):
                await jobs.create(OWNER, job)
        with pytest.raises(NoSuchJob, match="there is no job 'zz'"):
            await jobs.set_enabled(OWNER, "zz", True)
