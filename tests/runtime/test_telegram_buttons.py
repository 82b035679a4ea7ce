"""The buttons below answers on Telegram: what they do, for whom; each press counts once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from deskhand.gateway.streamed_replies import GOES_ON
from deskhand.models.base import Request
from deskhand.testing.crash import Crash, Fuse
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.testing.telegram.chat import Post
from deskhand.testing.telegram.server import TelegramServer
from deskhand.tools.files import write_file
from deskhand.types.errors import ModelRequestRefused
from deskhand.types.messages import ToolCall
from deskhand.types.turn import OUT_OF_DATE

from .telegram_home import ANN, BOB, FAMILY, World, asked, calling, until

HEADED = "Here it is.\n\n## The *plan*: A/B\n\n" + "\n\n".join(
    f"{i}. " + "word " * 500 for i in range(8)
)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with TelegramServer() as server:
        yield World(tmp_path / "home", server)


def said(world: World, text: str, chat: int = ANN) -> bool:
    return any(text in each for each in world.chats.said(chat))


def data_of(post: Post, label: str) -> str:
    rows = post.json["reply_markup"]["inline_keyboard"]
    return str(next(each["callback_data"] for row in rows for each in row if each["text"] == label))


async def answered(world: World, query: str) -> str:
    await until(lambda: query in world.chats.answers)
    return str(world.chats.answers[query]["text"])


async def test_plain_answers_have_no_buttons(world: World) -> None:
    async with world.running():
        world.chats.says(ANN, "hello")
        await until(lambda: world.chats.said(ANN))
    assert world.chats.last(ANN).buttons == []


async def test_a_turn_is_stopped_and_tried_again(world: World) -> None:
    world.model = calling("read_file", path="tax.pdf")
    async with world.running():
        world.chats.says(ANN, "what do I owe?")
        await until(lambda: world.chats.said(ANN) == [f"Reading tax.pdf{GOES_ON}"])
        line = world.chats.last(ANN)
        assert line.buttons == ["Stop"]
        stop = data_of(line, "Stop")
        query = world.chats.presses(ANN, line, "Stop")
        await until(lambda: world.chats.said(ANN) == ["Stopped."])
        assert await answered(world, query) == "" and world.chats.removed == [line]

        post = world.chats.last(ANN)
        assert post.buttons == ["Try again"]
        late = world.chats.forges(ANN, line, stop)
        assert await answered(world, late) == OUT_OF_DATE

        again = data_of(post, "Try again")
        world.slow.go.set()
        query = world.chats.presses(ANN, post, "Try again")
        await until(lambda: world.chats.said(ANN) == ["Stopped.", "so: read"])
        assert await answered(world, query) == "" and post.buttons == []
        late = world.chats.forges(ANN, post, again)
        assert await answered(world, late) == OUT_OF_DATE
        assert world.chats.said(ANN) == ["Stopped.", "so: read"]
        assert world.chats.last(ANN).buttons == [], "it read a file, and changed none"


async def test_a_german_is_written_to_in_german(world: World) -> None:
    """As their Telegram says; what is to be approved stays byte for byte."""
    world.chats.person(ANN)["language_code"] = "de"
    world.model = calling("read_file", path="tax.pdf")
    async with world.running():
        world.chats.says(ANN, "what do I owe?")
        await until(lambda: said(world, "Liest tax.pdf"))
        line = world.chats.last(ANN)
        assert line.buttons == ["Stoppen"]
        stop = data_of(line, "Stoppen")
        world.chats.presses(ANN, line, "Stoppen")
        await until(lambda: said(world, "Gestoppt."))
        assert world.chats.last(ANN).buttons == ["Noch einmal versuchen"]
        late = world.chats.forges(ANN, line, stop)
        assert await answered(world, late) == "Dieser Knopf ist veraltet, also ist nichts passiert."

        world.model = calling("act", text="Stopped.")
        world.chats.says(ANN, "do it")
        await until(lambda: said(world, "Das erlauben?"))
        asked = world.chats.last(ANN)
        assert 'act {"text":"Stopped."}' in asked.text and "Grund der Frage" in asked.text
        assert asked.buttons == ["Ja, einmal", "Immer", "Nein", "Nie"]
        world.chats.presses(ANN, asked, "Nein")
        await until(lambda: said(world, "Nicht erlaubt: ann sagt nein"))


async def test_what_became_of_a_question_is_told_in_german_and_an_answer_as_it_was_given(
    world: World,
) -> None:
    """An answer may read like a sentence of ours, and stays what the person said."""
    world.chats.person(ANN)["language_code"] = "de"
    world.model = calling("ask_user", question="How is it?", choices=["Fine. Stopped.", "No"])
    async with world.running():
        world.chats.says(ANN, "look")
        post = await asked(world, ANN)
        assert post.buttons == ["Fine. Stopped.", "No"]
        world.chats.presses(ANN, post, "Fine. Stopped.")
        await until(lambda: not post.buttons)
        assert post.text == "How is it?\n\nann: Fine. Stopped."

        world.chats.says(ANN, "look again")
        post = await asked(world, ANN)
        world.chats.says(ANN, "never mind, tell me a joke")
        await until(lambda: not post.buttons)
    assert post.text == (
        "How is it?\n\nNicht mehr gefragt: statt einer Antwort kam eine neue Nachricht"
    )


async def test_a_late_press_disturbs_no_other_turn(world: World) -> None:
    world.model = calling("read_file", path="tax.pdf")
    async with world.running():
        world.chats.says(ANN, "what do I owe?")
        await until(lambda: said(world, "Reading"))
        stop = data_of(world.chats.last(ANN), "Stop")
        world.chats.says(ANN, "/stop")
        await until(lambda: said(world, "Stopped."))
        stopped = world.chats.last(ANN)
        world.chats.says(ANN, "and now?")
        await until(lambda: said(world, "Reading"))
        late = world.chats.forges(ANN, stopped, stop)
        again = world.chats.presses(ANN, stopped, "Try again")
        await anyio.sleep(0.3)
        world.slow.go.set()
        await until(lambda: world.chats.said(ANN) == ["Stopped.", "so: read"])
        assert await answered(world, late) == OUT_OF_DATE == await answered(world, again)
        await until(lambda: stopped.buttons == [])


async def test_a_failure_can_be_tried_again(world: World) -> None:
    broken = [True]

    def script(request: Request) -> Any:
        if broken:
            raise ModelRequestRefused("the provider is on fire")
        return say("now it works")

    world.model = ScriptedModel(script)
    async with world.running():
        world.chats.says(ANN, "hello")
        await until(lambda: said(world, "could not answer"))
        broken.clear()
        post = world.chats.last(ANN)
        world.chats.presses(ANN, post, "Try again")
        await until(lambda: said(world, "now it works") and post.buttons == [])


def writing(request: Request) -> Any:
    last = request.messages[-1].message
    if last.role == "tool":
        return say("written")
    raw = msgspec.Raw(b'{"path":"notes.txt","content":"new"}')
    return say("", ToolCall(f"c{len(request.messages)}", "write_file", raw))


def notes(world: World) -> list[Path]:
    return list(world.home.rglob("workspace/**/notes.txt"))


async def test_changes_of_files_are_undone(world: World) -> None:
    world.more_tools["write_file"] = write_file
    world.model = ScriptedModel(writing)
    async with world.running():
        world.chats.says(ANN, "write it down")
        await until(lambda: said(world, "written"))
        post = world.chats.last(ANN)
        assert post.buttons == ["Undo changes"] and notes(world)
        undo = data_of(post, "Undo changes")
        world.chats.presses(ANN, post, "Undo changes")
        await until(lambda: said(world, "Put back: notes.txt.") and post.buttons == [])
        assert not notes(world) and said(world, "as it was before “write it down”")
        late = world.chats.forges(ANN, post, undo)
        assert await answered(world, late) == OUT_OF_DATE
        assert len(world.chats.said(ANN)) == 2


async def test_who_may_not_is_told_so_and_the_button_stays(world: World) -> None:
    world.chats.group(FAMILY)
    world.more_tools["write_file"] = write_file
    world.model = ScriptedModel(writing)
    async with world.running():
        world.chats.says(ANN, "@desk_bot write it down", FAMILY)
        await until(lambda: said(world, "written", FAMILY))
        post = world.chats.last(FAMILY)
        refused = await answered(world, world.chats.presses(BOB, post, "Undo changes"))
        assert "only an owner may undo it" in refused and notes(world)
        stranger = await answered(world, world.chats.presses(99, post, "Undo changes"))
        assert stranger and notes(world) and post.buttons == ["Undo changes"]
        assert world.chats.said(FAMILY) == ["written"]
        world.chats.presses(ANN, post, "Undo changes")
        await until(lambda: post.buttons == [] and not notes(world))


async def test_a_long_answer_comes_as_a_document(world: World) -> None:
    """The whole Markdown as the model wrote it, named after its first heading."""
    world.model = ScriptedModel(lambda _: say(HEADED))
    async with world.running():
        world.chats.says(ANN, "/document")
        await until(lambda: said(world, "no answer in this conversation yet"))
        world.chats.says(ANN, "tell me all")
        await until(lambda: " ".join(world.chats.said(ANN)).count("word") == 8 * 500)
        posts = [post for post in world.chats.messages(ANN) if "word" in post.text]
        assert len(posts) > 3 and [post.buttons for post in posts[:-1]] == [[]] * (len(posts) - 1)
        post = posts[-1]
        assert post.buttons == ["As a document"]
        send = data_of(post, "As a document")
        world.chats.says(ANN, "go on")  # the button is about its own answer
        await until(lambda: " ".join(world.chats.said(ANN)).count("word") == 16 * 500)
        query = world.chats.presses(ANN, post, "As a document")
        await until(lambda: world.chats.last(ANN).file and post.buttons == [])
        document = world.chats.last(ANN)
        assert document.file.decode() == HEADED
        assert document.json["document"]["file_name"] == "The plan A B.md"
        assert await answered(world, query) == ""
        assert await answered(world, world.chats.forges(ANN, post, send)) == OUT_OF_DATE

        before = len(world.chats.messages(ANN))
        world.chats.says(ANN, "/document")
        await until(lambda: len(world.chats.messages(ANN)) == before + 2)
        assert world.chats.last(ANN).file.decode() == HEADED


async def test_changes_can_be_undone_once_the_document_was_sent(world: World) -> None:
    """As long as the answer is the last one: then only the button that was pressed is gone."""

    def script(request: Request) -> Any:
        return say(HEADED) if request.messages[-1].message.role == "tool" else writing(request)

    world.more_tools["write_file"] = write_file
    world.model = ScriptedModel(script)
    async with world.running():
        world.chats.says(ANN, "write it down")
        await until(lambda: world.chats.said(ANN) and len(world.chats.last(ANN).buttons) == 2)
        post = world.chats.last(ANN)
        assert post.buttons == ["Undo changes", "As a document"]
        send = data_of(post, "As a document")
        world.chats.presses(ANN, post, "As a document")
        await until(lambda: world.chats.last(ANN).file and post.buttons == ["Undo changes"])
        assert await answered(world, world.chats.forges(ANN, post, send)) == OUT_OF_DATE
        assert post.buttons == ["Undo changes"] and notes(world)
        world.chats.presses(ANN, post, "Undo changes")
        await until(lambda: said(world, "Put back: notes.txt.") and post.buttons == [])
        assert not notes(world)

        world.chats.says(ANN, "write it down again")
        await until(lambda: len(world.chats.last(ANN).buttons) == 2)
        post = world.chats.last(ANN)
        world.model = ScriptedModel(lambda _: say("fine"))
        world.chats.says(ANN, "thanks")
        await until(lambda: len(world.chats.last(ANN).buttons) != 2)
        world.chats.presses(ANN, post, "As a document")
        await until(lambda: world.chats.last(ANN).file and post.buttons == [])


async def test_a_document_holds_no_secret_that_became_one_later(world: World) -> None:
    key = "sk-proj-violet-harbour-4711-lane"
    world.model = ScriptedModel(lambda _: say(f"# Use {key}\n\nThe key is {key}."))
    async with world.running():
        world.chats.says(ANN, "which key?")
        await until(lambda: said(world, key))
    world.secrets["OPENAI_API_KEY"] = key
    async with world.running():
        world.chats.says(ANN, "/document")
        await until(lambda: world.chats.last(ANN).file)
        sent = world.chats.last(ANN)
        assert sent.file.decode().endswith("The key is {{secret:OPENAI_API_KEY}}.")
        assert key not in sent.json["document"]["file_name"]


@pytest.mark.timeout(240)
async def test_a_press_counts_once_whenever_the_process_dies(world: World) -> None:
    """At each boundary behind the press: in the end it was tried again once, and once alone."""

    def script(request: Request) -> Any:
        raise ModelRequestRefused("the provider is on fire")

    world.model = ScriptedModel(script)
    at = 0
    blown = True
    while blown:
        at += 1
        post = await fail_once(world, f"question {at}")
        before = len(world.chats.said(ANN))
        query = world.chats.presses(ANN, post, "Try again")
        world.fuse = Fuse(at)
        blown = await live_until_quiet(world, post, before)
        world.fuse = Fuse()
        if blown:
            assert not await live_until_quiet(world, post, before)
        told = [text for text in world.chats.said(ANN)[before:] if "Sorry" in text]
        assert told and sum("duplicate" not in text for text in told) <= 1, (at, told)
        assert query in world.chats.answers
    assert at > 4


async def fail_once(world: World, question: str) -> Post:
    """Ask, and return the message with the button."""
    before = len(world.chats.messages(ANN))

    def offered() -> list[Post]:
        return [post for post in world.chats.messages(ANN)[before:] if post.buttons]

    async with world.running():
        world.chats.says(ANN, question)
        await until(offered)
    return offered()[0]


async def live_until_quiet(world: World, post: Post, before: int) -> bool:
    """Run until the answer to the press is there and its buttons are gone. True when the fuse blew
    first."""

    def is_done() -> bool:
        return any("Sorry" in text for text in world.chats.said(ANN)[before:]) and not post.buttons

    try:
        async with world.running():
            await until(is_done)
            await anyio.sleep(0.2)
    except BaseExceptionGroup as group:
        if group.subgroup(Crash) is None:
            raise
        return True
    return False
