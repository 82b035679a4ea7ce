"""What voice messages must not do: cost again and again, hold up a chat, change who may do what."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from deskhand.config.config import Config, Home, Settings
from deskhand.models.base import Request
from deskhand.runtime.app import OWNER, App, Parts, open_app
from deskhand.speech.base import WAV, Sound, Voice
from deskhand.testing.channel import MemoryEditor, MemorySpeaker
from deskhand.testing.scripted import ScriptedModel, echo, say
from deskhand.testing.speech import ScriptedSpeech, make_wav
from deskhand.types.commit import Outgoing
from deskhand.types.errors import ChannelError, SendRefused, StoreFull
from deskhand.types.events import ApprovalAsked, MessageReceived, Recorded
from deskhand.types.identity import Address, Body, Edit, Inbound, Said
from deskhand.types.messages import Audio, Message, Part, Text, ToolCall

WORDS = "Remind me to call the dentist."


class Flaky(MemorySpeaker):
    """Takes voice messages, and refuses or puts off what `why` says."""

    def __init__(self, name: str = "memory") -> None:
        super().__init__(name)
        self.why: Callable[[Outgoing], ChannelError | None] = lambda outgoing: None

    async def send(self, outgoing: Outgoing, mark: str) -> str:
        if error := self.why(outgoing):
            raise error
        return await super().send(outgoing, mark)


class House:
    def __init__(self, app: App, speech: ScriptedSpeech, channel: Flaky) -> None:
        self.app = app
        self.speech = speech
        self.channel = channel
        self._count = 0

    async def audio(self, data: bytes) -> Audio:
        return Audio(await self.app.blobs.put(data), WAV)

    async def sends(self, *parts: Part, body: Body | None = None) -> str:
        self._count += 1
        address = Address(self.channel.name, chat="1")
        said = body or Said(Message("user", parts))
        self.channel.waiting.append(Inbound(str(self._count), address, "ann", 1.7e9, said))
        return str(self._count)

    async def speaks(self, text: str) -> str:
        return await self.sends(await self.audio(make_wav(text)))

    async def sent(self, count: int, more_s: float = 0.05) -> list[Outgoing]:
        with anyio.fail_after(20):
            while len(self.channel.sent) < count:
                await anyio.sleep(0.005)
            await anyio.sleep(more_s)
        return [outgoing for outgoing, _ in self.channel.sent]

    async def log(self) -> list[Recorded]:
        rows = await self.app.store.sessions(OWNER)
        return [each for row in rows for each in await self.app.store.events(row.session)]


@asynccontextmanager
async def house(
    home: Path,
    script: Callable[[Request], Message],
    config: dict[str, Any] | None = None,
) -> AsyncIterator[House]:
    given = {"defaults": {"models": ["scripted/x"]}} | (config or {})
    speech = ScriptedSpeech()
    channel = Flaky()
    parts = Parts(
        lambda name: ScriptedModel(script),
        channels=(channel,),
        authorize=lambda inbound: OWNER,
        speech=speech,
    )
    settings = Settings(
        Home(home), msgspec.convert(given, Config), environment={"HOME": str(home.parent)}
    )
    async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.run)
        yield House(app, speech, channel)
        tasks.cancel_scope.cancel()


def call(name: str, **arguments: object) -> ToolCall:
    return ToolCall(f"c-{name}", name, msgspec.Raw(msgspec.json.encode(arguments)))


def texts(outgoing: Outgoing) -> str:
    words = "".join(part.text for part in outgoing.parts if isinstance(part, Text))
    return words or (outgoing.ask.question if outgoing.ask else "")


def by_voice(outgoing: Outgoing) -> bool:
    return any(isinstance(part, Audio) for part in outgoing.parts)


def done(request: Request) -> Message:
    return say("Done.")


# ---------------------------------------------------------------- the row that is spoken


async def test_a_platform_that_asks_to_wait_costs_one_synthesis(tmp_path: Path) -> None:
    async with house(tmp_path, done) as here:
        refused: list[int] = []

        def why(outgoing: Outgoing) -> ChannelError | None:
            if by_voice(outgoing) and len(refused) < 3:
                refused.append(1)
                return ChannelError("too much", 0.05, unsent=True)
            return None

        here.channel.why = why
        await here.speaks(WORDS)
        await here.sent(3)
        assert len(here.speech.said) == 1


async def test_there_is_no_voice_where_the_text_was_refused(tmp_path: Path) -> None:
    async with house(tmp_path, done) as here:
        here.channel.why = lambda outgoing: (
            SendRefused("no") if texts(outgoing) == "Done." else None
        )
        await here.speaks(WORDS)
        assert not any(map(by_voice, await here.sent(1, 1.5)))


@pytest.mark.parametrize("error", [PermissionError(13, "denied"), RuntimeError("a fault of ours")])
async def test_what_fails_unexpectedly_holds_up_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    tries = []

    async def broken(text: str, voice: Voice) -> Sound:
        tries.append(text)
        raise error

    async with house(tmp_path, done) as here:
        monkeypatch.setattr(here.speech, "say", broken)
        await here.speaks(WORDS)
        await here.sent(2, 0.5)
        await here.sends(Text("hello?"))
        with anyio.move_on_after(6):
            await here.sent(3)
        assert len(tries) <= 4, "it is tried each second, for ever"
        assert len(here.channel.sent) == 3, "the chat is silent for ever"


async def test_a_full_disk_is_not_paid_for_each_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house(tmp_path, done) as here:
        audio = await here.audio(make_wav(WORDS))

        async def full(data: bytes) -> str:
            raise StoreFull("the disk is full")

        monkeypatch.setattr(here.app.blobs, "put", full)
        here.app._set_renderer()
        await here.sends(audio)
        await here.sent(2, 6.0)
        assert len(here.speech.said) <= 4


async def test_a_stuck_engine_does_not_hold_up_the_chat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stuck(text: str, voice: Voice) -> Sound:
        await anyio.sleep_forever()
        raise AssertionError

    async with house(tmp_path, done) as here:
        monkeypatch.setattr(here.speech, "say", stuck)
        await here.speaks(WORDS)
        await here.sent(2)
        await here.sends(Text("hello?"))
        with anyio.move_on_after(5):
            await here.sent(3)
        assert len(here.channel.sent) == 3


async def test_an_answer_without_words_is_not_spoken(tmp_path: Path) -> None:
    async with house(tmp_path, lambda request: say("```\nprint(1)\n```")) as here:
        await here.speaks(WORDS)
        await here.sent(2, 0.5)
        assert here.speech.said == [], "Piper ends with code 1 at such a text"


# ---------------------------------------------------------------- what a recording may do


async def test_a_recording_that_answers_a_question_is_heard(tmp_path: Path) -> None:
    seen: list[str] = []

    def script(request: Request) -> Message:
        seen.append(str(request.messages[-1].message.parts))
        return (
            say("", call("ask_user", question="Which day?")) if len(seen) == 1 else say("Thanks.")
        )

    async with house(tmp_path, script) as here:
        await here.sends(Text("book it"))
        await here.sent(1)
        await here.speaks("On Tuesday.")
        await here.sent(2, 0.5)
        assert here.speech.heard, "the recording is dropped, and '' is the answer"
        assert "Tuesday" in seen[-1]


async def test_an_edit_that_changes_nothing_is_nothing_new(tmp_path: Path) -> None:
    """As where a platform adds a preview: without a recording it is known by its words."""
    asked = []

    def script(request: Request) -> Message:
        asked.append(1)
        return say("", call("ask_user", question="Which?")) if len(asked) == 1 else say("Done.")

    async with house(tmp_path, script) as here:
        first = await here.sends(Text("see this"), await here.audio(make_wav(WORDS)))
        await here.sent(2)
        await here.sends(body=Edit(first, Message("user", (Text("see this"),))))
        await anyio.sleep(1.0)
        received = [each for each in await here.log() if isinstance(each.event, MessageReceived)]
        assert len(received) == 1, "the open question was given up"


async def test_a_turn_that_is_repeated_is_heard_once(tmp_path: Path) -> None:
    async with house(tmp_path, done) as here:
        await here.speaks(WORDS)
        await here.sent(3)
        await here.sends(Text("/retry"))
        await here.sent(5, 0.5)
        assert len(here.speech.heard) == 1


@pytest.mark.parametrize("spoken", ["please change notes.txt", "please do the thing"])
async def test_a_voice_names_no_file_to_a_small_model(tmp_path: Path, spoken: str) -> None:
    """Such a model is asked about a file that nobody named, and a voice can be anybody's."""
    asked = []

    def script(request: Request) -> Message:
        asked.append(1)
        if len(asked) == 1:
            return say("", call("write_file", path="notes.txt", content="old"))
        if len(asked) == 3:
            return say("", call("write_file", path="notes.txt", content="new"))
        return say("Done.")

    small = {"providers": {"scripted": {"base_url": "http://127.0.0.1:1", "tools": "fenced"}}}
    async with house(tmp_path, script, small) as here:
        await here.sends(Text("begin notes.txt"))
        await here.sent(1)
        await here.speaks(spoken)
        await here.sent(3, 0.5)
        assert any(isinstance(each.event, ApprovalAsked) for each in await here.log())


async def test_what_was_said_is_found_again(tmp_path: Path) -> None:
    async with house(tmp_path, done) as here:
        await here.speaks("My flight to Zanzibar leaves on Monday.")
        await here.sent(3)
        await anyio.sleep(0.5)
        assert await here.app.store.search(OWNER, "zanzibar", 10)


async def test_what_was_heard_is_not_written_over_an_answer(tmp_path: Path) -> None:
    """An answer that was being shown stands above the recording that interrupts it."""
    channel = MemoryEditor("memory")
    asked = []

    class Slow(ScriptedModel):
        async def reply(self, request: Request) -> AsyncIterator[Any]:
            asked.append(1)
            first = len(asked) == 1
            words = "partial answer" if first else "final answer"
            items = [
                each async for each in ScriptedModel(lambda request: say(words)).reply(request)
            ]
            for item in items[:-1]:
                yield item
            if first:
                await anyio.sleep(3)
            yield items[-1]

    parts = Parts(
        lambda name: Slow(echo),
        channels=(channel,),
        authorize=lambda inbound: OWNER,
        speech=ScriptedSpeech(),
    )
    config = msgspec.convert({"defaults": {"models": ["scripted/x"]}}, Config)
    settings = Settings(Home(tmp_path), config, environment={"HOME": str(tmp_path.parent)})
    async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.run)
        channel.write("hello")
        await anyio.sleep(1.8)
        audio = Audio(await app.blobs.put(make_wav(WORDS)), WAV)
        said = Said(Message("user", (audio,)))
        channel.waiting.append(
            Inbound("9", Address("memory", chat="1"), "ann", 1.7e9, said, when="interrupt")
        )
        await anyio.sleep(2)
        assert not channel.posts["1"].startswith("🎤")
        tasks.cancel_scope.cancel()


# ---------------------------------------------------------------- channels that are switched off


def settings_of(home: Path, channels: dict[str, Any]) -> Settings:
    given = {"defaults": {"models": ["scripted/echo"]}, "channels": channels}
    config = msgspec.convert(given, Config)
    return Settings(Home(home), config, environment={"HOME": str(home.parent)})


async def test_one_that_is_off_stays_off_when_it_is_taken_out(tmp_path: Path) -> None:
    channel = MemoryEditor("memory")
    off = {"memory": {"type": "memory", "enabled": False}}
    parts = Parts(
        lambda name: ScriptedModel(echo), channels=(channel,), authorize=lambda inbound: OWNER
    )
    async with (
        open_app(settings_of(tmp_path, off), parts) as app,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(app.run)
        channel.write("hello")
        await anyio.sleep(0.2)
        assert not channel.confirmed
        app.current.settings = settings_of(tmp_path, {})
        app.on_settings_changed(app.current.settings)
        await anyio.sleep(0.3)
        assert not channel.confirmed, "taking its section out of the configuration switched it on"
        tasks.cancel_scope.cancel()


async def test_no_draft_is_posted_where_it_was_switched_off(tmp_path: Path) -> None:
    channel = MemoryEditor("memory")

    class Slow(ScriptedModel):
        async def reply(self, request: Request) -> AsyncIterator[Any]:
            items = [each async for each in super().reply(request)]
            for item in items[:-1]:
                yield item
            await anyio.sleep(2)
            yield items[-1]

    parts = Parts(lambda name: Slow(echo), channels=(channel,), authorize=lambda inbound: OWNER)
    on, off = ({"memory": {"type": "memory", "enabled": each}} for each in (True, False))
    async with (
        open_app(settings_of(tmp_path, on), parts) as app,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(app.run)
        channel.write("hello")
        await anyio.sleep(0.4)
        app.current.settings = settings_of(tmp_path, off)
        app.on_settings_changed(app.current.settings)
        await anyio.sleep(3)
        assert channel.sent == []
        tasks.cancel_scope.cancel()
