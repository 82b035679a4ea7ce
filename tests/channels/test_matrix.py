"""What a Matrix channel makes of what people do there, and how it says things."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, suppress
from itertools import count
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import anyio
import pytest
from msgspec.structs import replace

from deskhand.channels.base import Closing, Room
from deskhand.channels.matrix.channel import MatrixChannel, open_matrix
from deskhand.channels.matrix.reader import VOICE_MARK
from deskhand.channels.settings import ChannelConfig, GroupRule
from deskhand.testing.channel import MemoryContext
from deskhand.testing.channel_suite import saying, take
from deskhand.testing.matrix.person import MatrixError, Media, Person
from deskhand.testing.matrix.synapse import Homeserver, Synapse
from deskhand.testing.ogg import make_silence
from deskhand.types.commit import Choices, Outgoing
from deskhand.types.errors import ChannelError, ConfigError, LoginRefused, SendRefused
from deskhand.types.identity import Address, Deletion, Edit, Inbound, Reaction, Said
from deskhand.types.messages import Audio, File, Image, Text

Open = Callable[..., MatrixChannel]
PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 40
_NUMBERS = count(1)
SEALED = {
    "algorithm": "m.megolm.v1.aes-sha2",
    "ciphertext": "AwgAEnACgAkLmt6qF84IK",
    "device_id": "RJYKSTBOIE",
    "sender_key": "IlRMeOPX2e0MurIyfWEucYBRVOEEUMrOHqn/8mLqMjA",
    "session_id": "X3lUlvLELLYxeTx4yOVu6UDpasGEVO0Jbu+QFnm0cKQ",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Homeserver]:
    """Its start takes seconds: one for all."""
    with Homeserver(tmp_path_factory.mktemp("synapse")) as found:
        yield found


@pytest.fixture
async def synapse(home: Homeserver) -> AsyncIterator[Synapse]:
    async with Synapse(home) as found:
        yield found


async def person(synapse: Synapse, name: str) -> Person:
    return await synapse.register(f"{name}{next(_NUMBERS)}")


@pytest.fixture
async def ann(synapse: Synapse) -> Person:
    return await person(synapse, "ann")


@pytest.fixture
async def bob(synapse: Synapse) -> Person:
    return await person(synapse, "bob")


@pytest.fixture
async def bot(synapse: Synapse) -> Person:
    return await person(synapse, "desk")


@pytest.fixture
async def open_channel(synapse: Synapse, bot: Person, tmp_path: Path) -> AsyncIterator[Open]:
    """Opens a channel on the account, with these settings; what comes from now on is for it."""
    opened: list[Closing] = []
    context = MemoryContext("matrix", ChannelConfig(), tmp_path / "state", bot.token)

    def open_(**config: Any) -> MatrixChannel:
        context.config = ChannelConfig(**{"base_url": synapse.url, **config})
        channel = open_matrix(context)
        opened.append(channel)
        return channel

    receiving = cast(AsyncGenerator[Inbound], open_().receive())
    async with aclosing(receiving):
        with anyio.move_on_after(0.3):
            await anext(receiving)
    assert context.cursor
    yield open_
    for channel in opened:
        await channel.close()


@pytest.fixture
async def room(ann: Person, bot: Person, open_channel: Open) -> str:
    """Where the two are alone."""
    found = await ann.direct(bot.user_id)
    await bot.join(found)
    return found


async def one(channel: MatrixChannel) -> Inbound:
    return (await take(channel, 1, confirm=True))[0]


async def one_then_away(synapse: Synapse, channel: MatrixChannel) -> Inbound:
    """The next one, after which nobody waits for more: what is said now is told at once."""
    async with aclosing(cast(AsyncGenerator[Inbound], channel.receive())) as inbounds:
        found = await anext(inbounds)
        synapse.fail("/sync", 502)
        with pytest.raises(ChannelError):
            await anext(inbounds)
    return found


def parts(inbound: Inbound) -> tuple[Any, ...]:
    assert isinstance(inbound.body, Said), inbound
    return inbound.body.message.parts


def texts(inbounds: list[Inbound]) -> list[str]:
    return [parts(each)[-1].text for each in inbounds]


def address(bot: Person, room: str, **about: Any) -> Address:
    return Address("matrix", bot.user_id, room, **about)


async def test_a_message(ann: Person, bot: Person, room: str, open_channel: Open) -> None:
    name = await ann.says(room, "is 1 < 2 & so on?", formatted="<b>no</b>")
    inbound = await one(open_channel())
    assert inbound.address == address(bot, room) and inbound.sender == ann.user_id
    assert parts(inbound) == (Text("is 1 < 2 & so on?"),) and inbound.external_id == name
    assert inbound.at > 1_700_000_000 and not inbound.by_program


async def test_words_that_begin_like_its_name(
    ann: Person, bot: Person, room: str, open_channel: Open
) -> None:
    local = bot.user_id[1:].partition(":")[0]
    said = [f"{local}tops are here", f"@{local}tops", f"{local}: hello", f"{bot.user_id} hi"]
    for text in said:
        await ann.says(room, text)
    found = await take(open_channel(), 4, confirm=True)
    assert texts(found) == [*said[:2], "hello", "hi"]


async def test_a_group_with_threads(
    ann: Person, bob: Person, bot: Person, open_channel: Open
) -> None:
    """Only what is meant for it, without its name; each thread is a conversation, in which a change
    and a reaction are said, too."""
    room = await ann.group("family", bob.user_id, bot.user_id)
    await bob.join(room)
    await bot.join(room)
    mention = {"m.mentions": {"user_ids": [bot.user_id]}}
    await ann.says(room, "nobody is asked")
    named = await ann.says(room, f"{bot.user_id}: what is it?")
    await bob.says(room, "and you?", extra=mention)
    await bob.says(room, "!stop")
    channel = open_channel()
    found = await take(channel, 3, confirm=True)
    assert texts(found) == ["what is it?", "and you?", "!stop"]
    there = address(bot, room, group=True)
    assert found[0].address == there and [each.sender for each in found[1:]] == [bob.user_id] * 2
    answer = await channel.send(saying(there, "this", reply_to=named), "")
    await channel.send(saying(replace(there, thread=named), "aside", key="k2"), "")
    *_, post, aside = await ann.reads(room)
    assert (post.id, post.reply_to, aside.thread) == (answer, named, named)
    thread = {"rel_type": "m.thread", "event_id": named}
    asked = await ann.says(room, "here?", extra={**mention, "m.relates_to": thread})
    inbound = await one(channel)
    assert inbound.address == replace(there, thread=named)
    new = {"msgtype": "m.text", "body": "here, then?", **mention}
    change = {"rel_type": "m.replace", "event_id": asked}
    edit = {**new, "m.mentions": {}, "m.new_content": new, "m.relates_to": change}
    await ann.sends(room, "m.room.message", edit)
    await ann.reacts(room, asked, "👍")
    edited, reaction = await take(channel, 2, confirm=True)
    assert isinstance(edited.body, Edit) and edited.body.message.text == "here, then?"
    assert edited.address == reaction.address == inbound.address
    await ann.says(room, "everybody is heard")
    in_it = {room: GroupRule("all")}
    assert texts([await one(open_channel(group_rules=in_it))]) == ["everybody is heard"]


async def test_who_has_come_in_meanwhile_is_counted(
    synapse: Synapse, ann: Person, bob: Person, bot: Person, room: str, open_channel: Open
) -> None:
    """Also where so much was said that it is not told at once."""
    await ann.says(room, "hello")
    channel = open_channel()
    assert not (await one_then_away(synapse, channel)).address.group
    await ann.invite(room, bob.user_id)
    await bob.join(room)
    for number in range(130):
        await bob.notices(room, f"{number}")
    await bob.says(room, f"{bot.user_id} what did Ann say?")
    assert (await one(channel)).address.group


async def test_what_was_said_before_a_long_gap(ann: Person, room: str, open_channel: Open) -> None:
    said = [f"message {number}" for number in range(230)]
    for text in said:
        await ann.says(room, text)
    assert texts(await take(open_channel(), len(said), confirm=True)) == said


async def test_its_own_new_name_loses_nothing(
    synapse: Synapse, ann: Person, bot: Person, room: str, open_channel: Open
) -> None:
    await ann.says(room, "one")
    await one_then_away(synapse, open_channel())
    await ann.says(room, "two")
    path = f"/rooms/{quote(room)}/state/m.room.member/{quote(bot.user_id)}"
    await bot.call("PUT", path, {"membership": "join", "displayname": "Desk"})
    await ann.says(room, "three")
    assert texts(await take(open_channel(), 2, confirm=True)) == ["two", "three"]


async def test_edits_replies_and_reactions(
    ann: Person, bot: Person, room: str, open_channel: Open
) -> None:
    first = await ann.says(room, "helo")
    channel = open_channel()
    await channel.acknowledge(await one(channel))
    assert (await ann.reads(room))[0].reactions == [(bot.user_id, "👀")]
    await channel.react(Address("matrix", chat=room), first, "🎉")
    assert (bot.user_id, "🎉") in (await ann.reads(room))[0].reactions
    await ann.edits(room, first, "hello")
    await ann.reacts(room, first, "👍")
    await ann.replies(room, first, "> <@eve:localhost> !stop\n\nand?")
    await ann.replies(room, first, "> 5 is what I want")
    edited, reaction, reply, quote = await take(channel, 4, confirm=True)
    assert isinstance(edited.body, Edit) and edited.body.of == first
    assert edited.body.message.text == "hello" and edited.sender == ann.user_id
    assert reaction.body == Reaction(first, "👍", True)
    assert texts([reply]) == ["and?"] and reply.reply_to == first
    assert "5 is what I want" in texts([quote])[0]


FILES: list[tuple[bytes, str, str, Media, type]] = [
    (b"one,two", "a.csv", "text/csv", "m.file", File),
    (PNG, "a.png", "image/png", "m.image", Image),
    (b"OggS", "a.ogg", "audio/ogg", "m.audio", File),
    (b"mpeg", "a.mp4", "video/mp4", "m.video", File),
]


async def test_files(ann: Person, room: str, open_channel: Open) -> None:
    channel = open_channel()
    for data, name, mime, kind, part in FILES:
        await ann.sends_file(room, data, name, mime, kind, {"filename": name, "body": "look"})
        found, words = parts(await one(channel))
        assert isinstance(found, part) and words == Text("look")
        assert found.mime == mime  # type: ignore[attr-defined]
        assert await channel._context.get_blob(found.blob) == data  # type: ignore[attr-defined]


async def test_files_that_cannot_be_had(
    synapse: Synapse, ann: Person, room: str, open_channel: Open
) -> None:
    """The message comes all the same, and says what is missing; what cannot be had at once is asked
    for again. The token goes to the homeserver alone."""
    big = {"info": {"size": 51 * 2**20}, "filename": "big.iso", "body": "see here"}
    await ann.sends_file(room, b"x", "big.iso", "text/plain", extra=big)
    for url in ("https://evil.test/a", "mxc://../../x", "mxc://localhost/nothing", ""):
        await ann.sends_file(room, b"x", "a.txt", "text/plain", extra={"url": url})
    await ann.sends_file(room, b"late", "late.txt", "text/plain")
    synapse.fail("/nothing", 404, "M_NOT_FOUND")
    found = await take(open_channel(), 5, confirm=False)
    assert "50 MB" in parts(found[0])[0].text and parts(found[0])[1] == Text("see here")
    assert all("could not be fetched" in parts(each)[0].text for each in found[1:])
    synapse.fail("/media/download/localhost", 500, "M_UNKNOWN", times=2)
    *_, late = await take(open_channel(), 6, confirm=True)
    assert isinstance(parts(late)[0], File)


ODD: list[dict[str, Any]] = [
    {"msgtype": "m.text", "body": "x", "m.relates_to": "x"},
    {"msgtype": "m.text", "body": "x", "m.relates_to": {"rel_type": "m.thread"}},
    {"msgtype": "m.text", "body": "x", "m.relates_to": {"m.in_reply_to": [1]}},
    {"msgtype": "m.text", "body": "x", "m.mentions": {"user_ids": [1]}},
    {"msgtype": "m.file", "body": "x", "url": {}, "info": {"size": "x"}},
    {"msgtype": "m.file", "body": "x", "info": {"size": 2**53 - 1}},
    {"body": "x"},
]


async def test_an_event_that_cannot_be_read_holds_up_nothing(
    ann: Person, room: str, open_channel: Open
) -> None:
    for content in ODD:
        with suppress(MatrixError):  # the homeserver itself does not take it
            await ann.sends(room, "m.room.message", content)
    await ann.sends(room, "m.reaction", {"m.relates_to": {"rel_type": "m.annotation"}})
    await ann.says(room, "the end")
    receiving = cast(AsyncGenerator[Inbound], open_channel().receive())
    async with aclosing(receiving):
        with anyio.fail_after(8):
            async for inbound in receiving:
                if isinstance(inbound.body, Said) and inbound.body.message.text == "the end":
                    break


async def test_an_invitation_that_leads_nowhere_holds_up_nothing(
    synapse: Synapse, ann: Person, bob: Person, bot: Person, room: str, open_channel: Open
) -> None:
    """Anybody can invite to a room of a server that does not answer."""
    await bob.group("far away", bot.user_id)
    await ann.says(room, "hello")
    synapse.fail("/join/", 504, "M_UNKNOWN", times=1000)
    assert texts([await one(open_channel())]) == ["hello"]


async def test_what_was_said_in_a_room_that_it_comes_to(
    ann: Person, bob: Person, bot: Person, open_channel: Open
) -> None:
    """From the invitation on."""
    room = await ann.group("family", bob.user_id)
    await bob.join(room)
    await ann.says(room, f"{bot.user_id} before")
    await ann.invite(room, bot.user_id)
    await ann.says(room, f"{bot.user_id} hello")
    assert texts([await one(open_channel())]) == ["hello"]
    assert bot.user_id in await ann.members(room)


async def test_how_it_is_said(ann: Person, bot: Person, room: str, open_channel: Open) -> None:
    channel = open_channel()
    here = address(bot, room)
    said = f"**so** [x](https://a.test) @room {ann.user_id} <img src=x>"
    name = await channel.send(saying(here, said), "late")
    post = (await ann.reads(room))[-1]
    assert post.id == name and post.content["m.mentions"] == {}
    assert post.text == f"(late)\nso x (https://a.test) @room {ann.user_id} <img src=x>"
    assert "<strong>so</strong>" in post.html and "<img" not in post.html
    assert await channel.send(saying(here, said), "late") == name, "it is the same message"
    assert len(await ann.reads(room)) == 1
    await channel.show_typing(here)
    assert await ann.typing(room) == [bot.user_id]
    await channel.send(replace(saying(here, "quiet", key="k2"), silent=True), "")
    assert (await ann.reads(room))[-1].content["msgtype"] == "m.notice"
    await channel.remove(name, here)
    await channel.remove(name, here)
    assert await ann.said(room, bot.user_id) == ["quiet"]


async def test_what_is_written_over_it_is_the_last(
    ann: Person, bot: Person, room: str, open_channel: Open
) -> None:
    """Also where it has been said before."""
    channel = open_channel()
    here = address(bot, room)
    name = await channel.send(saying(here, "working"), "")
    for text in ("reading", "working", "reading"):
        assert await channel.edit(name, saying(here, text), "") == name
        assert await ann.said(room, bot.user_id) == [text]


LONG = {
    "Chinese": "漢字" * 3500,
    "quotes": 'say("<&>") ' * 600,
    "lines": '"\n' * 3500,
    "emphasis": "**a** *b* " * 1200,
    "code": "```\n" + "<>&\"'\\\n" * 1500 + "```",
}


@pytest.mark.parametrize("name", LONG)
async def test_a_long_answer_fits(
    name: str, ann: Person, bot: Person, room: str, open_channel: Open
) -> None:
    """An event has at most 65,536 bytes, as JSON."""
    channel = open_channel()
    here = address(bot, room)
    await channel.send(saying(here, LONG[name]), "")
    draft = await channel.send(saying(here, "half", key="k2"), "")
    await channel.edit(draft, saying(here, LONG[name], key="k3"), "")
    letters = "".join("".join(await ann.said(room, bot.user_id)).split())
    assert letters[: len(letters) // 2] == letters[len(letters) // 2 :] and len(letters) > 2000


async def test_files_out(ann: Person, bot: Person, room: str, open_channel: Open) -> None:
    channel = open_channel()
    keep = channel._context.put_blob
    items = (
        Image(await keep(PNG), "image/png", "a.png"),
        File(await keep(b"text"), "@room ?#&/ü.txt", "text/plain", 4),
        File("sha256:" + "0" * 64, "gone.txt", "text/plain", 1),
    )
    await channel.send(saying(address(bot, room), "**see**", *items), "")
    words, picture, file, gone = await ann.reads(room)
    assert words.text == "see" and picture.content["msgtype"] == "m.image"
    assert await ann.downloads(picture.url) == PNG and await ann.downloads(file.url) == b"text"
    assert file.text == "@room ?#&/ü.txt" and "gone.txt is no longer there" in gone.text
    assert [each.content.get("m.mentions") for each in (picture, file, gone)] == [{}] * 3


async def test_a_file_that_is_too_large_is_named(
    synapse: Synapse, ann: Person, bot: Person, room: str, open_channel: Open
) -> None:
    """How much a homeserver takes is its own matter; what is said beside the file arrives."""
    channel = open_channel()
    large = File(await channel._context.put_blob(b"text"), "big.iso", "text/plain", 4)
    synapse.fail("/media/v3/upload", 413, "M_TOO_LARGE")
    await channel.send(saying(address(bot, room), "see", large), "")
    said = await ann.said(room, bot.user_id)
    assert said[0] == "see" and "big.iso was not sent" in said[1]
    await channel.send(saying(address(bot, room), large, key="k2"), "")
    assert (await ann.reads(room))[-1].content["msgtype"] == "m.file"


async def test_voice_messages_out(ann: Person, bot: Person, room: str, open_channel: Open) -> None:
    """With a length and a waveform; what is no Opus is played as any other sound."""
    channel = open_channel()
    keep = channel._context.put_blob
    spoken = Audio(await keep(make_silence(3.0)), "audio/ogg")
    wave = Audio(await keep(b"RIFF0000WAVE"), "audio/wav")
    await channel.send(saying(address(bot, room), spoken, wave), "")
    voice, sound = [each.content for each in await ann.reads(room)]
    assert voice["msgtype"] == sound["msgtype"] == "m.audio"
    assert voice["info"]["duration"] == 3000 and voice["info"]["mimetype"] == "audio/ogg"
    assert voice["org.matrix.msc1767.audio"] == {"duration": 3000, "waveform": [1024] * 100}
    assert voice[VOICE_MARK] == {} and VOICE_MARK not in sound
    assert (voice["body"], sound["body"]) == ("voice.ogg", "voice.wav")


async def test_a_voice_message(ann: Person, room: str, open_channel: Open) -> None:
    """Some name the codec in its type."""
    channel = open_channel()
    await ann.speaks(room, b"OggS", "audio/ogg; codecs=opus")
    (audio,) = parts(await one(channel))
    assert isinstance(audio, Audio) and audio.mime == "audio/ogg"
    assert await channel._context.get_blob(audio.blob) == b"OggS"


async def test_questions_in_words(ann: Person, bot: Person, room: str, open_channel: Open) -> None:
    channel = open_channel()
    ask = Choices("ask_0", "Which **one**?", ("red", "blue"))
    asking = Outgoing("k", address(bot, room), (Text(ask.text),), ask=ask)
    name = await channel.send(asking, "")
    assert "red" in (await ann.reads(room))[0].text
    decided = replace(asking, ask=replace(ask, decided="red, says Ann"))
    assert await channel.edit(name, decided, "") == name
    assert "says Ann" in (await ann.reads(room))[0].text
    question = 'shell {"command":"echo **a** <b> [c](d) https://evil.test"}'
    approval = Choices("ask_1", question, ("once", "no"), approval=True)
    await channel.send(replace(asking, key="k2", ask=approval), "")
    post = (await ann.reads(room))[-1]
    assert question.replace("https://evil.test", "https[:]//evil[.]test") in post.text
    assert "once" in post.text and "href" not in post.html


async def test_what_surely_did_not_arrive(
    synapse: Synapse, ann: Person, bot: Person, room: str, open_channel: Open
) -> None:
    """What may have arrived is sent again, and is the same message."""
    channel = open_channel()
    here = address(bot, room)
    faults: list[tuple[str, Callable[[], object], bool, float | None]] = [
        ("before", lambda: synapse.fail("/m.room.encryption", 502), True, None),
        ("flood", lambda: synapse.fail("/send/", 429, retry_after_ms=1500), True, 1.5),
        ("5xx", lambda: synapse.fail("/send/", 502), False, None),
        ("lost", lambda: synapse.lose("/send/", times=2), False, None),
    ]
    found = {}
    for key, plan, *_ in faults:
        plan()
        with pytest.raises(ChannelError) as fault:
            await channel.send(saying(here, key, key=key), "")
        assert not isinstance(fault.value, SendRefused)
        found[key] = (fault.value.unsent, fault.value.retry_after_s)
        await channel.send(saying(here, key, key=key), "")
    synapse.hang("/send/")
    with anyio.move_on_after(0.5) as scope:
        await channel.send(saying(here, "hung", key="k"), "")
    assert scope.cancelled_caught
    await open_channel().send(saying(here, "hung", key="k"), "")
    assert await ann.said(room, bot.user_id) == [*(each[0] for each in faults), "hung"]
    await synapse.stop()
    with pytest.raises(ChannelError) as away:
        await channel.send(saying(here, "x", key="k3"), "")
    assert away.value.unsent
    await synapse.start(synapse.port)
    assert found == {key: (unsent, wait) for key, _, unsent, wait in faults}


async def test_a_long_answer_that_breaks_off_goes_on_where_it_was(
    synapse: Synapse, ann: Person, bot: Person, room: str, open_channel: Open
) -> None:
    channel = open_channel()
    long = saying(address(bot, room), "\n\n".join(str(i) * 3000 for i in range(1, 4)))
    synapse.lose("/send/", times=2, after=1)
    with pytest.raises(ChannelError) as fault:
        await channel.send(long, "")
    assert not fault.value.unsent
    await channel.send(long, "")
    assert [each[0] for each in await ann.said(room, bot.user_id)] == ["1", "2", "3"]


async def test_an_encrypted_room(ann: Person, bot: Person, open_channel: Open) -> None:
    """It says once that it cannot read there, and nothing else, also where it asked too early."""
    room = await ann.group("secret", encrypted=True)
    there = address(bot, room)
    channel = open_channel()
    with pytest.raises(SendRefused):
        await channel.send(saying(there, "too early"), "")
    await ann.invite(room, bot.user_id)
    await bot.join(room)
    with pytest.raises(SendRefused, match="encrypted"):
        await channel.send(saying(there, "the secret", key="k2"), "")
    for _ in range(2):
        await ann.sends(room, "m.room.encrypted", SEALED)
        receiving = cast(AsyncGenerator[Inbound], open_channel().receive())
        async with aclosing(receiving):
            with anyio.move_on_after(0.7):
                await anext(receiving)
    said = await ann.said(room, bot.user_id)
    assert len(said) == 1 and "encrypted" in said[0]


async def test_where_it_goes_on(
    synapse: Synapse, ann: Person, room: str, open_channel: Open
) -> None:
    """Where a sync ended is saved once all of it is taken."""
    await ann.says(room, "one")
    await ann.says(room, "two")
    channel = open_channel()
    async with aclosing(cast(AsyncGenerator[Inbound], channel.receive())) as inbounds:
        assert texts([await anext(inbounds)]) == ["one"]
    async with aclosing(cast(AsyncGenerator[Inbound], channel.receive())) as inbounds:
        assert texts([await anext(inbounds), await anext(inbounds)]) == ["one", "two"]
        with pytest.raises(ChannelError, match="its own token"):
            await one(open_channel())
        synapse.fail("/sync", 502)
        with pytest.raises(ChannelError):
            await anext(inbounds)
    await ann.says(room, "three")
    assert texts([await one(channel)]) == ["three"]


async def test_when_it_cannot_read_any_more(
    synapse: Synapse, bot: Person, room: str, open_channel: Open
) -> None:
    """It is seen in its health."""
    channel = open_channel()
    synapse.fail("/sync", 400, "M_INVALID_PARAM")
    with pytest.raises(ChannelError):
        await one(channel)
    assert "M_INVALID_PARAM" in channel.health().error
    await bot.log_out()
    with pytest.raises(LoginRefused, match="sign in again") as refused:
        await channel.send(saying(address(bot, room), "x"), "")
    assert refused.value.unsent
    with pytest.raises(LoginRefused):
        await one(channel)
    assert "sign in again" in channel.health().error


@pytest.mark.parametrize("where", ["!nowhere:localhost", "#x:localhost", "../x", ""])
async def test_nobody_there(where: str, bot: Person, open_channel: Open) -> None:
    with pytest.raises(SendRefused):
        await open_channel().send(saying(address(bot, where), "x"), "")


def test_what_cannot_work(tmp_path: Path) -> None:
    wrong = [
        (ChannelConfig(), "secret", "has to be the address"),
        (ChannelConfig(base_url="https://matrix.org"), "", "MATRIX_ACCESS_TOKEN is not set"),
        (ChannelConfig(base_url="http://matrix.org"), "secret", "with https://"),
        (ChannelConfig(base_url="matrix.org"), "secret", "https://"),
    ]
    for config, token, why in wrong:
        with pytest.raises(ConfigError, match=why):
            open_matrix(MemoryContext("matrix", config, tmp_path, token))


# ---------------------------------------------------------------------- what was written before


async def test_rooms(
    synapse: Synapse, ann: Person, bob: Person, bot: Person, room: str, open_channel: Open
) -> None:
    """Those that it has joined, by their names."""
    family = await ann.group("Family", bot.user_id)
    sealed = await ann.group("Sealed", bot.user_id, encrypted=True)
    await ann.group("Not joined", bot.user_id)
    await ann.group("Elsewhere", bob.user_id)
    for each in (family, sealed):
        await bot.join(each)
    channel = open_channel()
    synapse.fail("/sync", 429, retry_after_ms=300)
    found = {each.id: each for each in await channel.list_rooms()}
    assert found == {
        room: Room(room, ann.user_id, "room"),
        family: Room(family, "Family", "room"),
        sealed: Room(sealed, "Sealed", "encrypted room, which cannot be read"),
    }
    with pytest.raises(SendRefused, match="encrypted"):
        await channel.read_history(Address("matrix", bot.user_id, sealed), 10)


async def test_what_a_room_says(
    synapse: Synapse, ann: Person, bot: Person, room: str, open_channel: Open
) -> None:
    """As it reads now: changed, without what was taken back, and nobody who came in."""
    for number in range(120):
        await ann.says(room, f"old {number}")
    changed = await ann.says(room, "wrong")
    gone = await ann.says(room, "taken back")
    await ann.edits(room, changed, "right")
    await ann.redacts(room, gone)
    await ann.reacts(room, changed, "👍")
    await ann.sends_file(room, b"x", "a.csv", "text/csv")
    await ann.replies(room, changed, "an answer")
    channel = open_channel()
    here = Address("matrix", bot.user_id, room)
    await channel.send(saying(here, "I see"), "")
    synapse.fail("/messages", 429, retry_after_ms=300)
    found = await channel.read_history(here, 5)
    assert [each.text for each in found] == [
        "old 119",
        "right",
        "[file a.csv]",
        "an answer",
        "I see",
    ]
    assert [each.ours for each in found] == [False] * 4 + [True]
    assert found[1].id == changed and found[1].sender == found[1].name == ann.user_id
    whole = await channel.read_history(here, 1_000)
    assert len(whole) == 124 and whole[0].text == "old 0", "as many pages as it takes"
    with pytest.raises(SendRefused):
        await channel.read_history(replace(here, chat="!nowhere:localhost"), 10)


async def test_what_a_thread_says(ann: Person, bot: Person, room: str, open_channel: Open) -> None:
    root = await ann.says(room, "the root")
    await ann.says(room, "outside")
    for number in range(105):
        await ann.in_thread(room, root, f"reply {number}")
    channel = open_channel()
    found = await take(channel, 3, confirm=True)
    assert [channel.find_thread(each) for each in found[:2]] == [None, None]
    there = channel.find_thread(found[2])
    assert there == Address("matrix", bot.user_id, room, root)
    past = await channel.read_history(there, 3)
    assert [each.text for each in past] == ["reply 102", "reply 103", "reply 104"]
    assert {each.thread for each in past} == {root}
    whole = await channel.read_history(there, 1_000)
    assert len(whole) == 106 and whole[0].text == "the root"
    assert whole[0].thread == root and whole[1].id == found[2].external_id
    for thread in ("$nothing", "../../x"):
        with pytest.raises(SendRefused):
            await channel.read_history(replace(there, thread=thread), 10)


async def test_a_deletion(ann: Person, bot: Person, open_channel: Open) -> None:
    """What the account itself takes away is nobody's deletion."""
    room = await ann.direct(bot.user_id)
    await bot.join(room)
    name = await ann.says(room, "never mind")
    channel = open_channel()
    await one(channel)
    there = address(bot, room)
    ours = await channel.send(saying(there, "an answer"), "")
    await channel.remove(ours, there)
    await ann.redacts(room, name)
    (gone,) = await take(channel, 1, confirm=True)
    assert gone.body == Deletion(name) and (gone.sender, gone.address) == (ann.user_id, there)
