"""Every Speech passes the suite: the fake, and the engine of each provider."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import pytest

from deskhand.net.client import Net
from deskhand.speech.base import OGG, WAV, Recording, Speech, Use
from deskhand.speech.providers import ProviderAddress, open_api_speech
from deskhand.testing import speech_suite
from deskhand.testing.speech import ScriptedSpeech, make_wav
from deskhand.testing.speech_server import Provider, SpeechFault, SpeechServer
from deskhand.testing.speech_sounds import make_ogg
from deskhand.testing.speech_suite import Case, Stage

# An engine, and the models that are not the usual ones: (provider, hears with, says with).
ENGINES: list[tuple[Provider, str, str]] = [
    ("openai", "", ""),
    ("openai", "gpt-4o-mini-transcribe", "tts-1"),
    ("openai", "whisper-1", "tts-1-hd"),
    ("groq", "", ""),
    ("own", "Systran/faster-whisper-small", "kokoro"),
    ("own", "parakeet", "kokoro"),
    ("deepgram", "", ""),
    ("elevenlabs", "", ""),
    ("elevenlabs", "scribe_v1", "eleven_multilingual_v2"),
    ("sarvam", "", ""),
    ("google", "", ""),
    ("google", "gemini-3.8-flash", "gemini-3.1-flash-tts-preview"),
    ("google", "gemini-3.5-transcribe", "gemini-3.8-flash-tts"),
]


class ScriptedStage:
    """The fake, in this process."""

    uses: frozenset[Use] = frozenset(("hear", "say"))
    hears_itself = True

    def __init__(self) -> None:
        self.speech = ScriptedSpeech()

    @asynccontextmanager
    async def open(self, use: Use) -> AsyncGenerator[Speech]:
        yield self.speech

    async def recording(self, text: str) -> Recording:
        data = make_ogg(text)
        self.speech.knows(data, text, "en")
        return Recording(data, OGG)

    async def go_away(self) -> bool:
        self.speech.fails = "fake/speech is away, as the test wants"
        return True

    async def stall(self, stalled: bool) -> bool:
        self.speech.hangs = stalled
        return True


class ProviderStage:
    """A provider on loopback."""

    uses: frozenset[Use] = frozenset(("hear", "say"))
    hears_itself = True

    def __init__(self, server: SpeechServer, engine: tuple[Provider, str, str]) -> None:
        self.server = server
        self.provider, self._hears_with, self._says_with = engine

    @asynccontextmanager
    async def open(self, use: Use) -> AsyncGenerator[Speech]:
        model = self._hears_with if use == "hear" else self._says_with
        name = f"{self.provider}/{model}" if model else self.provider
        needs_key = self.provider != "own"
        own = ProviderAddress(self.server.url(self.provider), "KEY" if needs_key else "")
        yield open_api_speech(name, use, {"KEY": self.server.key}, own, Net())

    async def recording(self, text: str) -> Recording:
        data = make_wav(text)
        self.server.sounds.knows(data, text)
        return Recording(data, WAV)

    async def go_away(self) -> bool:
        await self.server.stop()
        return True

    async def stall(self, stalled: bool) -> bool:
        self.server.fault = SpeechFault("hang") if stalled else None
        return True


@pytest.fixture(params=[None, *ENGINES], ids=lambda each: "-".join(filter(None, each or ["fake"])))
async def stage(request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    if request.param is None:
        yield ScriptedStage()
        return
    async with SpeechServer() as server:
        yield ProviderStage(server, request.param)


@pytest.mark.parametrize("case", speech_suite.CASES, ids=lambda case: case.__name__)
async def test_conformance(stage: Stage, case: Case) -> None:
    await case(stage)
