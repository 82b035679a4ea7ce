"""On Telegram while Deskhand is at work: what it says that it does, and what becomes of what is
written meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from deskhand.gateway.streamed_replies import GOES_ON
from deskhand.models.base import Request
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.testing.telegram.server import TelegramServer
from deskhand.types.events import MessageReceived
from deskhand.types.messages import ToolCall

from .telegram_home import ANN, BOB, FAMILY, World, asked, calling, until


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with TelegramServer() as server:
        yield World(tmp_path / "home", server)


ANNS = "default/telegram:4200:77"
READING = f"Reading tax.pdf{GOES_ON}"


async def test_what_is_being_done_stands_there_until_the_answer_does(world: World) -> None:
    """Nobody is notified of it, and it names no more than the file; the answer is a message of its
    own."""
    world.model = calling("read_file", path="2026/tax.pdf")
    async with world.running() as app:
        world.chats.says(ANN, "what do I owe?")
        await until(lambda: world.chats.said(ANN) == [READING])
        doing = world.chats.last(ANN)
        assert doing.silent and [each["type"] for each in doing.json["entities"]] == ["code"]
        world.slow.go.set()
        await until(lambda: world.chats.said(ANN) == ["so: read"])
        assert not world.chats.last(ANN).silent and world.chats.removed == [doing]
        await until(lambda: not app.drafts._live)
        assert (await app.store.query("drafts_left", ())) == []


async def test_one_line_tells_of_each_step_within_the_limits(world: World) -> None:
    """The same message is changed, at most once a second; what Telegram will not delete becomes the
    answer."""
    steps = [
        ("read_file", {"path": "a.txt"}),
        ("act", {"text": "secret"}),
        ("read_file", {"path": "b.txt"}),
    ]

    def script(request: Request) -> Any:
        done = sum(each.message.role == "tool" for each in request.messages)
        if done == len(steps):
            return say("done")
        name, arguments = steps[done]
        return say("", ToolCall(f"c{done}", name, msgspec.Raw(msgspec.json.encode(arguments))))

    world.model = ScriptedModel(script)
    world.config["policy"] = [{"verdict": "allow", "tool": "act"}]
    async with world.running():
        world.chats.says(ANN, "go")
        await until(lambda: world.chats.said(ANN))
        line = world.chats.last(ANN)
        world.chats.old.add((ANN, line.id))
        world.slow.go.set()
        await until(lambda: world.chats.said(ANN) == ["done"])
    shown = [text.removesuffix(GOES_ON) for text in line.edits]
    assert (
        shown[0] == "Reading a.txt"
        and len(shown) <= 2
        and not any("secret" in text for text in shown)
    )
    assert world.chats.last(ANN) is line


async def test_after_a_yes_it_says_again_what_it_does(world: World) -> None:
    world.model = calling("read_file", path="tax.pdf")
    world.config["policy"] = [{"verdict": "ask", "tool": "read_file"}]
    async with world.running():
        world.chats.says(ANN, "look")
        post = await asked(world, ANN)
        world.chats.presses(ANN, post, "Yes, once")
        await until(lambda: READING in world.chats.said(ANN))
        assert "Allowed, once, by ann" in post.text
        world.slow.go.set()
        await until(lambda: world.chats.said(ANN)[1:] == ["so: read"])


async def test_the_next_process_takes_the_line_away(world: World) -> None:
    world.model = calling("read_file", path="tax.pdf")
    async with world.running() as app:
        world.chats.says(ANN, "look")
        await until(lambda: world.chats.said(ANN) == [READING])
        with anyio.fail_after(30):  # until it is known to have been posted
            while not [
                1
                for _, platform_id, _ in await app.store.query("draft_before", (ANNS, 2**62))
                if platform_id
            ]:
                await anyio.sleep(0.01)
    world.slow.go.set()
    async with world.running():
        await until(lambda: world.chats.said(ANN) == ["so: read"])


async def test_what_is_written_meanwhile_is_marked_as_read(world: World) -> None:
    """By a reaction, or in a line where a group has none of it. It steers; so does an edit,
    once."""
    world.chats.group(FAMILY, reactions=["👍"])
    world.model = model = calling("read_file", path="tax.pdf")
    async with world.running() as app:
        first = world.chats.says(ANN, "look")
        await until(lambda: world.chats.said(ANN) == [READING])
        more = world.chats.says(ANN, "only of 2026")
        await until(lambda: more.json.get("reactions") == [{"type": "emoji", "emoji": "👀"}])
        world.chats.edits(first, "look it up")
        await until(lambda: first.json.get("reactions"))
        world.chats.edits(first, "look it up")
        world.slow.go.set()
        await until(lambda: world.chats.said(ANN) and READING not in world.chats.said(ANN))
        events = await app.store.events("default/telegram:4200:77")
        said = [
            each.event.message.text for each in events if isinstance(each.event, MessageReceived)
        ]
        assert said == ["look", "only of 2026", "edited: look it up"]
        assert any(
            "edited: look it up" in shown.message.text for shown in model.requests[-1].messages
        )

        world.slow.go = type(world.slow.go)()
        world.chats.says(ANN, "@desk_bot look", FAMILY)
        await until(lambda: world.chats.said(FAMILY) == [READING])
        world.chats.says(ANN, "@desk_bot only of 2026", FAMILY)
        await until(
            lambda: any("take it into account" in text for text in world.chats.said(FAMILY))
        )
        world.slow.go.set()


async def test_an_edit_that_comes_too_late_is_answered_once(world: World) -> None:
    async with world.running():
        first = world.chats.says(BOB, "hello")
        await until(lambda: world.chats.said(BOB))
        for text in ("hello you", "hello all"):
            world.chats.edits(first, text)
            await until(lambda: world.server.confirmed == len(world.chats.updates))
        world.chats.says(BOB, "and now")
        await until(lambda: any(text.endswith("and now") for text in world.chats.said(BOB)))
    late = [text for text in world.chats.said(BOB) if "already answered that message" in text]
    assert len(late) == 1 and "hello all" in world.chats.last(BOB).text


async def test_the_first_words_say_what_it_is(world: World) -> None:
    """A stranger hears how to be let in; who is let in, and who comes for the first time, what it
    is good for."""
    world.config["reject_response"] = "pair"
    async with world.running() as app:
        await app.people.remove_user("ann")
        world.chats.says(ANN, "/start")
        await until(lambda: world.chats.said(ANN))
        (code,) = [each.code for each in await app.people.pairings()]
        assert f"deskhand pair approve {code}" in world.chats.said(ANN)[0]
        await app.people.approve(code)
        await until(lambda: len(world.chats.said(ANN)) == 2)
        assert (
            "you are my owner now" in world.chats.said(ANN)[1]
            and "/help" in world.chats.said(ANN)[1]
        )
        world.chats.says(BOB, "/start")
        await until(lambda: world.chats.said(BOB))
        assert world.chats.said(BOB)[0].count("\n• ") == 3 and "/help" in world.chats.said(BOB)[0]
        world.chats.says(BOB, "hello")
        await until(lambda: len(world.chats.said(BOB)) == 2)
        world.chats.says(BOB, "/start")
        await until(lambda: len(world.chats.said(BOB)) == 3)
        assert "new conversation" in world.chats.said(BOB)[2]
