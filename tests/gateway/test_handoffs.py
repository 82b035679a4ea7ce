"""A conversation goes on in the chat that its person has on another channel, with what is open in
it, and comes back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec

from deskhand.config.config import Config, Home, Settings
from deskhand.gateway.queries import hand_session_over
from deskhand.models.base import Request
from deskhand.runtime.app import App, Parts, open_app
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.tools.conversation_tools import ask_user
from deskhand.types.identity import Address, Answer, Inbound, Said
from deskhand.types.messages import Message, Text, ToolCall
from deskhand.types.people import Identity


def talk(request: Request) -> Message:
    """Asks where it is asked to, and else says how many messages of the person it sees."""
    last = request.messages[-1].message
    if last.role == "tool":
        return say(f"you chose {last.parts[0].text}")  # type: ignore[union-attr]
    if "ask me" in last.own_text:
        choices = {"question": "Which colour?", "choices": ["red", "blue"]}
        return say("", ToolCall("c1", "ask_user", msgspec.Raw(msgspec.json.encode(choices))))
    heard = [each.message.own_text for each in request.messages if each.message.role == "user"]
    return say(f"heard: {', '.join(words.partition('] ')[2] for words in heard)}")


class World:
    """Ann writes at her desk and on her phone, Bob on the same phone network."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.desk, self.phone = MemoryChannel("desk"), MemoryChannel("phone")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[App]:
        given = {
            "defaults": {"models": ["scripted/x"]},
            "channels": {"desk": {"type": "memory"}, "phone": {"type": "memory"}},
        }
        config = msgspec.convert(given, Config)
        settings = Settings(Home(self.home), config, environment={"HOME": str(self.home)})
        parts = Parts(
            lambda _: ScriptedModel(talk), {"ask_user": ask_user}, channels=(self.desk, self.phone)
        )
        async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
            if "ann" not in {user.name for user in await app.people.users()}:
                await app.people.add_user("ann", "member", Identity("desk", "ann"))
                await app.people.link("ann", Identity("phone", "ann"))
                await app.people.add_user("bob", "member", Identity("phone", "bob"))
            tasks.start_soon(app.run)
            yield app
            tasks.cancel_scope.cancel()

    async def says(self, channel: MemoryChannel, text: str, answers: int = 1, **more: str) -> str:
        """Write this, and return the last of so many messages that come on any channel."""
        before = len(self.desk.sent) + len(self.phone.sent)
        channel.write(text, chat=f"{more.get('sender', 'ann')}-1", **more)
        await until(lambda: len(self.desk.sent) + len(self.phone.sent) >= before + answers)
        return last(channel)


async def until(met: Callable[[], bool]) -> None:
    with anyio.fail_after(20):
        while not met():
            await anyio.sleep(0.005)


def last(channel: MemoryChannel) -> str:
    return "".join(getattr(part, "text", "") for part in channel.sent[-1][0].parts)


async def test_it_goes_on_there_and_comes_back(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.running():
        await world.says(world.phone, "hello from the phone")
        await world.says(world.desk, "one")
        left = await world.says(world.desk, "/handoff phone", 2)
        assert left == "From now on this conversation is on phone."
        assert last(world.phone) == "“one” goes on here. Write /handoff back to return to desk."
        assert await world.says(world.phone, "two") == "heard: one, two"
        assert await world.says(world.desk, "three") == "heard: one, two, three"
        back = await world.says(world.phone, "/handoff back", 2)
        assert back == "This conversation goes on where it began."
        assert last(world.desk).startswith("“one” goes on here.")
        assert await world.says(world.phone, "four") == "heard: hello from the phone, four"
        assert await world.says(world.desk, "five") == "heard: one, two, three, five"


async def test_an_open_question_goes_along(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.running():
        await world.says(world.phone, "hello")
        await world.says(world.desk, "ask me")
        await world.says(world.desk, "/handoff phone", 3)
        ask = world.phone.sent[-1][0].ask
        assert ask is not None and ask.question == "Which colour?"
        answer = Inbound(
            "b1", Address("phone", chat="ann-1"), "ann", 0.0, Answer(ask.ask_id, "red")
        )
        world.phone.waiting.append(answer)
        await until(lambda: "you chose" in last(world.phone))
    assert last(world.phone) == "you chose red"
    assert not any("you chose" in str(sent) for sent, _ in world.desk.sent)


async def test_from_the_page(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.running() as app:
        await world.says(world.phone, "hello")
        for number, text in enumerate(("one", "/handoff phone")):
            said = Said(Message("user", (Text(text),)))
            name = "default/web:ann:x"
            inbound = Inbound(f"w{number}", Address("web"), "ann", 0.0, said, session=name)
            assert (await app.door.submit(inbound)).status == "accepted"
        await until(lambda: "goes on here" in last(world.phone))
        assert last(world.phone) == "“one” goes on here. Write /handoff back to end that."
        assert await world.says(world.phone, "two") == "heard: one, two"
        assert "where it began" in await world.says(world.phone, "/handoff back")


async def test_it_lasts_over_a_restart(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.running():
        await world.says(world.phone, "hello")
        await world.says(world.desk, "ask me")
        await world.says(world.desk, "/handoff phone", 3)
    async with world.running():
        assert await world.says(world.phone, "blue") == "you chose blue"


async def test_where_it_does_not_lead(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.running():
        assert "CHANNEL" in await world.says(world.desk, "/handoff")
        assert "no other chat with you alone on 'phone'" in await world.says(
            world.desk, "/handoff phone"
        )
        await world.says(world.phone, "hello", sender="bob")
        assert "no other chat with you alone" in await world.says(world.desk, "/handoff phone")
        assert "no other chat with you alone" in await world.says(world.desk, "/handoff desk")
        assert "nowhere else" in await world.says(world.desk, "/handoff back")


async def test_it_is_not_taken_where_others_read(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.running():
        await world.says(world.phone, "hello")
        group = Address("desk", chat="family", group=True)
        for number, text in enumerate(("hi", "/handoff phone")):
            written = world.desk.write(text)
            world.desk.waiting[-1] = msgspec.structs.replace(
                written, external_id=f"g{number}", address=group
            )
            await until(lambda count=number + 1: len(world.desk.sent) == count)  # type: ignore[misc]
        assert last(world.desk) == "Others take part in this conversation, so it stays here."
        assert await world.says(world.phone, "two") == "heard: hello, two"


async def test_who_gets_the_chat_later_does_not_get_the_conversation(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.running() as app:
        await world.says(world.phone, "hello")
        await world.says(world.desk, "secret plan")
        await world.says(world.desk, "/handoff phone", 2)
        await app.people.unlink(Identity("phone", "ann"))
        await app.people.add_user("eve", "member", Identity("phone", "ann"))
        assert "secret" not in await world.says(world.phone, "what did we say?")
        assert "secret" not in await world.says(world.phone, "/handoff back")


async def test_nor_where_one_chat_is_named_as_the_other_begins(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.running() as app:
        place, secret = "default/phone:ann-1", "default/phone:ann-12"
        world.phone.write("secret plan", chat="ann-12", sender="bob", external_id="b1")
        await until(lambda: len(world.phone.sent) == 1)
        await app.store.change([hand_session_over(place, secret)])
        assert await world.says(world.phone, "what did we say?") == "heard: what did we say?"


async def test_back_where_there_is_no_beginning(tmp_path: Path) -> None:
    """Nothing was said before it was handed over."""
    world = World(tmp_path)
    async with world.running():
        await world.says(world.phone, "hello")
        await world.says(world.desk, "/handoff phone", 2)
        await world.says(world.phone, "one")
        assert "nowhere else" in await world.says(world.phone, "/handoff back")
        assert await world.says(world.phone, "two") == "heard: hello, two"


async def test_start_leaves_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.running():
        await world.says(world.phone, "hello")
        await world.says(world.desk, "one")
        await world.says(world.desk, "/handoff phone", 2)
        await world.says(world.phone, "/start")
        assert "one" not in await world.says(world.phone, "two")


async def test_a_handoff_delivered_again_does_nothing_more(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.running():
        await world.says(world.phone, "hello")
        await world.says(world.desk, "one")
        await world.says(world.desk, "/handoff phone", 2, external_id="h1")
        await world.says(world.phone, "/handoff back", 2)
        count = len(world.desk.sent) + len(world.phone.sent)
        world.desk.write("/handoff phone", chat="ann-1", external_id="h1")
        await until(lambda: world.desk.confirmed.count("h1") == 2)
        assert await world.says(world.phone, "two") == "heard: hello, two"
    assert len(world.desk.sent) + len(world.phone.sent) == count + 1
