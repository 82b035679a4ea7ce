"""A whole Deskhand on Telegram: what people see there, whatever happens to the connection or the process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from deskhand.models.base import Model, Request
from deskhand.runtime.app import App, Parts, open_app
from deskhand.runtime.channels import with_channels
from deskhand.runtime.config import Config, Home, Settings
from deskhand.runtime.drafts import GOES_ON
from deskhand.testing.crash import Crash, Fuse, fused
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.testing.telegram import TelegramServer
from deskhand.testing.telegram_chat import Post
from deskhand.testing.tools import FileTool
from deskhand.tools.base import Context, Done, Outcome, Tool
from deskhand.tools.define import tool
from deskhand.tools.talk import SendMessage, ask_user
from deskhand.types.commit import Outgoing
from deskhand.types.events import MessageReceived, Reacted
from deskhand.types.identity import Address, Inbound, Principal, Said
from deskhand.types.messages import File, Image, Message, Text, ToolCall
from deskhand.types.people import Identity

ANN, BOB, EVE, FAMILY = 77, 88, 99, -100
PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 40
LONG = "This is an answer that takes its time, word after word, until it has come to its end."


@tool(effect="none", replay="commit")
async def send_back(name: str, context: Context) -> Outcome:
    """Send a file of the workspace, and a picture."""
    data = context.reach.files.read(name, 1000)
    blob, picture = await context.reach.keep(data), await context.reach.keep(PNG)
    items = (Text("here"), File(blob, "back.txt", "text/plain", len(data)), Image(picture, "image/png", "p.png"))
    return Done((Text("sent"),), outbox=(Outgoing(f"{context.key}:send", context.address, items),))


class World:
    """One home, one bot, and as many lives as it takes. Ann is an owner; Bob stands in `allow_from`."""

    def __init__(self, home: Path, server: TelegramServer) -> None:
        self.home, self.server, self.chats = home, server, server.chats
        self.model: Model = ScriptedModel()
        self.channel: dict[str, Any] = {"allow_from": [BOB]}
        self.config: dict[str, Any] = {}
        self.fuse = Fuse()

    def settings(self) -> Settings:
        channel = {"base_url": self.server.base_url.removesuffix("/bot"), **self.channel}
        raw = {"defaults": {"models": ["scripted/x"]}, "channels": {"telegram": channel}} | self.config
        config = msgspec.convert(raw, Config, strict=False)
        return Settings(Home(self.home), config, environment={"TELEGRAM_BOT_TOKEN": self.server.token})

    def parts(self) -> Parts:
        act = FileTool("act", self.home / "acts.txt", fuse=self.fuse)
        act.spec = msgspec.structs.replace(act.spec, effect="network")
        tools: dict[str, Tool] = {"act": act, "ask_user": ask_user, "send_back": send_back}
        tools["send_message"] = SendMessage(frozenset({"terminal"}))
        return with_channels(Parts(lambda _: self.model, tools, store=fused(self.fuse)), self.settings())

    @asynccontextmanager
    async def running(self) -> AsyncIterator[App]:
        async with open_app(self.settings(), self.parts()) as app, anyio.create_task_group() as tasks:
            app.drafts.first_s, app.drafts.mend_s = 0.01, 0.05
            if "ann" not in {user.name for user in await app.people.users()}:
                await app.people.add_user("ann", "owner", Identity("telegram", str(ANN)))
            tasks.start_soon(app.run)
            yield app
            tasks.cancel_scope.cancel()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with TelegramServer() as server:
        yield World(tmp_path / "home", server)


async def until(true: Callable[[], object]) -> None:
    with anyio.fail_after(30):
        while not true():
            await anyio.sleep(0.01)


def calling(tool_name: str, **arguments: object) -> ScriptedModel:
    """Calls this tool, then says what came of it."""

    def script(request: Request) -> Any:
        last = request.messages[-1].message
        if last.role == "tool":
            return say("so: " + "".join(getattr(part, "text", "") for part in last.parts))
        return say("", ToolCall(f"c{len(request.messages)}", tool_name, msgspec.Raw(msgspec.json.encode(arguments))))

    return ScriptedModel(script)


async def test_an_answer_is_edited_in_place(world: World) -> None:
    """A message in, and the answer grows in one message at most once a second; it is typing until then."""
    world.model = ScriptedModel(lambda _: say(LONG), piece=8, pause_s=0.12)
    async with world.running():
        world.chats.says(ANN, "tell me")
        await until(lambda: world.chats.said(ANN) == [LONG])
    post = world.chats.last(ANN)
    shown = [text.removesuffix(GOES_ON) for text in post.edits]
    assert 1 <= len(shown) <= 3 and all(LONG.startswith(text) and text for text in shown)
    assert [method for method, _ in world.server.calls].count("sendMessage") == 1
    assert (ANN, "typing") in world.chats.actions


async def test_an_answer_can_also_come_whole(world: World) -> None:
    world.channel["streaming"] = False
    world.model = ScriptedModel(lambda _: say(LONG), piece=8, pause_s=0.05)
    async with world.running():
        world.chats.says(ANN, "tell me")
        await until(lambda: world.chats.said(ANN))
    assert world.chats.said(ANN) == [LONG] and world.chats.last(ANN).edits == []


async def test_a_flood_ends_the_previews_and_the_answer_comes(world: World) -> None:
    world.model = ScriptedModel(lambda _: say(LONG), piece=8, pause_s=0.15)
    async with world.running():
        world.server.fail("editMessageText", 429, retry_after=1, times=1)
        world.chats.says(ANN, "tell me")
        await until(lambda: world.chats.said(ANN) == [LONG])
    assert len(world.chats.last(ANN).edits) == 1, "the first words, and then all of them"


async def test_what_is_longer_than_a_message(world: World) -> None:
    text = "\n\n".join(f"{i} " + "word " * 500 for i in range(4))
    world.model = ScriptedModel(lambda _: say(text), piece=500, pause_s=0.05)
    async with world.running():
        world.chats.says(ANN, "tell me")
        await until(lambda: " ".join(world.chats.said(ANN)).split() == text.split())
    assert len(world.chats.said(ANN)) > 2 and world.chats.messages(ANN)[1].edits


async def test_chats_are_apart(world: World) -> None:
    world.chats.group(FAMILY, forum=True)
    async with world.running() as app:
        world.chats.says(ANN, "one")
        world.chats.says(BOB, "two")
        topic = {"message_thread_id": 5, "is_topic_message": True}
        asked = world.chats.says(BOB, "@desk_bot three", FAMILY, **topic)
        await until(lambda: world.chats.said(ANN) and world.chats.said(BOB) and world.chats.said(FAMILY))
        sessions = {row.session for row in await app.store.sessions(Principal("x", ("owner",)))}
    base = "default/telegram:4200"
    assert sessions == {f"{base}:77", f"{base}:88", f"{base}:-100:5"}
    post = world.chats.last(FAMILY)
    assert post.json["message_thread_id"] == 5 and post.json["reply_to_message"]["message_id"] == asked.id
    assert post.text == "You said: three"


async def asked(world: World, chat: int) -> Post:
    await until(lambda: world.chats.said(chat) and world.chats.last(chat).buttons)
    return world.chats.last(chat)


async def test_a_button_approves(world: World) -> None:
    world.model = calling("act", text="rm x")
    async with world.running():
        world.chats.says(ANN, "do it")
        post = await asked(world, ANN)
        assert 'act {"text":"rm x"}' in post.text and not (world.home / "acts.txt").exists()
        query = world.chats.presses(ANN, post, "Yes, once")
        await until(lambda: len(world.chats.said(ANN)) == 2 and query in world.chats.answers)
    assert (world.home / "acts.txt").read_text().count("rm x") == 1
    assert post.buttons == [] and post.text.endswith("Allowed, once, by ann") and 'act {"text":"rm x"}' in post.text
    assert world.chats.answers[query] == {"text": "", "alert": False}


async def test_who_may_not_approve_is_told_so(world: World) -> None:
    """In a group anybody can press. A member's press, a stranger's and one that comes too late do nothing."""
    world.chats.group(FAMILY)
    world.model = calling("act", text="rm x")
    async with world.running():
        world.chats.says(ANN, "@desk_bot do it", FAMILY)
        post = await asked(world, FAMILY)
        queries = {who: world.chats.presses(who, post, "Yes, once") for who in (BOB, EVE)}
        await until(lambda: set(queries.values()) <= set(world.chats.answers))
        assert "may answer that" in world.chats.answers[queries[BOB]]["text"]
        assert "have access" in world.chats.answers[queries[EVE]]["text"]
        assert post.buttons and not (world.home / "acts.txt").exists()
        world.chats.presses(ANN, post, "No")
        await until(lambda: len(world.chats.said(FAMILY)) == 2)
        assert "Not allowed: ann said no" in post.text
        late = world.chats.forges(ANN, post, "ask_0 once")
        await until(lambda: late in world.chats.answers)
        assert "no longer open" in world.chats.answers[late]["text"]
    assert not (world.home / "acts.txt").exists()


async def test_a_member_cannot_allow_what_they_asked_for(world: World) -> None:
    world.model = calling("act", text="rm x")
    async with world.running():
        world.chats.says(BOB, "do it")
        post = await asked(world, BOB)
        assert "ann" in post.text.partition("\n\n")[2], "who may allow it"
        query = world.chats.presses(BOB, post, "Yes, once")
        await until(lambda: query in world.chats.answers)
    assert "Only an owner" in world.chats.answers[query]["text"]
    assert not (world.home / "acts.txt").exists()


async def test_a_question_is_answered_by_a_button_after_a_restart(world: World) -> None:
    world.model = calling("ask_user", question="Which colour?", choices=["red", "blue"])
    async with world.running():
        world.chats.says(BOB, "paint it")
        post = await asked(world, BOB)
        assert post.text == "Which colour?" and post.buttons == ["red", "blue"]
    async with world.running():
        world.chats.presses(BOB, post, "blue")
        await until(lambda: "so: blue" in world.chats.said(BOB) and not post.buttons)
    assert not any(each.buttons for each in world.chats.messages(BOB))
    assert post.text == "Which colour?\n\ntelegram:88: blue"


async def test_a_question_that_was_asked_twice_is_decided_once(world: World) -> None:
    """Nobody was told that the first one arrived. The button of either will do, and neither keeps any."""
    world.model = calling("act", text="rm x")
    async with world.running():
        world.chats.says(ANN, "hello")
        world.server.lose("sendMessage")
        first = await asked(world, ANN)
        world.chats.presses(ANN, first, "Yes, once")
        await until(lambda: len(world.chats.said(ANN)) == 3)
        await until(lambda: not any(post.buttons for post in world.chats.messages(ANN)))
    assert (world.home / "acts.txt").read_text().count("rm x") == 1
    assert sum("Allowed, once, by ann" in text for text in world.chats.said(ANN)) == 2


async def test_files_in_and_out(world: World) -> None:
    """A file that is sent lies in the workspace; a picture comes with its words; files are sent back."""
    async with world.running() as app:
        world.chats.sends_file(ANN, b"\x00\x01" * 50, "data.bin", caption="keep this")
        await until(lambda: world.chats.said(ANN))
        received = (await app.store.events("default/telegram:4200:77"))[0].event
        assert isinstance(received, MessageReceived)
        part = received.message.parts[0]
        assert isinstance(part, File)
        path = part.shown.partition("saved at: ")[2].partition("]")[0]
        assert (world.home / "agents/default/workspace" / path).read_bytes() == b"\x00\x01" * 50
        world.model = calling("send_back", name=path)
        world.chats.says(ANN, "send it back")
        await until(lambda: "so: sent" in "".join(world.chats.said(ANN)))
        await until(lambda: sum("photo" in post.json for post in world.chats.messages(ANN)) == 1)
    posts = [post for post in world.chats.messages(ANN) if post.sender == 4200 and post.file]
    assert [post.file for post in posts] == [b"\x00\x01" * 50, PNG]


@pytest.mark.parametrize("said", ["ignore", "announce"])
async def test_a_stranger_is_refused(said: str, world: World) -> None:
    """Their name does not matter, only their number; an empty list admits nobody."""
    world.config["reject_response"] = said
    world.chats.person(EVE, "Ann")
    async with world.running() as app:
        world.chats.says(EVE, "let me in")
        world.chats.says(BOB, "hello")
        await until(lambda: world.chats.said(BOB))
        assert [row.chat for row in await app.store.sessions(Principal("x", ("owner",)))] == [str(BOB)]
    assert bool(world.chats.said(EVE)) == (said == "announce")
    world.channel["allow_from"] = []
    async with world.running():
        world.chats.says(BOB, "and now?")
        world.chats.says(ANN, "and I?")
        await until(lambda: "You said: and I?" in world.chats.said(ANN))
    assert "You said: and now?" not in world.chats.said(BOB)


async def test_what_is_delivered_again_is_one_turn(world: World) -> None:
    async with world.running():
        world.chats.says(ANN, "one")
        await until(lambda: world.chats.said(ANN) and world.server.confirmed == 1)
        world.server.redeliver()
        await until(lambda: world.server.confirmed == 1)
    world.server.redeliver()
    async with world.running():
        world.chats.says(ANN, "two")
        await until(lambda: len(world.chats.said(ANN)) == 2)
    assert world.chats.said(ANN) == ["You said: one", "You said: two"]


async def test_reactions_and_edits_reach_the_next_message(world: World) -> None:
    """They cost no call of a model, and what they mean is told with the next message."""
    world.model = model = ScriptedModel()
    async with world.running() as app:
        first = world.chats.says(ANN, "hello")
        await until(lambda: world.chats.said(ANN))
        world.chats.reacts(ANN, world.chats.last(ANN), ["👍"])
        world.chats.edits(first, "hello all")
        await until(lambda: world.server.confirmed == 3)
        assert len(model.requests) == 1
        world.chats.says(ANN, "and now")
        await until(lambda: len(world.chats.said(ANN)) == 2)
        events = [each.event for each in await app.store.events("default/telegram:4200:77")]
    assert [(e.of, e.emoji) for e in events if isinstance(e, Reacted)] == [("77:2", "👍")]
    told = model.requests[-1].messages[-1].message.text
    assert "reacted 👍 to your answer “You said: hello”" in told and "hello all" in told


async def test_it_finds_back_when_telegram_was_away(world: World) -> None:
    async with world.running() as app:
        world.chats.says(ANN, "one")
        await until(lambda: world.chats.said(ANN))
        await world.server.stop()
        await until(lambda: app.vitals.of("channel telegram").failures)
        await world.server.start(world.server.port)
        world.chats.says(ANN, "two")
        await until(lambda: len(world.chats.said(ANN)) == 2)
        facts = {fact.name: fact for fact in (await app.health()).facts}
    assert facts["channel telegram"].last_error and facts["channel telegram"].last_success_at


def told_of(world: World, chat: int) -> bool:
    return "the kettle boils" in world.chats.said(chat)


async def test_a_reply_goes_on_where_the_message_came_from(world: World) -> None:
    """A conversation elsewhere has sent it. Who takes part in that goes on with it, nobody else does, and never in a
    group, where others would hear of it."""
    world.channel["allow_from"] = [BOB]

    def script(request: Request) -> Any:
        words = request.messages[-1].message.text
        if "news" in words:
            call = {"text": "the kettle boils", "channel": "telegram", "chat": words.split()[-1]}
            return say(
                "", ToolCall(f"c{len(request.messages)}", "send_message", msgspec.Raw(msgspec.json.encode(call)))
            )
        return say(f"I know of {len([m for m in request.messages if m.message.role == 'user'])}")

    session = "default/terminal:kitchen"
    world.model = ScriptedModel(script)
    world.config["policy"] = [{"verdict": "allow", "tool": "send_message"}]
    world.chats.says(BOB, "hello")
    world.chats.says(ANN, "hello")
    world.chats.group(FAMILY)
    async with world.running() as app:
        await until(lambda: world.chats.said(BOB) and world.chats.said(ANN))
        for chat in (ANN, BOB, FAMILY):
            at = Address("terminal", chat="kitchen")
            words = Said(Message("user", (Text(f"send news to {chat}"),)))
            await app.door.submit(Inbound(f"t{chat}", at, "owner", 1.0, words, session))
            await until(partial(told_of, world, chat))
    async with world.running() as app:
        for who, chat in ((ANN, ANN), (BOB, BOB), (ANN, FAMILY)):
            news = next(post for post in world.chats.messages(chat) if post.text == "the kettle boils")
            before = len(world.chats.said(chat))
            world.chats.says(who, "thank you", chat, reply_to_message=news.json)
            await until(partial(said_more, world, chat, before))
        events = await app.store.events(session)
    told = {each.event.address.chat for each in events if isinstance(each.event, MessageReceived)}
    assert told == {"kitchen", str(ANN)}, "hers goes on there, the others in their own conversations"
    heard = [world.chats.said(chat)[-1] for chat in (ANN, BOB, FAMILY)]
    assert heard == ["I know of 4", "I know of 2", "I know of 1"]


def said_more(world: World, chat: int, before: int) -> bool:
    return len(world.chats.said(chat)) > before


WITHOUT: list[tuple[dict[str, Any], str]] = [
    ({"token_env": "NO_SUCH_TOKEN"}, "NO_SUCH_TOKEN is not set"),
    ({"type": "smoke-signals"}, "no kind of channel 'smoke-signals'"),
    ({"allow_from": ["@ann"]}, "number"),
]


@pytest.mark.parametrize(("channel", "why"), WITHOUT)
async def test_a_channel_that_cannot_work_says_why_and_the_rest_runs(
    channel: dict[str, Any], why: str, world: World
) -> None:
    world.channel |= channel
    async with world.running() as app:
        await until(lambda: app.vitals.of("channel telegram").failures)
        fact = next(fact for fact in (await app.health()).facts if fact.name == "channel telegram")
        assert fact.state == "down" and why in fact.last_error
        assert app.dispatch.driving and not world.server.calls


@pytest.mark.timeout(240)
async def test_killed_at_any_time_there_is_one_answer(world: World) -> None:
    """At each boundary between the words and the platform: one answer in the end, or others that say what they are."""
    world.model = ScriptedModel(lambda _: say(LONG), piece=30, pause_s=0.08)
    at, blown = -1, True  # every third boundary: all of them are tried where nothing takes time
    while blown:
        at += 3
        before = len(world.chats.said(ANN))
        world.chats.says(ANN, f"question {at}")
        world.fuse = Fuse(at)
        blown = await life(world, before)
        if blown:
            world.fuse = Fuse()
            assert not await life(world, before)
        said = world.chats.said(ANN)[before:]
        marked = [text for text in said if text.startswith("(may be a duplicate)")]
        wholes = [text for text in said if text == LONG]
        assert len(wholes) <= 1 and wholes + marked, (at, world.fuse.passed, said)
        assert not wholes or not [text for text in said if text.endswith(GOES_ON)], (at, said)
    assert at > 8


async def life(world: World, before: int) -> bool:
    """Run until the question is answered and nothing is owed. True when the fuse blew first."""

    def answered() -> bool:
        said = world.chats.said(ANN)[before:]
        return any(text.endswith(LONG[-20:]) for text in said) and world.server.confirmed == len(world.chats.updates)

    blown = False
    try:
        async with world.running() as app:
            await until(answered)
            with anyio.fail_after(20):
                while await app.store.outbox_due(1e12, 5) or await app.store.open_sessions():
                    await anyio.sleep(0.01)
    except* Crash:
        blown = True
    return blown
