"""A whole Deskhand on Telegram: what people see there, whatever happens to the connection or the
process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from deskhand.config.clock import SystemClock
from deskhand.gateway.streamed_replies import GOES_ON
from deskhand.models.base import Request
from deskhand.testing.crash import Crash, Fuse
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.testing.telegram.chat import Post
from deskhand.testing.telegram.server import TelegramServer
from deskhand.types.events import MessageReceived, Reacted
from deskhand.types.identity import Address, Inbound, Principal, Said
from deskhand.types.messages import File, Message, Text, ToolCall

from .telegram_home import ANN, BOB, EVE, FAMILY, LONG, PNG, World, asked, calling, until


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with TelegramServer() as server:
        yield World(tmp_path / "home", server)


async def test_an_answer_is_edited_in_place(world: World) -> None:
    """A message in, and the answer grows in one message at most once a second; it is typing until
    then."""
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
        await until(
            lambda: world.chats.said(ANN) and world.chats.said(BOB) and world.chats.said(FAMILY)
        )
        sessions = {row.session for row in await app.store.sessions(Principal("x", ("owner",)))}
    base = "default/telegram:4200"
    assert sessions == {f"{base}:77", f"{base}:88", f"{base}:-100:5"}
    post = world.chats.last(FAMILY)
    assert (
        post.json["message_thread_id"] == 5
        and post.json["reply_to_message"]["message_id"] == asked.id
    )
    assert post.text == "You said: three"


async def test_a_button_approves(world: World) -> None:
    world.model = calling("act", text="rm x")
    async with world.running():
        world.chats.says(ANN, "do it")
        post = await asked(world, ANN)
        assert 'act {"text":"rm x"}' in post.text and not (world.home / "acts.txt").exists()
        query = world.chats.presses(ANN, post, "Yes, once")
        await until(lambda: len(world.chats.said(ANN)) == 2 and query in world.chats.answers)
    assert (world.home / "acts.txt").read_text().count("rm x") == 1
    assert (
        post.buttons == []
        and post.text.endswith("Allowed, once, by ann")
        and 'act {"text":"rm x"}' in post.text
    )
    assert world.chats.answers[query] == {"text": "", "alert": False}


def answered(post: Post) -> bool:
    return not post.buttons


async def test_one_button_approves_several_calls(world: World) -> None:
    def script(request: Request) -> Message:
        if request.messages[-1].message.role == "tool":
            return say("both are done")
        raw = (msgspec.Raw(b'{"text":"%s"}' % text) for text in (b"one", b"two"))
        return say("", *(ToolCall(f"c{i}", "act", each) for i, each in enumerate(raw)))

    world.model = ScriptedModel(script)
    acts = world.home / "acts.txt"
    async with world.running():
        world.chats.says(ANN, "do both")
        post = await asked(world, ANN)
        assert 'act {"text":"one"}\nact {"text":"two"}' in post.text and not acts.exists()
        world.chats.presses(ANN, post, "One by one")
        await until(partial(answered, post))
        assert post.text.endswith("Asked one by one, as ann wished")
        for button in ("No", "Yes, once"):
            post = await asked(world, ANN)
            world.chats.presses(ANN, post, button)
            await until(partial(answered, post))
        await until(lambda: world.chats.said(ANN)[-1] == "both are done")
        assert [line.split()[-1] for line in acts.read_text().splitlines()] == ["two"]
        world.chats.says(ANN, "do both again")
        post = await asked(world, ANN)
        world.chats.presses(ANN, post, "Yes, all")
        await until(lambda: world.chats.said(ANN).count("both are done") == 2)
    assert [line.split()[-1] for line in acts.read_text().splitlines()] == ["two", "one", "two"]


async def test_who_may_not_approve_is_told_so(world: World) -> None:
    """In a group anybody can press. A member's press, a stranger's and one that comes too late do
    nothing."""
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


async def test_a_member_has_no_buttons_and_the_owner_is_asked(world: World) -> None:
    """Who may answer is asked where they write; the member reads who decides, and then what was
    decided."""
    world.model = calling("act", text="rm x")
    async with world.running():
        world.model = ScriptedModel()
        world.chats.says(ANN, "hello")
        await until(lambda: world.chats.said(ANN))
        world.model = calling("act", text="rm x")
        world.chats.says(BOB, "do it")
        post = await asked(world, ANN)
        assert 'act {"text":"rm x"}' in post.text and "For telegram:88" in post.text
        await until(lambda: world.chats.said(BOB))
        theirs = world.chats.last(BOB)
        assert theirs.buttons == [] and "has been asked to decide this" in theirs.text
        forged = world.chats.forges(
            BOB, theirs, post.json["reply_markup"]["inline_keyboard"][0][0]["callback_data"]
        )
        await until(lambda: forged in world.chats.answers)
        assert (
            "Only an owner" in world.chats.answers[forged]["text"]
            and not (world.home / "acts.txt").exists()
        )
        query = world.chats.presses(ANN, post, "Yes, once")
        await until(lambda: "so: noted" in world.chats.said(BOB) and query in world.chats.answers)
        await until(
            lambda: "Allowed, once, by ann" in theirs.text and "Allowed, once, by ann" in post.text
        )
    assert post.buttons == [] and (world.home / "acts.txt").read_text().count("rm x") == 1


async def test_with_no_owner_to_be_asked_a_member_reads_how_it_is_allowed(world: World) -> None:
    world.model = calling("act", text="rm x")
    async with world.running():
        world.chats.says(BOB, "do it")
        await until(lambda: world.chats.said(BOB))
        post = world.chats.last(BOB)
    assert post.buttons == [] and "may allow this: on the page" in post.text


async def test_in_a_group_what_a_member_asks_for_is_decided_elsewhere(world: World) -> None:
    world.chats.group(FAMILY)
    async with world.running():
        world.chats.says(ANN, "hello")
        world.chats.says(ANN, "@desk_bot hello", FAMILY)
        await until(lambda: world.chats.said(ANN) and world.chats.said(FAMILY))
        world.model = calling("act", text="rm x")
        world.chats.says(BOB, "@desk_bot do it", FAMILY)
        post = await asked(world, ANN)
        await until(lambda: len(world.chats.said(FAMILY)) == 2)
        assert (
            world.chats.last(FAMILY).buttons == []
            and "An owner has been asked to decide this" in world.chats.last(FAMILY).text
        )
        world.chats.presses(ANN, post, "No")
        await until(lambda: "ann said no" in "".join(world.chats.said(FAMILY)))
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
    """Nobody was told that the first one arrived. The button of either will do, and neither keeps
    any."""
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
    """A file that is sent lies in the workspace; a picture comes with its words; files are sent
    back."""
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
        assert [row.chat for row in await app.store.sessions(Principal("x", ("owner",)))] == [
            str(BOB)
        ]
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
        await until(lambda: len(world.chats.said(ANN)) == 3)
        events = [each.event for each in await app.store.events("default/telegram:4200:77")]
    assert [(e.of, e.emoji) for e in events if isinstance(e, Reacted)] == [("77:2", "👍")]
    assert "already answered that message" in world.chats.said(ANN)[1]
    told = model.requests[-1].messages[-1].message.text
    assert "reacted 👍 to your answer “You said: hello”" in told and "hello all" in told


async def test_it_finds_back_when_telegram_was_away(world: World) -> None:
    async with world.running() as app:
        world.chats.says(ANN, "one")
        await until(lambda: world.chats.said(ANN))
        await world.server.stop()
        await until(lambda: app.vitals.get("channel telegram").failures)
        await world.server.start(world.server.port)
        world.chats.says(ANN, "two")
        await until(lambda: len(world.chats.said(ANN)) == 2)
        facts = {fact.name: fact for fact in (await app.health()).facts}
    assert facts["channel telegram"].last_error and facts["channel telegram"].last_success_at


def told_of(world: World, chat: int) -> bool:
    return "the kettle boils" in world.chats.said(chat)


async def test_a_reply_goes_on_where_the_message_came_from(world: World) -> None:
    """A conversation elsewhere has sent it. Who takes part in that goes on with it, nobody else
    does, and never in a group, where others would hear of it."""
    world.channel["allow_from"] = [BOB]

    def script(request: Request) -> Any:
        words = request.messages[-1].message.text
        if "news" in words:
            call = {"text": "the kettle boils", "channel": "telegram", "chat": words.split()[-1]}
            return say(
                "",
                ToolCall(
                    f"c{len(request.messages)}",
                    "send_message",
                    msgspec.Raw(msgspec.json.encode(call)),
                ),
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
            news = next(
                post for post in world.chats.messages(chat) if post.text == "the kettle boils"
            )
            before = len(world.chats.said(chat))
            world.chats.says(who, "thank you", chat, reply_to_message=news.json)
            await until(partial(said_more, world, chat, before))
        events = await app.store.events(session)
    told = {each.event.address.chat for each in events if isinstance(each.event, MessageReceived)}
    assert told == {"kitchen", str(ANN)}, (
        "hers goes on there, the others in their own conversations"
    )
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
        await until(lambda: app.vitals.get("channel telegram").failures)
        fact = next(fact for fact in (await app.health()).facts if fact.name == "channel telegram")
        assert fact.state == "down" and why in fact.last_error
        assert app.dispatch.is_driving and not world.server.calls


@pytest.mark.timeout(240)
async def test_killed_at_any_time_there_is_one_answer(world: World) -> None:
    """At each boundary between the words and the platform: one answer in the end, or others that
    say what they are."""
    world.model = ScriptedModel(lambda _: say(LONG), piece=30, pause_s=0.08)
    # every third boundary: all of them are tried where nothing takes time
    at = -1
    blown = True
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
        return any(text.endswith(LONG[-20:]) for text in said) and world.server.confirmed == len(
            world.chats.updates
        )

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


async def test_a_group_has_rules_of_its_own(world: World) -> None:
    """Nobody is answered where nobody is to be, and elsewhere those who are named alone."""
    quiet, book_club = -200, -300
    for group in (FAMILY, quiet, book_club):
        world.chats.group(group)
    world.channel["group_rules"] = {
        str(quiet): {"answers": "none"},
        str(book_club): {"answers": "all", "allow_from": [BOB]},
    }
    async with world.running() as app:
        world.chats.says(ANN, "@desk_bot one", quiet)
        world.chats.says(EVE, "/start@desk_bot", quiet)
        world.chats.says(ANN, "@desk_bot two", book_club)
        world.chats.says(BOB, "three", book_club)
        world.chats.says(ANN, "@desk_bot four", FAMILY)
        await until(lambda: world.chats.said(FAMILY) and world.chats.said(book_club))
        sessions = {row.session for row in await app.store.sessions(Principal("x", ("owner",)))}
    assert world.chats.said(book_club) == ["You said: three"] and not world.chats.said(quiet)
    assert world.chats.said(FAMILY) == ["You said: four"]
    assert not any(session.endswith(str(quiet)) for session in sessions)


async def test_a_message_that_asks_waits_for_the_next_one(world: World) -> None:
    """As models know it that were taught elsewhere."""
    world.model = calling("intermediate_message", content="Which file?", ask=True, timeout=300)
    async with world.running():
        world.chats.says(ANN, "print it")
        await until(lambda: world.chats.said(ANN) == ["Which file?"])
        world.chats.says(ANN, "the second", date=int(SystemClock().now()))
        await until(lambda: len(world.chats.said(ANN)) == 2)
    assert world.chats.said(ANN)[1] == "so: the second"


async def test_others_are_not_asked(world: World) -> None:
    asking = {"content": "Which file?", "ask": True, "chat_id": str(BOB)}
    world.model = calling("intermediate_message", **asking)
    async with world.running():
        world.chats.says(ANN, "print it")
        post = await asked(world, ANN)
        world.chats.presses(ANN, post, "Yes, once")
        await until(lambda: "asked only in their own conversation" in world.chats.said(ANN)[-1])
    assert len(world.chats.said(ANN)) == 2 and not world.chats.said(BOB)
