"""The tool `manage_job`: jobs as their files describe them, with scripts that wait for a person to
fill them in."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from deskhand.assembly.judge import judge
from deskhand.jobs.authorization import MAX_JOBS
from deskhand.jobs.blueprints import BLUEPRINTS
from deskhand.jobs.cron_tool import NAME as CRON
from deskhand.jobs.manage_tool import NAME as MANAGE
from deskhand.jobs.manage_tool import ManageJob, write_hook_stubs
from deskhand.policy.checks import AgentPolicy
from deskhand.policy.jobs_from_untrusted import JOB_TOOLS
from deskhand.policy.permission_modes import PERMISSION_MODES, mode_rules
from deskhand.policy.rules import Case
from deskhand.store.queries import add_member
from deskhand.testing.jobs import JobDesk
from deskhand.tools.base import Context
from deskhand.types.errors import JobInvalid, NoSuchJob, Refused, ToolError
from deskhand.types.identity import Address, Principal
from deskhand.types.jobs import CHAT, Hooks, Job
from deskhand.types.labels import OWNER, Label

BOSS = Principal("owner", ("owner",))
ANN = Principal("ann", ("member",))
HERE = Address("memory", "", "1")
DAILY = (
    "---\nschedule: daily 09:00\nhooks: {prerun: scripts/check.sh, postrun: "
    "scripts/tell.sh}\n---\n\nLook around."
)


class Desk:
    """A Deskhand that runs, and its tool."""

    def __init__(self, home: Path) -> None:
        self.desk = JobDesk(home, memory={"enabled": False})
        self.app: Any = None

    async def do(self, who: Principal = BOSS, **arguments: Any) -> str:
        """What the model is told; an error begins with `!`."""
        tool = next(
            each for each in self.app.features.tools("default") if each.spec.name == "manage_job"
        )
        reach = await self.app.current.agent("default").workspace.open_scope()
        clock = self.app.parts.clock
        ids = self.app.parts.ids
        context = Context(
            session="default/memory:1",
            principal=who,
            address=HERE,
            agent="default",
            reach=reach,
            clock=clock,
            ids=ids,
            key="k",
        )
        try:
            outcome = await tool.run(msgspec.Raw(msgspec.json.encode(arguments)), context)
        except ToolError as error:
            return f"!{error}"
        return "".join(part.text for part in outcome.parts)


async def test_all_that_it_can_do(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    async with desk.desk.running() as desk.app:
        assert (await desk.do(action="create", name="look", config=DAILY)).startswith(
            "ok, look: at 09:00 every day (UTC); next: 2023-11-15 09:00 (UTC). Forecast: 30 "
            "runs in 30 days;"
        )
        folder = tmp_path / "jobs/look"
        for script in ("check.sh", "tell.sh"):
            path = folder / "scripts" / script
            assert path.read_text() == "#!/bin/sh\nexit 0\n" and os.access(path, os.X_OK)
        (folder / "scripts/check.sh").write_text("#!/bin/sh\nexit 1\n")
        assert "- look (on)" in await desk.do(action="list")
        changed = await desk.do(
            action="update", name="look", config=DAILY.replace("09:00", "10:30")
        )
        assert changed.startswith("ok, look: at 10:30 every day") and "Made" not in changed
        assert (folder / "scripts/check.sh").read_text().endswith("exit 1\n"), (
            "what a person wrote stays"
        )
        assert "it is off" in await desk.do(action="disable", name="look")
        assert "next:" in await desk.do(action="enable", name="look")
        assert await desk.do(action="delete", name="look") == (
            "ok, look is removed; a person brings it back with `deskhand jobs undo look`"
        )
        assert not folder.exists() and "- look" not in await desk.do(action="list")
        written = await desk.do(
            action="create", name="as-object", config={"schedule": "hourly", "prompt": "Count."}
        )
        assert written.startswith("ok, as-object:")
        assert (await desk.app.features.jobs.api.get(BOSS, "as-object")).job.prompt == "Count."


async def test_a_blueprint_in_a_chat_answers_there(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    async with desk.desk.running() as desk.app:
        told = await desk.do(action="blueprints")
        assert all(each.name in told for each in BLUEPRINTS)
        made = await desk.do(action="create", blueprint="weekly-review", slots={"days": "monday"})
        assert made.startswith("ok, weekly-review: at 16:00 on Monday (UTC)")
        job = (await desk.app.features.jobs.api.get(BOSS, "weekly-review")).job
        assert job is not None and (job.to, job.session, job.agent) == (HERE, CHAT, "default")
        wrong = await desk.do(action="create", blueprint="reminder", slots={"text": "x"})
        assert wrong == (
            "!'when' is missing: When? (such as 2027-01-31T17:00, or `every 2h`, or `daily "
            "09:00`, or a cron line)"
        )


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"action": "create", "name": "x"}, "in `config`"),
        ({"action": "create", "config": DAILY}, "in `name`"),
        ({"action": "create", "name": "x", "config": "look around"}, "front matter"),
        (
            {"action": "create", "name": "x", "config": "---\nschedule: [\n---\n\nx"},
            "cannot be read",
        ),
        (
            {"action": "create", "name": "x", "config": "---\nschedule: 0 25 * * *\n---\n\nx"},
            "hour",
        ),
        (
            {
                "action": "create",
                "name": "x",
                "config": "---\nschedule: hourly\nagent: nobody\n---\n\nx",
            },
            "no agent",
        ),
        ({"action": "create", "name": "x", "config": "---\nschedule: hourly\n---\n"}, "no text"),
        (
            {"action": "create", "name": "x", "config": DAILY.replace("scripts/check", "../../x")},
            "within the folder",
        ),
        (
            {"action": "create", "name": "x", "config": DAILY.replace("scripts/check", "/etc/x")},
            "within the folder",
        ),
        ({"action": "create", "name": "../x", "config": DAILY}, "cannot name a job"),
        ({"action": "create", "name": "a/b", "config": DAILY}, "cannot name a job"),
        ({"action": "create", "name": ".", "config": DAILY}, "cannot name a job"),
        ({"action": "create", "name": "x" * 65, "config": DAILY}, "cannot name a job"),
        ({"action": "update", "name": "none", "config": DAILY}, "no job 'none'"),
        ({"action": "delete", "name": "../../state"}, "no job"),
        ({"action": "delete", "name": "heartbeat"}, "part of Deskhand"),
        ({"action": "enable", "name": "heartbeat"}, "part of Deskhand"),
    ],
)
async def test_what_cannot_be_is_refused_in_a_sentence(
    tmp_path: Path, arguments: dict[str, Any], why: str
) -> None:
    desk = Desk(tmp_path)
    async with desk.desk.running() as desk.app:
        text = await desk.do(**arguments)
        assert text.startswith("!") and why in text, text
        assert not (tmp_path / "jobs").exists() or not list((tmp_path / "jobs").iterdir())


def test_no_script_is_placed_over_another_or_through_a_link(tmp_path: Path) -> None:
    folder = tmp_path / "jobs/x"
    outside = tmp_path / "outside"
    folder.mkdir(parents=True)
    outside.mkdir()
    (folder / "scripts").symlink_to(outside)
    with pytest.raises(JobInvalid, match="cannot be made"):
        write_hook_stubs(folder, Job("x", hooks=Hooks("scripts/check.sh")))
    assert list(outside.iterdir()) == []
    (folder / "own.sh").symlink_to(outside / "new.sh")
    assert write_hook_stubs(folder, Job("x", hooks=Hooks("own.sh"))) == ""
    assert list(outside.iterdir()) == []
    assert write_hook_stubs(folder, Job("x", hooks=Hooks("a/b.sh", "../../y.sh"))).startswith(
        " Made a/b.sh, which"
    )
    assert not (tmp_path / "y.sh").exists()


def test_the_gate_asks_whatever_the_rules_say(tmp_path: Path) -> None:
    tool = ManageJob(None, tmp_path)

    def case(context: Label, **arguments: Any) -> Case:
        raw = msgspec.json.encode(arguments)
        return Case(
            "default", "manage_job", tool.effect_of(msgspec.Raw(raw), HERE), BOSS, context, raw
        )

    create = {"action": "create", "name": "x", "config": DAILY}
    for mode in PERMISSION_MODES:
        policy = AgentPolicy(mode_rules(mode))
        assert judge(case(Label(), action="list"), policy).verdict == "allow"
        assert judge(case(Label(), action="blueprints"), policy).verdict == "allow"
        for action in ("create", "update", "delete", "enable", "disable"):
            wanted = "deny" if mode == "read-only" else "ask"
            decision = judge(case(Label(), **{**create, "action": action}), policy)
            assert decision.verdict == wanted, (mode, action)
    policy = AgentPolicy()
    assert judge(case(OWNER, **create), policy).verdict == "allow"
    elsewhere = DAILY.replace("---\ns", "---\nto: mail:9\ns", 1)
    assert judge(case(OWNER, **{**create, "config": elsewhere}), policy).verdict == "ask", (
        "another chat"
    )
    here = DAILY.replace("---\ns", "---\nto: memory:1\ns", 1)
    assert judge(case(OWNER, **{**create, "config": here}), policy).verdict == "allow"


async def test_nobody_has_too_many_and_no_name_is_taken_twice(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    for number in range(60):
        desk.write(f"j{number}", "hourly", **{"for": "bob"})
    async with desk.opened() as app:
        jobs = app.features.jobs.api
        for number in range(MAX_JOBS):
            desk.write(f"a{number}", "hourly", **{"for": "ann"})
        with pytest.raises(Refused, match="50 jobs already"):
            await jobs.create(ANN, Job("more", "x", schedule="hourly"))
        assert len(await jobs.list_jobs(ANN)) == MAX_JOBS
        took = list[str]()

        async def take(who: Principal) -> None:
            try:
                await jobs.create(who, Job("one", "x", schedule="hourly"))
                took.append(who.id)
            except Refused:
                pass

        await jobs.remove(ANN, "a0")
        async with anyio.create_task_group() as tasks:
            for who in (ANN, BOSS, Principal("bob", ("member",)), BOSS):
                tasks.start_soon(take, who)
        assert len(took) == 1, "of those who want a name at one time, one has it"


async def test_whose_a_job_is_stays(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    async with desk.opened() as app:
        jobs = app.features.jobs.api
        await jobs.create(ANN, Job("hers", "x", schedule="hourly"))
        view = await jobs.create(BOSS, Job("his", "x", schedule="hourly", person="ann"))
        assert view.job is not None and view.job.person == "ann", "an owner makes jobs for others"
        view = await jobs.change(BOSS, Job("hers", "y", schedule="hourly"))
        assert view.job is not None and view.job.person == "ann"
        desk.write("mine", "hourly")
        for who in (ANN, Principal("job:hers", ("member",), "clock", "ann")):
            with pytest.raises(NoSuchJob):
                await jobs.get(who, "mine")
        await app.store.change([add_member("default/memory:ann", "ann")])
        for to, fine in (
            (Address("memory", "", "ann"), True),
            (Address("memory", "", "bob"), False),
        ):
            job = Job("t", "x", schedule="hourly", to=to, session=CHAT)
            if fine:
                await jobs.validate(ANN, job)
            else:
                with pytest.raises(Refused, match="take part"):
                    await jobs.validate(ANN, job)
        for person, fine in (("ann", True), ("owner", False)):
            job = Job("t", "x", schedule="hourly", to=Address("web", person, "notes"))
            if fine:
                await jobs.validate(ANN, job)
            else:
                with pytest.raises(Refused, match="take part"):
                    await jobs.validate(ANN, job)


def test_tools_that_make_jobs_are_known_to_the_policy() -> None:
    """By their names: the rooms below know nothing of jobs."""
    assert {MANAGE, CRON} == JOB_TOOLS
