"""What comes in at the Door, however long and however odd."""

from __future__ import annotations

import gc
import time
from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.config.config import Config, Home, Settings
from deskhand.runtime.app import OWNER, App, Parts, open_app
from deskhand.store.queries import has_members
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.testing.temporary_home import TemporaryHome
from deskhand.types.events import CommandRun, MessageReceived, TurnEnded
from deskhand.types.identity import Address, Inbound, Principal, Receipt, Said
from deskhand.types.messages import Message, Text

MEGABYTE = 1_000_000
LONG = {
    "one letter": "a" * MEGABYTE,
    "blanks": "x" + " " * (MEGABYTE - 2) + "x",
    "a command": "/stop " + " " * (MEGABYTE - 7) + "x",
    "a long name": "/" + "a" * (MEGABYTE - 1),
    "bangs": "!" * MEGABYTE,
    "brackets": "[" * MEGABYTE,
    "lines": "\n" * (MEGABYTE - 1) + "x",
    "marks": "<think>" * (MEGABYTE // 7),
    "pictures": "👩\u200d" * (MEGABYTE // 2),
    "half pairs and zeros": "\ud800\0" * (MEGABYTE // 2),
}
TERMINAL = Address("terminal", chat="t")


async def submit(app: App, number: int, text: str) -> Receipt:
    said = Said(Message("user", (Text(text),)))
    return await app.door.submit(Inbound(str(number), TERMINAL, "owner", 1.0, said))


@pytest.mark.timeout(60)
async def test_a_megabyte_takes_no_time(tmp_path: Path) -> None:
    """Counted in the processor's time of this thread, so that a busy machine does not decide."""
    config = msgspec.convert({"defaults": {"models": ["scripted/x"]}}, Config, strict=False)
    model = ScriptedModel(lambda request: say("fine"))
    async with open_app(Settings(Home(tmp_path), config), Parts(lambda name: model, {})) as app:
        for number, (name, text) in enumerate(LONG.items()):
            gc.collect()
            began = time.thread_time()
            receipt = await submit(app, number, text)
            assert time.thread_time() - began < 0.5, name  # 20 ms where nothing else runs
            assert receipt.status == "accepted", name
        assert (await submit(app, 99, "a" * (MEGABYTE + 1))).status == "refused"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(app.run)
            with anyio.fail_after(50):
                while not model.requests or await app.store.open_sessions():
                    await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
        events = [recorded.event for recorded in await app.store.events("default/terminal:t")]
    taken = [event for event in events if isinstance(event, MessageReceived | CommandRun)]
    assert len(taken) == len(LONG) and isinstance(events[-1], TurnEnded)
    assert [event.name for event in taken if isinstance(event, CommandRun)] == ["stop"]
    assert OWNER.id == taken[0].principal.id


async def test_a_conversation_that_begins_between_two_looks_is_ones_own(tmp_path: Path) -> None:
    """It begins after the door has seen that this person is not in it, and before it looks whether
    anybody is."""
    bob = Principal("bob", ("member",))
    place = Address("web", account="bob", chat="x")
    begun, looked = anyio.Event(), anyio.Event()

    class Late(SqliteStore):
        """Tells the door what it saw once somebody is in the conversation."""

        async def may_see(self, principal: Principal, session: str) -> bool:
            found = await super().may_see(principal, session)
            if begun.is_set() and not looked.is_set():
                looked.set()
                while not await has_members(self, session):
                    await anyio.sleep(0.01)
            return found

    home = TemporaryHome(tmp_path)
    parts = home.parts(authorize=lambda inbound: bob, store=Late)
    async with open_app(home.settings, parts) as app, anyio.create_task_group() as tasks:

        async def write(text: str) -> str:
            body = Said(Message("user", (Text(text),)))
            return (await app.door.submit(Inbound(text, place, "bob", 1.0, body))).status

        assert await write("one") == "accepted"
        begun.set()
        answers: list[str] = []

        async def write_again() -> None:
            answers.append(await write("two"))

        tasks.start_soon(write_again)
        with anyio.fail_after(15):
            await looked.wait()
            tasks.start_soon(app.run)
            while not answers:
                await anyio.sleep(0.01)
        assert answers == ["accepted"]
        tasks.cancel_scope.cancel()
