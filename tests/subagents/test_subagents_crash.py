"""Whenever the process dies, each task is given once and its end told once; and a stop holds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from deskhand.runtime.app import App
from deskhand.sandbox.choose import Proven, open_sandbox
from deskhand.subagents.queries import TaskEnd, mark_ended
from deskhand.testing.crash import Crash, Fuse, fused
from deskhand.testing.temporary_home import TemporaryHome, heard, results, wait_for
from deskhand.types.events import MessageReceived, ToolFinished
from deskhand.types.labels import LOCAL

from .working import PARENT, HoldingModel, answering, calls, desk_of, tasks_of, turn_ends

BELOW = calls(("spawn_agent", {"task": "below"}))
WANTED = calls(
    ("spawn_agent", {"task": BELOW}),
    ("spawn_agent", {"task": "beside", "agent": "explore"}),
    ("spawn_agent", {"task": "behind", "agent": "plan", "wait": False}),
)
Settled = Callable[[App], Awaitable[bool]]


async def _life(desk: TemporaryHome, fuse: Fuse, said: tuple[str, ...], settled: Settled) -> bool:
    """Hand the messages in, and live until all is settled. True when the fuse blew."""
    crashed = False
    try:
        async with desk.running(store=fused(fuse)) as app:
            for text in said:
                await desk.say(app, text, id_=f"the same again: {text}")
                if text != "/stop":
                    await wait_for(partial(_has_begun, app))
            await wait_for(partial(settled, app))
    except* Crash:
        crashed = True
    return crashed


async def _has_begun(app: App) -> bool:
    return bool(await turn_ends(app, 1)) or len(tasks_of(app)) >= 3


async def _is_settled(app: App) -> bool:
    return (
        len(await heard(app, PARENT)) == 1
        and not await app.store.query("subagent_open", ())
        and not await app.store.open_sessions()
    )


async def _through(home: Path, at: int, proven: Proven) -> bool:
    """Crash at this boundary, and come back. Returns whether it crashed."""
    desk = desk_of(home, proven)
    crashed = await _life(desk, Fuse(at), (WANTED,), _is_settled)
    if crashed:
        assert not await _life(desk, Fuse(), (WANTED,), _is_settled)
    async with desk.running() as app:
        assert len(await results(app, PARENT)) == 3
        told = [each for each in await results(app, PARENT) if "in the background" not in each]
        assert sorted(told) == ["Answer to 'beside'", "It says: Answer to 'below'"]
        assert [each.endswith("Answer to 'behind'") for each in await heard(app, PARENT)] == [True]
        for task in (*tasks_of(app), *tasks_of(app, tasks_of(app)[-1].session)):
            events = [each.event for each in await app.store.events(task.session)]
            given = [each for each in events if isinstance(each, MessageReceived)]
            assert len(given) == 1, (task.title, given)
            assert (task.state, task.told) == ("done", True)
    return crashed


@pytest.mark.timeout(180)
async def test_every_boundary(tmp_path: Path) -> None:
    proven = await open_sandbox()
    crashes = missed = at = 0
    while missed < 3:
        at += 1
        crashed = await _through(tmp_path / str(at), at, proven)
        crashes += crashed
        missed = 0 if crashed else missed + 1
    assert crashes >= 30


async def _is_stopped(app: App) -> bool:
    return (
        bool(await turn_ends(app, 1))
        and not any(task.is_live for task in tasks_of(app))
        and not await app.store.query("subagent_open", ())
        and not await app.store.open_sessions()
    )


@pytest.mark.timeout(180)
async def test_no_sub_agent_outlives_a_stop(tmp_path: Path) -> None:
    """Whenever the process dies after a stop was written down, all below it has ended in the
    end, and nobody is told anything more."""
    proven = await open_sandbox()
    crashes = missed = at = 0
    while missed < 3:
        at += 1
        desk = desk_of(tmp_path / str(at), proven)
        desk.model = HoldingModel(answering, anyio.Event(), task="b")
        said = (WANTED.replace("below", "b").replace("beside", "b").replace("behind", "b"), "/stop")
        crashed = await _life(desk, Fuse(at), said, _is_stopped)
        if crashed:
            assert not await _life(desk, Fuse(), said, _is_stopped)
        crashes += crashed
        missed = 0 if crashed else missed + 1
        async with desk.running() as app:
            await anyio.sleep(0.05)
            assert await _is_stopped(app)
            for task in tasks_of(app):
                for below in (task, *tasks_of(app, task.session)):
                    assert not below.is_live
                    assert set(await turn_ends(app, 0, below.session)) <= {"stopped"}
            finished = [each.event for each in await app.store.events(PARENT)]
            told = [each for each in finished if isinstance(each, ToolFinished)]
            assert all("in the background" in each.result.text for each in told)
            assert await heard(app, PARENT) == []
    assert crashes >= 30


async def test_a_row_that_was_read_earlier_ends_no_task_that_has_gone_on(tmp_path: Path) -> None:
    """The task was given since: it is stopped as what works is, and not taken for one that never
    began."""
    hold = anyio.Event()
    desk = desk_of(tmp_path, await open_sandbox())
    desk.model = HoldingModel(answering, hold)
    async with desk.running() as app:
        await desk.say(app, calls(("spawn_agent", {"task": "wait"})))
        await wait_for(partial(_works, app))
        read_earlier = replace(tasks_of(app)[0], state="wanted")
        end = TaskEnd("stopped", "somebody stopped it", LOCAL)
        await app.store.change((mark_ended(read_earlier, end, 1.0),))
        assert tasks_of(app)[0].state == "running"
        hold.set()
        await wait_for(partial(turn_ends, app, 1))
        assert (await results(app, PARENT))[-1] == "Answer to 'wait'"


async def _works(app: App) -> bool:
    return any(task.state == "running" for task in tasks_of(app))
