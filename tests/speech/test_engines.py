"""Which engine is asked: what the settings say, and this machine where a provider fails."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from deskhand.assembly.speech import SpeechEngines
from deskhand.config.config import Config, Home, Settings
from deskhand.net.client import Net
from deskhand.sandbox.base import Sandbox
from deskhand.sandbox.choose import open_sandbox
from deskhand.speech.base import OGG, WAV, Recording, Voice
from deskhand.store.blobs import Blobs
from deskhand.testing.speech import make_wav
from deskhand.testing.speech_server import SpeechFault, SpeechServer
from deskhand.types.errors import ConfigError, SpeechError
from deskhand.types.messages import Audio


async def sandbox() -> Sandbox:
    return (await open_sandbox()).sandbox


def settings_of(folder: Path, speech: dict[str, Any], server: SpeechServer) -> Settings:
    given = {
        "speech": speech,
        "providers": {
            name: {"base_url": server.url(name), "key_env": "SPEECH_KEY"}
            for name in ("openai", "groq", "deepgram", "own")
        },
    }
    config = msgspec.convert(given, Config)
    environment = {"SPEECH_KEY": server.key, "DESKHAND_CACHE": str(folder)}
    return Settings(Home(folder / "home"), config, environment=environment)


def audio_of(data: bytes) -> Audio:
    return Audio(f"sha256:{sha256(data).hexdigest()}", WAV)


@asynccontextmanager
async def engines(
    folder: Path, server: SpeechServer, data: bytes = b"", /, **speech: Any
) -> AsyncGenerator[SpeechEngines]:
    blobs = Blobs(folder / "blobs")
    await blobs.put(data)
    settings = settings_of(folder, speech, server)
    made = SpeechEngines(lambda: settings, sandbox, Net(), blobs, ["chat"])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(made.run)
        yield made
        tasks.cancel_scope.cancel()


async def test_the_chosen_provider_hears_and_speaks(tmp_path: Path, server: SpeechServer) -> None:
    data = make_wav("What time is it?")
    server.sounds.knows(data, "What time is it?")
    async with engines(tmp_path, server, data, hear="groq", say="openai") as made:
        heard = await made.transcribe(
            Audio(f"sha256:{sha256(data).hexdigest()}", WAV), lambda share: None
        )
        assert heard.text == "What time is it?" and heard.engine.startswith("groq/")
        assert heard.shown and heard.problem == ""
        sound = await made.say("Noon.", Voice())
        assert sound.mime == OGG
    assert [each.provider for each in server.asked] == ["groq", "openai"]


async def test_long_recordings_go_in_pieces(tmp_path: Path, server: SpeechServer) -> None:
    """More than ten minutes are heard as several recordings, each of which the provider gets."""
    data = make_wav("x" * (16_000 * 640))
    shares: list[float] = []
    async with engines(tmp_path, server, hear="deepgram") as made:
        await made.hear(Recording(data, WAV), shares.append)
    assert len(server.asked) == 2 and shares == sorted(shares) and shares[-1] == 1.0
    assert all((each.file or each.body).startswith(b"OggS") for each in server.asked)


async def test_long_answers_are_said_in_pieces(tmp_path: Path, server: SpeechServer) -> None:
    text = " ".join(f"Sentence number {number} of a long answer." for number in range(20))
    async with engines(tmp_path, server, say="groq") as made:
        sound = await made.say(text, Voice())
    bodies = [msgspec.json.decode(each.body)["input"] for each in server.asked]
    assert len(bodies) > 3 and all(len(each) <= 200 for each in bodies)
    assert " ".join(bodies) == text and sound.mime == OGG


async def test_what_fails_is_a_sentence(tmp_path: Path, server: SpeechServer) -> None:
    """Nothing on this machine can listen instead: the cache is empty."""
    server.fault = SpeechFault(status=500, body=b"out of order")
    data = make_wav("hello")
    async with engines(tmp_path, server, data, hear="groq") as made:
        heard = await made.transcribe(
            Audio(f"sha256:{sha256(data).hexdigest()}", WAV), lambda share: None
        )
        assert "refused (500)" in heard.problem and server.key not in heard.problem
        with pytest.raises(SpeechError, match="at most 4,000 characters"):
            await made.say("x" * 5_000, Voice())


@pytest.mark.parametrize(
    ("speech", "use", "why"),
    [
        ({"hear": "off"}, "hear", "speech.hear is off"),
        ({"say": "off"}, "say", "speech.say is off"),
        ({"hear": "nobody/model"}, "hear", "nobody"),
        ({"hear": "elevenlabs"}, "hear", "ELEVENLABS_API_KEY"),
        ({"hear": "local/nope"}, "hear", "There is no voice file 'nope'"),
        ({}, "hear", "deskhand voice pull"),
    ],
)
async def test_what_is_not_set_up_is_told(
    tmp_path: Path, server: SpeechServer, speech: dict[str, str], use: Any, why: str
) -> None:
    async with engines(tmp_path, server, b"", **speech) as made:
        assert why in made.find_problem(use)
        if use == "hear":
            with pytest.raises((ConfigError, SpeechError)):
                await made.hear(Recording(b"OggS"))
    assert server.asked == []
