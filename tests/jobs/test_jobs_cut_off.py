"""What was going on when the process ended: marked, and decided by the policy of the job."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import anyio
import pytest

from deskhand.jobs.ledger import list_runs
from deskhand.models.base import Item, Reply, Request
from deskhand.runtime.app import App
from deskhand.testing.jobs import JobDesk
from deskhand.testing.scripted import say
from deskhand.testing.temporary_home import wait_for
from deskhand.types.events import MessageReceived
from deskhand.types.jobs import Job
from deskhand.users.user_cache import OWNER

ONCE = '#!/bin/sh\necho x >> state/runs; test "$(wc -l < state/runs)" -ge {} || sleep 60\n'


async def is_in(app: App, state: str) -> bool:
    return [run.state for run in await list_runs(app.store, "j", 20)][:1] == [state]


def started(desk: JobDesk, times: int) -> bool:
    path = desk.jobs / "j" / "state" / "runs"
    return path.exists() and path.read_text().count("x") == times


async def begun(desk: JobDesk, times: int) -> bool:
    return started(desk, times)


def desk_with(home: Path, hook: str, slow_until: int, **front: str) -> JobDesk:
    """A job whose hook hangs until it was begun so often. Storms of starts are not looked for."""
    desk = JobDesk(home, jobs={"storm_starts": 0})
    desk.write("j", "every 1h", hooks={hook: "hook.sh"}, **front)
    desk.hook("j", "hook.sh", ONCE.format(slow_until))
    return desk


@pytest.mark.parametrize(
    ("misfire", "state", "runs"),
    [("run_once", "done", 2), ("run_all", "done", 2), ("skip", "interrupted", 1)],
)
async def test_cut_off_in_its_prerun(tmp_path: Path, misfire: str, state: str, runs: int) -> None:
    desk = desk_with(tmp_path, "prerun", 2, misfire=misfire)
    async with desk.running() as app:
        await desk.pass_time(app, 2800)
        await wait_for(partial(begun, desk, 1))
        assert await is_in(app, "checking")
    async with desk.running() as app:
        run = await desk.ended(app, "j")
        assert (run.state, started(desk, runs), len(desk.model.requests)) == (state, True, runs - 1)
        if state == "interrupted":
            assert run.said == "a restart interrupted it; it is not tried again"
            assert (await app.features.jobs.api.get(OWNER, "j")).last_result == "error"
        await desk.look(app)
        assert len(await list_runs(app.store, "j", 20)) == 1


async def test_after_three_times_it_is_given_up(tmp_path: Path) -> None:
    desk = desk_with(tmp_path, "prerun", 9)
    async with desk.running() as app:
        await desk.pass_time(app, 2800)
        await wait_for(partial(begun, desk, 1))
    for times in (2, 3):
        async with desk.running() as app:
            await wait_for(partial(begun, desk, times))
    async with desk.running() as app:
        run = await desk.ended(app, "j")
        assert (run.state, run.attempts, started(desk, 3)) == ("interrupted", 3, True)
        assert run.said == "a restart interrupted it for the 3rd time; it is not tried again"


async def test_a_postrun_is_not_repeated(tmp_path: Path) -> None:
    desk = desk_with(tmp_path, "postrun", 9)
    async with desk.running() as app:
        await desk.pass_time(app, 2800)
        await wait_for(partial(begun, desk, 1))
        assert await is_in(app, "finishing")
    async with desk.running() as app:
        run = await desk.ended(app, "j")
        assert (run.state, started(desk, 1)) == ("interrupted", True)
        assert run.said == "a restart interrupted its postrun, which may or may not have finished"


class Hanging:
    """A model that answers in its second life."""

    def __init__(self) -> None:
        self.calls = 0
        self.slow = True

    async def reply(self, request: Request) -> AsyncIterator[Item]:
        self.calls += 1
        if self.slow:
            await anyio.sleep_forever()
        yield Reply(say("at last"), "stop")


async def test_the_conversation_goes_on_by_itself(tmp_path: Path) -> None:
    """What is handed in is in the log: it is the same run, and the same message."""
    desk = JobDesk(tmp_path)
    model = Hanging()
    desk.model = model  # type: ignore[assignment]
    desk.write("j", "every 1h", hooks={"postrun": "hook.sh"})
    desk.hook("j", "hook.sh", "#!/bin/sh\ncat > state/answer\n")
    async with desk.running() as app:
        await desk.pass_time(app, 2800)
        await wait_for(lambda: _called(model))
        assert await is_in(app, "running")
    model.slow = False
    async with desk.running() as app:
        run = await desk.ended(app, "j")
        assert (run.state, run.said, run.attempts) == ("done", "at last", 1)
        events = [each.event for each in await app.store.events(run.session)]
        assert sum(isinstance(event, MessageReceived) for event in events) == 1
        assert (desk.jobs / "j" / "state" / "answer").read_text() == "at last"
        assert (await app.features.jobs.api.get(OWNER, "j")).counters.runs == 1


async def _called(model: Hanging) -> bool:
    return model.calls > 0


async def test_a_chore_is_tried_again(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path, jobs={"storm_starts": 0})
    did = list[int]()
    desk.write("j", "every 1h", kind="chore", chore="sweep")

    async def chore(job: Job) -> str:
        did.append(1)
        if len(did) == 1:
            await anyio.sleep_forever()
        return "swept"

    def prepare(app: App) -> None:
        app.features.jobs.runs.chores["sweep"] = chore

    async with desk.running(prepare=prepare) as app:
        await desk.pass_time(app, 2800)
        await wait_for(lambda: _truth(bool(did)))
    async with desk.running(prepare=prepare) as app:
        run = await desk.ended(app, "j")
        assert (run.state, run.said, run.attempts, len(did)) == ("done", "swept", 2, 2)


async def _truth(value: bool) -> bool:
    return value


async def test_a_job_that_was_to_go_is_gone_after_a_crash_too(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    desk.write("j", "at 2023-11-14T22:14", delete_after_run=True)
    kept = (desk.jobs / "j" / "JOB.md").read_text()
    async with desk.running() as app:
        await desk.pass_time(app, 60)
        await desk.ended(app, "j")
        await wait_for(lambda: _truth(not (desk.jobs / "j").exists()))
    (desk.jobs / "j").mkdir()
    (desk.jobs / "j" / "JOB.md").write_text(kept)  # as if it had been killed before
    os.utime(desk.jobs / "j" / "JOB.md", (1700000000, 1700000000))
    async with desk.running() as app:
        await desk.look(app)
        assert not (desk.jobs / "j").exists() and len(await list_runs(app.store, "j", 20)) == 1
    (desk.jobs / "j").mkdir()
    (desk.jobs / "j" / "JOB.md").write_text(
        kept.replace("22:14", "23:59")
    )  # a new one of that name stays
    async with desk.running() as app:
        await desk.look(app)
        assert (desk.jobs / "j").exists()
