"""A Deskhand for one command beside what belongs to channels: it leaves alone what it was not asked
for."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec

from deskhand.cli.temporary_app import is_terminal_session
from deskhand.config.config import Config, Home, Settings
from deskhand.runtime.app import App, Parts, open_app
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.errors import ChannelError
from deskhand.types.identity import Address, Inbound, Principal, Said, session_key
from deskhand.types.messages import Message, Text

ANN = Principal("ann", ("owner",))
CONFIG = msgspec.convert({"defaults": {"models": ["scripted/echo"]}}, Config)
OPEN = "default/memory:open"


class Down(MemoryChannel):
    """Takes no answer now."""

    async def send(self, outgoing: object, mark: str) -> str:
        raise ChannelError("the platform is down", retry_after_s=0, unsent=True)


@asynccontextmanager
async def opened(home: Path, *channels: MemoryChannel) -> AsyncIterator[App]:
    model = ScriptedModel(lambda request: say("fine"))
    parts = Parts(lambda name: model, {}, {}, channels, lambda inbound: ANN)
    async with open_app(Settings(Home(home), CONFIG), parts) as app:
        yield app


async def submit(app: App, address: Address, text: str) -> None:
    said = Said(Message("user", (Text(text),)))
    receipt = await app.door.submit(Inbound(text, address, "ann", 1.0, said))
    assert receipt.status == "accepted"


async def ask(home: Path, *args: str) -> str:
    """The real process."""
    argv = [sys.executable, "-m", "deskhand", "ask", "-m", "scripted/echo", *args]
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "DESKHAND_HOME": str(home)}
    return (await anyio.run_process(argv, env=env, stdin=subprocess.DEVNULL)).stdout.decode()


async def open_and_due(app: App) -> tuple[set[str], int]:
    """The sessions in which something is owed, and how many answers."""
    rows = await app.store.open_sessions()
    return {row.session for row in rows}, len(await app.store.outbox_due(1e12, 10))


async def states(app: App) -> list[str]:
    return [row.state for row in await app.store.outbox_due(1e12, 10)]


async def until_owed(app: App, sessions: set[str], answers: int) -> None:
    with anyio.fail_after(30):
        while await open_and_due(app) != (sessions, answers):
            await anyio.sleep(0.01)


async def test_ask_leaves_the_conversations_of_channels_alone(tmp_path: Path) -> None:
    """One message and one answer of a channel wait, while `ask` runs in a process of its own, and
    afterwards."""
    down = Down()
    async with opened(tmp_path, down) as app:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(app.run)
            down.write("hello", chat="owed")
            await until_owed(app, set(), 1)
            with anyio.fail_after(
                30
            ):  # until it was tried and refused: a send that is cut off would be in doubt
                while (await app.store.outbox_due(1e12, 1))[0].attempts < 1 or await states(
                    app
                ) != ["pending"]:
                    await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
        await submit(app, Address("memory", chat="open"), "and I?")
        assert await open_and_due(app) == ({OPEN}, 1)
        assert await ask(tmp_path, "hi") == "You said: hi\n"
        assert await open_and_due(app) == ({OPEN}, 1)
        assert await states(app) == ["pending"]
        assert await ask(tmp_path, "-s", OPEN, "go on")
    channel = MemoryChannel()
    async with opened(tmp_path, channel) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.run)
        await until_owed(app, set(), 0)
        tasks.cancel_scope.cancel()
    assert {outgoing.address.chat for outgoing, _ in channel.sent} == {"open", "owed"}
    assert all(not mark for _, mark in channel.sent)


async def test_what_comes_in_meanwhile_is_left_to_others(tmp_path: Path) -> None:
    """While a chat drives, another process accepts something of a channel; and something of a
    terminal."""
    async with (
        opened(tmp_path) as chat,
        opened(tmp_path) as other,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(lambda: chat.run(takes=is_terminal_session))
        with anyio.fail_after(30):
            while not chat.dispatch.is_driving:
                await anyio.sleep(0.01)
        await submit(other, Address("memory", chat="open"), "of a channel")
        await submit(other, Address("terminal", chat="t"), "of a terminal")
        await until_owed(chat, {OPEN}, 0)
        assert len(await chat.store.list_waiting(OPEN)) == 1
        chat.dispatch.adopt(OPEN)  # somebody opens it here
        await until_owed(chat, set(), 1)
        await submit(other, Address("memory", chat="open"), "once more")
        await until_owed(chat, set(), 2)
        tasks.cancel_scope.cancel()


async def test_a_conversation_is_adopted_before_we_drive(tmp_path: Path) -> None:
    async with opened(tmp_path) as app:
        await submit(app, Address("memory", chat="open"), "hello")
    async with opened(tmp_path) as app, anyio.create_task_group() as tasks:
        app.dispatch.adopt(OPEN)
        tasks.start_soon(lambda: app.run(takes=is_terminal_session))
        await until_owed(app, set(), 1)
        tasks.cancel_scope.cancel()


def test_whose_conversation_it_is() -> None:
    assert is_terminal_session(session_key("default", Address("terminal", chat="a:b")))
    assert is_terminal_session(session_key("main", Address("terminal")))
    assert not is_terminal_session(
        session_key("terminal", Address("telegram", "bot", "terminal:1"))
    )
