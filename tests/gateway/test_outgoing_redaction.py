"""What leaves has no secret and no address that leads away, however a model wraps them, on each
surface."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from deskhand.models.base import Request
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.testing.telegram.server import TelegramServer
from deskhand.testing.wrappings import OF_ADDRESSES, OF_SECRETS, leaks
from deskhand.tools.base import Context, Done, Outcome
from deskhand.tools.define import tool
from deskhand.types.commit import Outgoing
from deskhand.types.labels import LOCAL, UNTRUSTED
from deskhand.types.messages import File, Message, Text, ToolCall

from ..channels.test_suite import live_text
from ..runtime.telegram_home import ANN, World, until
from ..web.served import serving

KEY = "kf-7Q2mXv9Lr4TzB81NcWeYpHs6"
OVER = "= end ="


@tool(effect="none", replay="commit")
async def hand_out(how: str, context: Context) -> Outcome:
    """Shows it while it runs, returns it, and sends a file of that name.

    how: in which wrapping
    """
    wrapped = OF_SECRETS[how](KEY)
    for at in range(0, len(wrapped), 7):
        context.emit(wrapped[at : at + 7])
    blob = await context.reach.host.put_blob(b"nothing")
    named = File(blob, f"{wrapped[:60].replace(';', '')}.txt", "text/plain", 7)
    halves = (Text(wrapped[: len(wrapped) // 2], LOCAL), Text(wrapped[len(wrapped) // 2 :], LOCAL))
    sent = Outgoing(f"{context.key}:send", context.address, (*halves, named))
    return Done(
        (Text(wrapped, LOCAL),), outbox=(sent,) if context.address.channel == "telegram" else ()
    )


def wrapping(request: Request) -> Message:
    """Calls a tool that is named like the secret, then the one that hands it out, and says it at
    last."""
    last = request.messages[-1].message
    how = "as it is"
    for shown in reversed(request.messages):
        text = shown.message.text
        if shown.message.role == "user" and "wrap: " in text:
            how = text.partition("wrap: ")[2].partition("\n")[0].strip()
            break
    if last.role != "tool":
        arguments = msgspec.Raw(msgspec.json.encode({"how": how}))
        wrapped = msgspec.Raw(msgspec.json.encode({"how": OF_SECRETS[how](KEY)}))
        return say("", ToolCall("c1", f"use_{KEY}", wrapped), ToolCall("c2", "hand_out", arguments))
    return say(f"It is:\n\n{OF_SECRETS[how](KEY)}\n\n{OVER}")


async def answered(world: World, times: int) -> None:
    await until(lambda: sum(OVER in said for said in world.chats.said(ANN)) == times)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with TelegramServer() as server:
        yield World(tmp_path / "home", server)


async def test_no_secret_leaves_through_a_channel(world: World) -> None:
    """Previews, answers, files and their names, in each wrapping."""
    world.secrets = {"WRAPPED_KEY": KEY}
    world.more_tools = {"hand_out": hand_out}
    world.model = ScriptedModel(wrapping, piece=5)
    async with world.running():
        for number, how in enumerate(OF_SECRETS, 1):
            world.chats.says(ANN, f"wrap: {how}")
            await answered(world, number)
    calls = [str(arguments) for _, arguments in world.server.calls]
    assert len(calls) > 2 * len(OF_SECRETS)
    assert [call for call in calls if leaks(call, KEY)] == []
    kept = b"".join(path.read_bytes() for path in world.home.rglob("*") if path.is_file())
    assert not leaks(kept.decode("latin-1"), KEY), "nor is it kept"


async def test_no_secret_leaves_over_the_web(tmp_path: Path) -> None:
    """Live, in the log, in lists and in what other systems' clients are told."""
    heard = bytearray()
    model = ScriptedModel(wrapping, piece=5)
    async with serving(tmp_path, model, (hand_out,), environment={"WRAPPED_KEY": KEY}) as served:

        async def follow() -> None:
            async with served.http.get(
                f"{served.url}/api/sessions/s/events", headers=served.owner.headers
            ) as stream:
                async for piece in stream.content.iter_any():
                    heard.extend(piece)

        assert (await served.owner.ask("POST", "/api/chat/s", {"message": "wrap: as it is"}))[
            0
        ] == 200
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            for how in OF_SECRETS:
                status, answer = await served.owner.ask(
                    "POST", "/api/chat/s", {"message": f"wrap: {how}"}
                )
                assert status == 200 and OVER in answer["response"]
                assert not leaks(str(answer), KEY), how
            await until(lambda: heard.count(b'"turn_ended"') > len(OF_SECRETS))
            tasks.cancel_scope.cancel()
        assert not leaks(spoken(bytes(heard)), KEY)
        for path in (
            "/api/sessions/s/log",
            "/api/sessions/s/trace",
            "/api/activity",
            "/api/sessions",
            "/api/search?q=It",
        ):
            assert not leaks(str(await served.owner.get(path)), KEY), path


def spoken(stream: bytes) -> str:
    """The pieces of text of a stream, one behind the other, as a reader sees them grow."""
    text = ""
    for line in stream.decode().splitlines():
        if line.startswith("data: "):
            value: Any = msgspec.json.decode(line[6:])
            text += value.get("text", "") if isinstance(value, dict) else ""
    return text


def quoting(request: Request) -> Message:
    """Reads something from outside, then says an address that nobody named."""
    last = request.messages[-1].message
    how = ""
    for shown in reversed(request.messages):
        if shown.message.role == "user" and "wrap: " in shown.message.text:
            how = shown.message.text.partition("wrap: ")[2].partition("\n")[0].strip()
            break
    if last.role != "tool":
        return say("", ToolCall("c1", "look", msgspec.Raw(b"{}")))
    return say(f"See {OF_ADDRESSES[how]('https://evil.test/?d=1')}\n\n{OVER}")


@tool(effect="none")
async def look() -> Done:
    """Reads what somebody else wrote."""
    return Done((Text("evil words", UNTRUSTED),))


async def test_no_address_of_a_stranger_leads_anywhere(world: World) -> None:
    """Neither in an answer nor in a preview of it, however it is written."""
    world.more_tools = {"look": look}
    world.model = ScriptedModel(quoting, piece=9, pause_s=0.002)
    async with world.running():
        for number, how in enumerate(OF_ADDRESSES, 1):
            world.chats.says(ANN, f"wrap: {how}")
            await answered(world, number)
    sent = [
        arguments
        for method, arguments in world.server.calls
        if method in ("sendMessage", "editMessageText")
    ]
    assert len(sent) >= len(OF_ADDRESSES)
    assert [each["text"] for each in sent if "evil.test" in live_text(each)] == []
