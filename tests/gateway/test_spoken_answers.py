"""Voice messages through a whole Deskhand: what is spoken is heard, and answered by voice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from deskhand.channels.spoken_text import render_spoken
from deskhand.config.config import Config, Home, Settings
from deskhand.runtime.app import OWNER, App, Parts, open_app
from deskhand.speech.base import WAV, Voice
from deskhand.testing.channel import MemoryChannel, MemorySpeaker
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.testing.speech import ScriptedSpeech, make_wav, read_text
from deskhand.types.commit import Outgoing
from deskhand.types.identity import Address, Inbound, Said
from deskhand.types.messages import Audio, Message, Text

WORDS = "Remind me to call the dentist."
ANSWER = (
    "I will **remind** you.\n\n```python\nprint(1)\n```\nSee https://example.org/a/very/long/path"
)


class House:
    """A running Deskhand with two places where people write."""

    def __init__(self, app: App, speech: ScriptedSpeech, *places: MemoryChannel) -> None:
        self.app = app
        self.speech = speech
        self.places = places
        self._count = 0

    async def speaks(self, data: bytes, place: int = 0) -> None:
        await self.sends((Audio(await self.app.blobs.put(data), WAV),), place)

    async def writes(self, text: str, place: int = 0) -> None:
        await self.sends((Text(text),), place)

    async def sends(self, parts: tuple[Text | Audio, ...], place: int = 0) -> None:
        self._count += 1
        channel = self.places[place]
        address = Address(channel.name, chat="1")
        body = Said(Message("user", parts))
        channel.waiting.append(Inbound(str(self._count), address, "ann", 1.7e9, body))

    async def sent(self, count: int, place: int = 0) -> list[Outgoing]:
        with anyio.fail_after(20):
            while len(self.places[place].sent) < count:
                await anyio.sleep(0.005)
            await anyio.sleep(0.05)  # nothing more comes
        return [outgoing for outgoing, _ in self.places[place].sent]


@asynccontextmanager
async def house(home: Path, config: dict[str, Any] | None = None) -> AsyncIterator[House]:
    given = {"defaults": {"models": ["scripted/x"]}} | (config or {})
    made = msgspec.convert(given, Config)
    speech = ScriptedSpeech()
    places = MemorySpeaker("memory"), MemoryChannel("written")
    parts = Parts(
        lambda name: ScriptedModel(lambda request: say(ANSWER)),
        channels=places,
        authorize=lambda inbound: OWNER,
        speech=speech,
    )
    settings = Settings(Home(home), made, environment={"HOME": str(home.parent)})
    async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.run)
        yield House(app, speech, *places)
        tasks.cancel_scope.cancel()


def texts(outgoing: Outgoing) -> str:
    return "".join(part.text for part in outgoing.parts if isinstance(part, Text))


async def test_spoken_in_spoken_out(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        await here.speaks(make_wav(WORDS))
        shown, written, spoken = await here.sent(3)
        assert texts(shown) == f"🎤 “{WORDS}”" and "remind" in texts(written)
        (audio,) = spoken.parts
        assert isinstance(audio, Audio) and audio.mime == WAV
        said = read_text(await here.app.blobs.get(audio.blob))
    assert said == "I will remind you. … See example.org."


async def test_written_in_written_out(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        await here.writes("hello")
        (only,) = await here.sent(1)
        assert texts(only) and here.speech.said == []


async def test_where_no_voice_can_be_sent_it_is_written(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        await here.speaks(make_wav(WORDS), 1)
        assert len(await here.sent(2, 1)) == 2 and here.speech.said == []


async def test_an_answer_that_cannot_be_spoken_stands_in_writing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with house(tmp_path) as here:
        await here.speaks(make_wav(WORDS))
        await here.sent(3)
        here.speech.knows(data := make_wav("once more"), "Again.")
        here.speech.fails_to_say = "the engine is away"
        await here.speaks(data)
        assert "remind" in texts((await here.sent(5))[4])
        with anyio.fail_after(20):
            while "the answer was not spoken: the engine is away" not in caplog.text:
                await anyio.sleep(0.01)
        await here.writes("and now?")
        assert len(await here.sent(6)) == 6


@pytest.mark.parametrize(
    ("command", "spoken", "count"), [("/voice on", False, 3), ("/voice off", True, 3)]
)
async def test_a_person_says_whether_they_want_it(
    tmp_path: Path, command: str, spoken: bool, count: int
) -> None:
    async with house(tmp_path) as here:
        await here.writes(command)
        await here.sent(1)
        if spoken:
            await here.speaks(make_wav(WORDS))
        else:
            await here.writes("hello")
        sent = await here.sent(count)
    by_voice = [isinstance(each.parts[0], Audio) for each in sent]
    assert by_voice == ([False, False, True] if command.endswith("on") else [False] * 3)


async def test_settings_turn_it_off(tmp_path: Path) -> None:
    config = {"speech": {"show_heard": False, "answer_aloud": False}}
    async with house(tmp_path, config) as here:
        await here.speaks(make_wav(WORDS))
        (only,) = await here.sent(1)
    assert "remind" in texts(only)


async def test_the_language_that_was_heard_is_spoken(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        data = make_wav("zehn Uhr")
        here.speech.knows(data, "Es ist zehn Uhr.", "de")
        await here.speaks(data)
        await here.sent(3)
        assert here.speech.said[-1][1] == Voice(language="de")


@pytest.mark.parametrize(
    ("markdown", "words"),
    [
        ("# Title\n\n- one\n- two", "Title. one. two."),
        ("a **b** _c_ `d`", "a b c d."),
        ("look at [this](https://example.org/x?y=1)", "look at this."),
        ("at https://user:pass@example.org:80/x.", "at example.org."),
        ("| a | b |\n|---|---|\n| 1 | 2 |", ""),
        ("done ✅ 🎉", "done."),
        ("```\nrm -rf\n```", ""),
        ("", ""),
    ],
)
def test_what_is_read_aloud(markdown: str, words: str) -> None:
    assert render_spoken(markdown) == words
