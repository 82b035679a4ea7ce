"""A rehearsed program that would lose something, asked about in a chat: what the person reads, and
what a yes does."""

from __future__ import annotations

from pathlib import Path

import anyio
import msgspec

from deskhand.channels.rich_text import MAX_TEXT_UNITS, count_units
from deskhand.config.config import Config, Home, Settings
from deskhand.models.base import Request
from deskhand.runtime.app import Parts, open_app
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.clock import SetClock
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.identity import Principal
from deskhand.types.messages import Message, Text, ToolCall, ToolResult
from deskhand.types.programs import REHEARSE_PROGRAM, RUN_PROGRAM, parse_rehearsal

PROGRAM = "write('diary.txt', ['a sunny day'])\nsay('It is tidy now.')"
CONFIG = {"defaults": {"models": ["weak/m"]}, "providers": {"weak": {"tools": "fenced"}}}


def script(request: Request) -> Message:
    """Rehearses the program, runs it, and says what came of that."""
    found = [
        p for shown in request.messages for p in shown.message.parts if isinstance(p, ToolResult)
    ]
    if not found:
        return say("", call(REHEARSE_PROGRAM, program=PROGRAM))
    came = parse_rehearsal(found[0].text)
    if len(found) == 1 and came is not None:
        return say("", call(RUN_PROGRAM, program=PROGRAM, changes=came.changes))
    return say(found[-1].text)


def call(name: str, **arguments: object) -> ToolCall:
    return ToolCall(f"c-{name}", name, msgspec.Raw(msgspec.json.encode(arguments)))


async def until_asked(channel: MemoryChannel) -> str:
    """The question, with what stands under it."""
    while True:
        for sent, _ in channel.sent:
            if sent.ask is not None:
                return f"{sent.ask.question}\n{sent.ask.note}"
        await anyio.sleep(0.01)


async def until_said(channel: MemoryChannel, words: str) -> None:
    while not any(
        isinstance(part, Text) and part.text == words
        for sent, _ in channel.sent
        for part in sent.parts
    ):
        await anyio.sleep(0.01)


async def test_a_loss_is_asked_about_in_words(tmp_path: Path) -> None:
    channel = MemoryChannel()
    model = ScriptedModel(script)
    ann, clock = Principal("ann", ("owner",)), SetClock(1_700_000_000.0)
    parts = Parts(
        lambda name: model, channels=(channel,), authorize=lambda inbound: ann, clock=clock
    )
    settings = Settings(Home(tmp_path), msgspec.convert(CONFIG, Config))
    diary = settings.home.workspace("default") / "diary.txt"
    async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.run)
        diary.write_text("rain\nmore rain\n")
        with anyio.fail_after(60):
            channel.write("tidy up")
            asked = await until_asked(channel)
            assert diary.read_text() == "rain\nmore rain\n"
            channel.write("yes", external_id="yes")
            await until_said(channel, "It is tidy now.")
        tasks.cancel_scope.cancel()
    assert diary.read_text() == "a sunny day\n"
    lines = asked.splitlines()
    assert lines[:7] == [
        "run_program ",
        "overwrites diary.txt and its 2 lines",
        "",
        "diary.txt:",
        "  @@ -1,2 +1 @@",
        "  -rain",
        "  -more rain",
    ]
    assert "  write('diary.txt', ['a sunny day'])" in lines and "nobody asked for that" in asked
    assert '"program"' not in asked and count_units(asked) < MAX_TEXT_UNITS
