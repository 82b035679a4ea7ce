"""A stop that comes while a task is being begun, or while its end is being told: nothing goes on
behind it, and nobody is told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import anyio

from deskhand.runtime.app import App
from deskhand.store.base import Accepted, Args, FirstCommit, Row
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.temporary_home import TemporaryHome, heard, wait_for
from deskhand.types.commit import Change, Commit
from deskhand.types.events import CommandRun
from deskhand.types.identity import Inbound, Principal, Result, Waiting

from .working import PARENT, calls, desk_of, tasks_of

Step = Callable[[], Awaitable[None]]


async def do_nothing() -> None:
    """Where a test lets something happen at once."""


class HeldStore(SqliteStore):
    """Does something before a result is put into the inbox, before a stop is written, while a tool
    looks how many work, and before it is read what waits."""

    def __init__(self, path: Path, statements: Mapping[str, str]) -> None:
        super().__init__(path, statements)
        self.before_result: Step = do_nothing
        self.before_stop: Step = do_nothing
        self.before_count: Step = do_nothing
        self.before_list: Step = do_nothing
        self.has_tried = anyio.Event()
        """Whether a result was put into the inbox, or could not be."""

    async def accept(
        self,
        inbound: Inbound,
        principal: Principal,
        session: str,
        first: FirstCommit | None = None,
        changes: Sequence[Change] = (),
    ) -> Accepted:
        if not isinstance(inbound.body, Result):
            return await super().accept(inbound, principal, session, first, changes)
        await self.before_result()
        try:
            return await super().accept(inbound, principal, session, first, changes)
        finally:
            self.has_tried.set()

    async def commit(self, commit: Commit) -> int:
        if any(isinstance(each, CommandRun) and each.name == "stop" for each in commit.events):
            await self.before_stop()
        return await super().commit(commit)

    async def query(self, statement: str, args: Args) -> list[Row]:
        if statement == "subagent_live":
            await self.before_count()
        return await super().query(statement, args)

    async def list_waiting(self, session: str) -> list[Waiting]:
        if session == PARENT:
            await self.before_list()
        return await super().list_waiting(session)


def held(app: App) -> HeldStore:
    assert isinstance(app.store, HeldStore)
    return app.store


async def begin_in_background(desk: TemporaryHome, app: App) -> None:
    await desk.say(app, calls(("subagents", {"action": "create", "task": "look"})))


async def is_stopped(app: App) -> bool:
    events = [each.event for each in await app.store.events(PARENT)]
    return any(isinstance(each, CommandRun) and each.name == "stop" for each in events)


async def is_settled(app: App) -> bool:
    return not await app.store.query("subagent_open", ()) and not await app.store.open_sessions()


async def test_an_end_that_is_about_to_be_told(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    is_about_to = anyio.Event()
    goes_on = anyio.Event()

    async def hold() -> None:
        is_about_to.set()
        await goes_on.wait()

    async with desk.running(store=HeldStore) as app:
        held(app).before_result = hold
        await begin_in_background(desk, app)
        await is_about_to.wait()
        await desk.say(app, "/stop")
        await wait_for(partial(is_stopped, app))
        goes_on.set()
        await held(app).has_tried.wait()
        await wait_for(partial(is_settled, app))
        assert await heard(app, PARENT) == []


async def test_an_end_that_is_told_while_the_stop_is_written(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    is_about_to = anyio.Event()
    goes_on = anyio.Event()

    async def hold() -> None:
        is_about_to.set()
        await goes_on.wait()

    async with desk.running(store=HeldStore) as app:

        async def let_it_tell() -> None:
            goes_on.set()
            await held(app).has_tried.wait()

        held(app).before_result = hold
        held(app).before_stop = let_it_tell
        await begin_in_background(desk, app)
        await is_about_to.wait()
        await desk.say(app, "/stop")
        await wait_for(partial(is_stopped, app))
        await wait_for(partial(is_settled, app))
        assert await heard(app, PARENT) == []


async def test_a_task_whose_call_is_not_yet_written(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    desk.model.latency_s = 1.0
    async with desk.running(store=HeldStore) as app:

        async def stop() -> None:
            held(app).before_list = do_nothing
            await desk.say(app, "/stop")

        async def write() -> None:
            held(app).before_count = do_nothing
            held(app).before_list = stop
            await desk.say(app, "how far are you?")

        held(app).before_count = write
        await begin_in_background(desk, app)
        await wait_for(partial(is_stopped, app))
        await wait_for(partial(is_settled, app))
        assert [task.state for task in tasks_of(app)] == ["stopped"]
        assert await heard(app, PARENT) == []
