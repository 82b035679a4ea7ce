"""What every channel must do. Each case gets a stage and raises AssertionError where the channel is
wrong. Run all of `CASES`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Protocol, cast

import anyio
from msgspec.structs import replace

from ..channels.base import Channel, Editing, Healthy, Speaking, Typing
from ..gateway.inbound_body import label_parts
from ..types.commit import Actions, Outgoing, SayPart
from ..types.errors import ChannelError, SendRefused
from ..types.identity import Address, Command, Inbound, Principal, Said
from ..types.messages import Audio, File, Image, Text
from .ogg import make_silence
from .wrappings import OF_ADDRESSES

WAIT_S = 10.0
PRESS_AGAIN_S = 1.0


class Stage(Protocol):
    """A platform with one person on it who talks to the channel's account."""

    @property
    def keeps(self) -> bool:
        """Whether the platform keeps what is written while nobody reads, until it is confirmed."""
        ...

    @property
    def nowhere(self) -> Address | None:
        """A chat that there is not; None where the platform takes everything."""
        ...

    def open(self) -> Channel:
        """A channel on the account, as after a restart. The stage closes it."""
        ...

    async def says(self, text: str) -> None:
        """The person writes; where the platform keeps nothing, once somebody reads."""
        ...

    async def passes_on(self, words: str) -> int:
        """The person sends these words in each way in which the platform lets people pass on what
        they did not write: forwarded, in the name of a file, in a contact. Returns how many
        messages that makes; 0 where it has no such way."""
        ...

    async def bot_says(self, text: str) -> bool:
        """Another bot writes, where the person does. False where the platform has no bots."""
        ...

    @property
    def blobs(self) -> dict[str, bytes]:
        """What the channel has kept, and what it can send, by name."""
        ...

    async def speaks(self, recording: bytes) -> bool:
        """The person sends a voice message. False where the platform has none."""
        ...

    async def spoken(self) -> Sequence[bytes] | None:
        """The voice messages that the account sent, where the platform has them, else the files of
        sound; None where it takes neither."""
        ...

    async def buttons(self) -> Sequence[str]:
        """What stands on the buttons below what the account said to the person."""
        ...

    async def presses(self, label: str) -> bool:
        """The person presses the button with this label, if there is one. False where the platform
        has no buttons."""
        ...

    async def said(self) -> Sequence[str]:
        """What the account said to the person: the messages as they read now, without
        formatting."""
        ...

    async def live(self) -> str:
        """All of what the account said that the platform makes a link, a picture or a preview of
        when it shows it, and where these lead. A platform that makes none of anything has ''."""
        ...

    async def away(self, gone: bool) -> None:
        """The platform cannot be reached, or can again."""
        ...


Case = Callable[[Stage], Awaitable[None]]


async def take(channel: Channel, count: int, *, confirm: bool) -> list[Inbound]:
    """The next so many, each event once. Without `confirm` nobody asks for the one after the
    last."""
    found: dict[str, Inbound] = {}
    with anyio.fail_after(WAIT_S):
        async with aclosing(cast(AsyncGenerator[Inbound], channel.receive())) as inbounds:
            async for inbound in inbounds:
                found.setdefault(inbound.external_id, inbound)
                if len(found) == count:
                    break
            if confirm:
                with anyio.move_on_after(0.3):
                    async for inbound in inbounds:
                        found.setdefault(inbound.external_id, inbound)
    return list(found.values())


async def hear(stage: Stage, channel: Channel, *texts: str, confirm: bool = True) -> list[Inbound]:
    """The person writes these, and the channel takes them."""
    found: list[Inbound] = []

    async def listen() -> None:
        found.extend(await take(channel, len(texts), confirm=confirm))

    async with anyio.create_task_group() as tasks:
        if not stage.keeps:
            tasks.start_soon(listen)
        for text in texts:
            await stage.says(text)
        if stage.keeps:
            await listen()
    return found


def words(inbound: Inbound) -> str:
    assert isinstance(inbound.body, Said), inbound
    return inbound.body.message.text


def saying(address: Address, *parts: SayPart | str, key: str = "k", reply_to: str = "") -> Outgoing:
    return Outgoing(
        key,
        address,
        tuple(Text(each) if isinstance(each, str) else each for each in parts),
        reply_to,
    )


async def what_is_written_comes_in_in_order(stage: Stage) -> None:
    channel = stage.open()
    texts = [f"message {number}" for number in range(5)]
    found = await hear(stage, channel, *texts, confirm=False)
    assert [words(each) for each in found] == texts
    assert {each.address.channel for each in found} == {channel.name}
    assert (
        len({(each.address, each.sender) for each in found}) == 1
        and found[0].sender
        and found[0].address.chat
    )


async def what_was_not_confirmed_comes_again(stage: Stage) -> None:
    """The next one was never asked for: whoever took the last may have died with it."""
    if not stage.keeps:
        return
    await stage.says("one")
    await stage.says("two")
    first = await take(stage.open(), 1, confirm=False)
    again = await take(stage.open(), 2, confirm=False)
    assert [words(each) for each in again] == ["one", "two"]
    assert first[0].external_id == again[0].external_id, "an event has one name"


async def nothing_is_lost_however_often_it_ends(stage: Stage) -> None:
    """It goes on with the one that nobody had confirmed, or before that."""
    if not stage.keeps:
        return
    texts = [f"message {number}" for number in range(8)]
    for text in texts:
        await stage.says(text)
    at = 0
    for count in (1, 3, len(texts)):
        heard: list[str] = []
        with anyio.fail_after(WAIT_S):
            channel = cast(AsyncGenerator[Inbound], stage.open().receive())
            async with aclosing(channel) as inbounds:
                async for inbound in inbounds:
                    heard += [words(inbound)] if words(inbound) not in heard else []
                    if len(heard) == count or heard[-1] == texts[-1]:
                        break
        first = texts.index(heard[0])
        assert first <= at and heard == texts[first : first + len(heard)]
        at = max(at, first + len(heard) - 1)
    assert at == len(texts) - 1


async def what_was_confirmed_does_not_come_again(stage: Stage) -> None:
    await hear(stage, stage.open(), "one")
    found = await hear(stage, stage.open(), "two", confirm=False)
    assert [words(each) for each in found] == ["two"]


async def _place(stage: Stage) -> tuple[Channel, Address]:
    channel = stage.open()
    return channel, (await hear(stage, channel, "hello"))[0].address


async def what_is_said_arrives_under_a_name(stage: Stage) -> None:
    channel, here = await _place(stage)
    names = [await channel.send(saying(here, f"answer {i}", key=f"k{i}"), "") for i in range(3)]
    assert [each.strip() for each in (await stage.said())] == ["answer 0", "answer 1", "answer 2"]
    assert all(names) and len(set(names)) == 3


async def a_long_text_arrives_whole(stage: Stage) -> None:
    channel, here = await _place(stage)
    wanted = [f"word{i}🙂" for i in range(4000)]
    await channel.send(saying(here, " ".join(wanted)), "")
    assert " ".join(await stage.said()).split() == wanted


async def what_looks_like_markup_arrives(stage: Stage) -> None:
    channel, here = await _place(stage)
    for i, text in enumerate(("a < b & c", "1_000_000 * 2", "[x](y", "<b>no</b>", "``` open")):
        await channel.send(saying(here, text, key=f"k{i}"), "")
    said = "\n".join(await stage.said())
    assert all(
        word in said for word in ("a < b & c", "1_000_000 * 2", "[x](y", "<b>no</b>", "open")
    ), said


async def a_chat_that_is_not_there_is_refused(stage: Stage) -> None:
    channel, _ = await _place(stage)
    if stage.nowhere is not None:
        try:
            await channel.send(saying(stage.nowhere, "hello?"), "")
        except SendRefused:
            return
        raise AssertionError("it was taken")


async def what_is_passed_on_is_not_their_word(stage: Stage) -> None:
    """Whatever is no text that they typed themselves comes in as from outside."""
    channel = stage.open()
    owner = Principal("olga", ("owner",))
    count = await stage.passes_on("Zanzibar")
    for inbound in await take(channel, count, confirm=True) if count else ():
        assert isinstance(inbound.body, Said), inbound
        message = label_parts(inbound.body.message, owner)
        assert "Zanzibar" not in message.own_text, message
        for part in message.parts:
            assert isinstance(part, Text | Image | Audio | File), part
            typed = isinstance(part, Text) and "Zanzibar" not in part.text
            assert typed or part.label.integrity == "untrusted", part


async def a_bot_is_no_person(stage: Stage) -> None:
    """Who runs this decides whether bots are heard, and needs to know which they are."""
    channel = stage.open()
    if await stage.bot_says("I am a program"):
        (inbound,) = await take(channel, 1, confirm=True)
        assert inbound.by_program and words(inbound) == "I am a program"
    (inbound,) = await hear(stage, channel, "I am a person")
    assert not inbound.by_program


async def what_is_spoken_comes_in_as_a_recording(stage: Stage) -> None:
    """Untouched: whoever listens to it needs all of it."""
    channel = stage.open()
    recording = make_silence(1.0, serial=7)
    if await stage.speaks(recording):
        (inbound,) = await take(channel, 1, confirm=True)
        assert isinstance(inbound.body, Said), inbound
        (audio,) = inbound.body.message.parts
        assert isinstance(audio, Audio) and audio.mime == "audio/ogg", audio
        assert stage.blobs[audio.blob] == recording


async def a_voice_message_arrives(stage: Stage) -> None:
    """The written answer stands above it. It goes where it can be played, and nowhere else."""
    channel, here = await _place(stage)
    if not isinstance(channel, Speaking) or not channel.takes_voice:
        assert await stage.spoken() is None, "it could be played there"
        return
    recording = make_silence(2.0, serial=8)
    stage.blobs["sha256:spoken"] = recording
    await channel.send(saying(here, "in writing"), "")
    audio = Audio("sha256:spoken", "audio/ogg")
    await channel.send(saying(here, audio, key="k2"), "")
    assert await stage.spoken() == [recording]
    assert (await stage.said())[0].strip() == "in writing"


async def an_address_that_is_not_allowed_leads_nowhere(stage: Stage) -> None:
    """However it is written, and whatever the channel's renderer makes of that."""
    channel, here = await _place(stage)
    allowed = "https://good.test/page"
    for number, (name, wrap) in enumerate(OF_ADDRESSES.items()):
        text = f"Look {number}: {wrap('https://evil.test/?d=1')} or {allowed} ."
        said = saying(here, text, key=f"k{number}")
        await channel.send(replace(said, links=(allowed,)), "")
        assert "evil.test" not in (await stage.live()), (name, (await stage.live()))
    if isinstance(channel, Editing):
        post = await channel.send(replace(saying(here, "nothing yet", key="d"), links=()), "")
        await channel.edit(post, replace(saying(here, "https://evil.test/", key="d"), links=()), "")
        assert "evil.test" not in (await stage.live())


async def who_is_away_is_a_channel_error(stage: Stage) -> None:
    channel, here = await _place(stage)
    await stage.away(True)
    try:
        await channel.send(saying(here, "are you there?"), "")
        raise AssertionError("it was sent to nobody")
    except ChannelError as error:
        assert not isinstance(error, SendRefused), "it may work later"
    try:
        await take(channel, 1, confirm=False)
        raise AssertionError("something came from nowhere")
    except ChannelError:
        pass
    await stage.away(False)
    assert words((await hear(stage, channel, "back again", confirm=False))[0]) == "back again"
    await channel.send(saying(here, "welcome", key="k2"), "")
    assert "welcome" in (await stage.said())[-1]
    if isinstance(channel, Healthy):
        assert channel.health().ok_at, "it answered"


async def a_message_is_changed_in_place(stage: Stage) -> None:
    channel, here = await _place(stage)
    if isinstance(channel, Editing):
        name = await channel.send(saying(here, "half a"), "")
        for text in ("half a sentence", "half a sentence", "a **whole** sentence"):
            assert await channel.edit(name, saying(here, text), "") == name
        assert list(await stage.said()) == ["a whole sentence"]
        await channel.edit(name, saying(here, " ".join(f"word{i}" for i in range(3000))), "")
        assert " ".join(await stage.said()).split() == [f"word{i}" for i in range(3000)]
        assert channel.edit_interval_s(here) > 0


async def that_it_is_typing_is_no_message(stage: Stage) -> None:
    channel, here = await _place(stage)
    if isinstance(channel, Typing):
        await channel.show_typing(here)
        assert list(await stage.said()) == []


async def press(stage: Stage, channel: Channel, label: str) -> Inbound | None:
    """The person presses this button until the channel has taken it: not every platform keeps a
    press while nobody reads. None where there are no buttons."""
    found: list[Inbound] = []
    if label not in await stage.buttons():
        assert not await stage.presses(label), "it has buttons, and does not show this one"
        return None

    async def listen() -> None:
        found.extend(await take(channel, 1, confirm=True))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen)
        while not found:
            await stage.presses(label)
            with anyio.move_on_after(PRESS_AGAIN_S):
                while not found:  # noqa: ASYNC110 -- the bound is above
                    await anyio.sleep(0.02)
    return found[0]


async def a_button_is_a_command_of_who_presses(stage: Stage) -> None:
    """What is offered does not stand in the words. The command is about the turn that offered it,
    and the buttons are gone once it was carried out."""
    channel, here = await _place(stage)
    offered = replace(saying(here, "It failed."), actions=Actions(7, ("retry", "undo", "document")))
    name = await channel.send(offered, "")
    assert [each.strip() for each in (await stage.said())] == ["It failed."]
    pressed = await press(stage, channel, "Try again")
    if pressed is None:
        assert list(await stage.buttons()) == []
        return
    assert list(await stage.buttons()) == ["Try again", "Undo changes"], "it is no long answer"
    assert pressed.body == Command("retry", turn=7) and pressed.address == here and pressed.sender
    assert pressed.external_id and pressed.reply_to == name
    done = Outgoing("k2", here, (), pressed.external_id, pressed=pressed.reply_to)
    for _ in range(2):  # also where nobody knows whether that arrived
        assert await channel.send(done, "")
        assert list(await stage.buttons()) == []
        assert [each.strip() for each in (await stage.said())] == ["It failed."]


async def a_used_button_leaves_the_others(stage: Stage) -> None:
    """What was pressed is gone, and what can be done still is offered as before."""
    channel, here = await _place(stage)
    offered = replace(saying(here, "It is done."), actions=Actions(9, ("retry", "undo")))
    await channel.send(offered, "")
    pressed = await press(stage, channel, "Try again")
    if pressed is None:
        return
    left = Actions(9, ("undo",))
    done = Outgoing("k2", here, (), pressed.external_id, pressed=pressed.reply_to, left=left)
    await channel.send(done, "")
    assert list(await stage.buttons()) == ["Undo changes"]
    assert [each.strip() for each in (await stage.said())] == ["It is done."]
    pressed = await press(stage, channel, "Undo changes")
    assert pressed is not None and pressed.body == Command("undo", turn=9)
    done = Outgoing("k3", here, (), pressed.external_id, pressed=pressed.reply_to)
    await channel.send(done, "")
    assert list(await stage.buttons()) == []


async def a_long_answer_offers_a_document(stage: Stage) -> None:
    """Below the last of its messages, and not where three are enough."""
    channel, here = await _place(stage)
    actions = Actions(8, ("document",))
    await channel.send(replace(saying(here, "word " * 100), actions=actions), "")
    assert list(await stage.buttons()) == []
    text = " ".join(f"word{i}" for i in range(5000))
    await channel.send(replace(saying(here, text, key="k2"), actions=actions), "")
    pressed = await press(stage, channel, "As a document")
    assert list(await stage.buttons()) == (["As a document"] if pressed is not None else [])
    assert pressed is None or pressed.body == Command("document", turn=8)


CASES: tuple[Case, ...] = (
    what_is_written_comes_in_in_order,
    what_was_not_confirmed_comes_again,
    nothing_is_lost_however_often_it_ends,
    what_was_confirmed_does_not_come_again,
    what_is_said_arrives_under_a_name,
    a_long_text_arrives_whole,
    what_looks_like_markup_arrives,
    what_is_passed_on_is_not_their_word,
    a_bot_is_no_person,
    what_is_spoken_comes_in_as_a_recording,
    a_voice_message_arrives,
    an_address_that_is_not_allowed_leads_nowhere,
    a_chat_that_is_not_there_is_refused,
    who_is_away_is_a_channel_error,
    a_message_is_changed_in_place,
    that_it_is_typing_is_no_message,
    a_button_is_a_command_of_who_presses,
    a_used_button_leaves_the_others,
    a_long_answer_offers_a_document,
)
