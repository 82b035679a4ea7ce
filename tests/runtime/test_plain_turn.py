"""What a plain turn asks of the database: what it costs grows with every statement that somebody
adds to it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

import anyio
import apsw
import msgspec
import pytest

from deskhand.config.config import Config, Home, Settings
from deskhand.models.openai import OpenAIModel
from deskhand.models.settings import Facts, ModelSpec
from deskhand.models.transport import Transport
from deskhand.runtime.app import OWNER, App, Parts, open_app
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.events import MessageDelivered, MessageReceived, ModelReplied, TurnEnded
from deskhand.types.identity import Address, Inbound, Said
from deskhand.types.messages import Message, Text

SESSION = "default/memory:1"
TURNS = 30
FIRST_REQUEST_BYTES = 8_000
FIRST_TOOLS_BYTES = 5_710
"""So long are the first request of a conversation and the tools in it: they may become shorter."""
BEGINNINGS = 40
"""So many characters say which statement it is."""


@pytest.fixture
def ran() -> Iterator[Counter[tuple[bool, str]]]:
    """How often each statement ran: whether it was in the thread that writes, and how it begins."""
    found: Counter[tuple[bool, str]] = Counter()

    def trace(event: dict[str, object]) -> None:
        writing = threading.current_thread().name == "deskhand-writer"
        found[writing, " ".join(str(event["sql"]).split())[:BEGINNINGS]] += 1

    def watch(db: apsw.Connection) -> None:
        db.trace_v2(apsw.SQLITE_TRACE_STMT, trace)

    apsw.connection_hooks.append(watch)
    yield found
    apsw.connection_hooks.remove(watch)


async def turn(app: App, number: int) -> None:
    said = Said(Message("user", (Text("hello"),)))
    receipt = await app.door.submit(
        Inbound(f"i{number}", Address("terminal", chat="x"), "owner", number, said)
    )
    async with aclosing(app.door.follow(receipt.session, OWNER, receipt.after)) as items:
        async for item in items:
            if isinstance(getattr(item, "event", None), TurnEnded):
                return


def settings_at(home: Path) -> Settings:
    config = msgspec.convert({"defaults": {"models": ["scripted/x"]}}, Config, strict=False)
    return Settings(Home(home), config)


def often(ran: Counter[tuple[bool, str]]) -> dict[tuple[bool, str], int]:
    """The statements of each turn, without those that look about whoever talks."""
    polled = ("PRAGMA data_version", "SELECT id, session, body FROM inbox WHERE")
    return {
        key: round(n / TURNS)
        for key, n in ran.items()
        if n >= TURNS and not key[1].startswith(polled)
    }


async def test_what_a_plain_turn_asks_of_the_database(
    tmp_path: Path, ran: Counter[tuple[bool, str]]
) -> None:
    """Two commits, and few questions: what goes on beside conversations adds none where nobody uses
    it."""
    model = ScriptedModel(lambda request: say("Fine."))
    parts = Parts(lambda name: model, {}, authorize=lambda inbound: OWNER)
    async with (
        open_app(settings_at(tmp_path / "h"), parts) as app,
        anyio.create_task_group() as tasks,
    ):
        ready = anyio.Event()
        tasks.start_soon(app.run, ready.set)
        await ready.wait()
        for number in range(3):
            await turn(app, number)
        ran.clear()
        for number in range(TURNS):
            await turn(app, 10 + number)
        counted = often(ran)
        tasks.cancel_scope.cancel()
    assert {statement: n for (writing, statement), n in counted.items() if writing} == {
        "BEGIN IMMEDIATE": 2,
        "COMMIT": 2,
        "SELECT n, hash FROM event WHERE session ": 2,
        "INSERT INTO event(session, n, at, kind, ": 3,
        "INSERT INTO inbox(channel, account, exte": 1,
        "INSERT INTO session(session, agent, chan": 1,
        "INSERT INTO session_member(session, prin": 1,
        "INSERT INTO open_session(session, wake_a": 1,
        "INSERT INTO budget_used(scope, name, day": 1,
        "UPDATE session SET turns = turns + 1, la": 1,
        "DELETE FROM open_session WHERE session =": 1,
    }
    assert {statement: n for (writing, statement), n in counted.items() if not writing} == {
        "SELECT seq, session, n, at, kind, body F": 1,  # who follows it
        "SELECT path, label, NULL FROM file_label": 1,  # what is held back
        "SELECT coalesce((SELECT seq FROM sqlite_": 2,  # whether a fact has changed
    }


async def test_how_long_a_first_request_is(tmp_path: Path) -> None:
    """As it is posted to an OpenAI-compatible server, with the usual tools, from a home whose path
    is not as long as that of a test."""
    home = tmp_path / "h"
    model = ScriptedModel(lambda request: say("Fine."))
    parts = Parts(lambda name: model, authorize=lambda inbound: OWNER)
    async with open_app(settings_at(home), parts) as app, anyio.create_task_group() as tasks:
        ready = anyio.Event()
        tasks.start_soon(app.run, ready.set)
        await ready.wait()
        await turn(app, 0)
        tasks.cancel_scope.cancel()
    facts = Facts(window=200_000, max_output=8_192)
    spec = ModelSpec("fake", "a-model-of-somebody", "http://127.0.0.1/v1", facts)
    body = await OpenAIModel(Transport(), spec).encode_request(model.requests[0])
    body = body.replace(str(home).encode(), b"/home/somebody/.deskhand")
    sent = msgspec.json.decode(body)
    lengths = {tool["function"]["name"]: len(msgspec.json.encode(tool)) for tool in sent["tools"]}
    assert len(msgspec.json.encode(sent)) == len(body), "there is no blank in it"
    assert len(msgspec.json.encode(sent["tools"])) <= FIRST_TOOLS_BYTES, lengths
    assert len(body) <= FIRST_REQUEST_BYTES, lengths


async def test_a_plain_turn_on_a_channel_has_two_commits_too(
    tmp_path: Path, ran: Counter[tuple[bool, str]]
) -> None:
    """That the answer before was delivered is written with the reply, not before the model is
    asked."""
    model, channel = ScriptedModel(lambda request: say("Fine.")), MemoryChannel()
    parts = Parts(lambda name: model, channels=(channel,), authorize=lambda inbound: OWNER)
    async with (
        open_app(settings_at(tmp_path / "h"), parts) as app,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(app.run)

        async def answered() -> None:
            before = await app.store.list_delivered(SESSION)
            channel.write("hello")
            with anyio.fail_after(10):
                while (now := await app.store.list_delivered(SESSION)) == before or len(now) != 1:
                    await anyio.sleep(0.002)

        for _ in range(3):
            await answered()
        ran.clear()
        for _ in range(TURNS):
            await answered()
        counted = often(ran)
        log = await app.store.events(SESSION)
        tasks.cancel_scope.cancel()
    commits = counted[True, "SELECT n, hash FROM event WHERE session "]
    assert commits == 2, "each commit of a session reads its head once"
    kinds = [type(each.event) for each in log[4:]]
    turn_of = [MessageReceived, MessageDelivered, ModelReplied, TurnEnded]
    assert kinds[-3 * len(turn_of) :] == 3 * turn_of
