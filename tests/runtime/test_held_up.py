"""A conversation that cannot go on: the person is told why, and may go on afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.config.config import Config, Home, Settings
from deskhand.runtime.app import OWNER, App, Parts, open_app
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.commit import Commit
from deskhand.types.door import Progress
from deskhand.types.errors import StoreCorrupt, StoreFull
from deskhand.types.events import Recorded, TurnEnded
from deskhand.types.identity import Address, Inbound, Said
from deskhand.types.messages import Message, Text

CONFIG = msgspec.convert({"defaults": {"models": ["scripted/x"]}}, Config)
SESSION = "default/terminal:t"


class Faulty(SqliteStore):
    """Raises these, one for each commit, and then works again."""

    def __init__(self, path: Path, statements: Mapping[str, str], faults: list[Exception]) -> None:
        super().__init__(path, statements)
        self._faults = faults

    async def commit(self, commit: Commit) -> int:
        if self._faults:
            raise self._faults.pop(0)
        return await super().commit(commit)


async def followed(home: Path, faults: list[Exception]) -> list[Recorded | Progress]:
    """Say something, and return what is seen up to the end of the turn."""
    model = ScriptedModel(lambda request: say("fine"))
    parts = Parts(
        lambda name: model, {}, store=lambda path, statements: Faulty(path, statements, faults)
    )
    seen: list[Recorded | Progress] = []
    async with (
        open_app(Settings(Home(home), CONFIG), parts) as app,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(app.run)
        try:
            with anyio.fail_after(50):
                seen = await _until_the_end(app)
        finally:
            tasks.cancel_scope.cancel()
    return seen


async def _until_the_end(app: App) -> list[Recorded | Progress]:
    seen: list[Recorded | Progress] = []
    said = Said(Message("user", (Text("hello"),)))
    receipt = await app.door.submit(
        Inbound(str(id(said)), Address("terminal", chat="t"), "owner", 1.0, said)
    )
    async with aclosing(app.door.follow(SESSION, OWNER, receipt.after)) as items:
        async for item in items:
            seen.append(item)
            if isinstance(item, Recorded) and isinstance(item.event, TurnEnded):
                break
    return seen


def the_end(seen: list[Recorded | Progress]) -> TurnEnded:
    last = seen[-1]
    assert isinstance(last, Recorded) and isinstance(last.event, TurnEnded)
    return last.event


async def test_what_breaks_five_times_is_given_up_in_words(tmp_path: Path) -> None:
    """The class of the error and the first 300 characters of its text; and the next message is
    answered."""
    end = the_end(await followed(tmp_path, [ValueError("x" * 400) for _ in range(5)]))
    assert end.reason == "dead" and len(end.answers) == 1
    assert end.said == f"Sorry, I encountered an error and gave this up: ValueError: {'x' * 300}"
    assert the_end(await followed(tmp_path, [])).reason == "done"


async def test_a_disk_without_room_is_told_while_it_waits(tmp_path: Path) -> None:
    faults: list[Exception] = [
        StoreFull("no space left for 'x': free some space") for _ in range(3)
    ]
    seen = await followed(tmp_path, faults)
    told = {item.text for item in seen if isinstance(item, Progress) and item.kind == "status"}
    assert told == {"no space left for 'x': free some space"} and the_end(seen).reason == "done"


async def test_a_damaged_database_ends_the_waiting(tmp_path: Path) -> None:
    with pytest.raises(BaseExceptionGroup) as raised:
        await followed(
            tmp_path, [StoreCorrupt("'x' is damaged: restore a backup") for _ in range(10)]
        )
    assert raised.group_contains(StoreCorrupt, match="restore a backup")
    assert the_end(await followed(tmp_path, [])).reason == "done"
