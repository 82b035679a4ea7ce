"""The server for tests is judged by OpenAI's own client; so far as it has a client here, what it
answers is what that reads."""

from __future__ import annotations

from collections.abc import AsyncIterator

import openai
import pytest

from deskhand.testing.speech import make_wav, read_samples
from deskhand.testing.speech_server import SpeechFault, SpeechServer
from deskhand.testing.speech_sounds import make_ogg

WAV = make_wav("anything")


@pytest.fixture
async def client(server: SpeechServer) -> AsyncIterator[openai.AsyncOpenAI]:
    server.sounds.knows(WAV, "Good morning.", "de", 2.5)
    async with openai.AsyncOpenAI(
        api_key=server.key, base_url=server.url("openai"), max_retries=0
    ) as opened:
        yield opened


async def test_its_transcripts_are_read(client: openai.AsyncOpenAI) -> None:
    plain = await client.audio.transcriptions.create(
        file=("a.wav", WAV), model="gpt-transcribe", response_format="json"
    )
    assert plain.text == "Good morning."
    assert plain.languages is not None and [each.code for each in plain.languages] == ["de"]
    assert plain.usage is not None and plain.usage.type == "duration"
    verbose = await client.audio.transcriptions.create(
        file=("a.wav", WAV), model="whisper-1", response_format="verbose_json", language="de"
    )
    assert (verbose.language, verbose.duration) == ("german", 2.5)
    assert verbose.text.strip() == "Good morning."


async def test_what_it_says_is_heard_again(client: openai.AsyncOpenAI) -> None:
    for sound, start in (("opus", b"OggS"), ("wav", b"RIFF")):
        spoken = await client.audio.speech.create(
            model="gpt-4o-mini-tts",
            voice="alloy",
            input="Good evening.",
            response_format="opus" if sound == "opus" else "wav",
        )
        assert spoken.content.startswith(start)
        heard = await client.audio.transcriptions.create(
            file=(f"a.{'ogg' if sound == 'opus' else 'wav'}", spoken.content),
            model="gpt-transcribe",
        )
        assert heard.text == "Good evening."


async def test_its_errors_are_read(client: openai.AsyncOpenAI, server: SpeechServer) -> None:
    with pytest.raises(openai.AuthenticationError) as refused:
        await client.with_options(api_key="wrong").audio.speech.create(
            model="tts-1", voice="alloy", input="Hi."
        )
    assert refused.value.code == "invalid_api_key"
    with pytest.raises(openai.NotFoundError):
        await client.audio.speech.create(model="tts-9", voice="alloy", input="Hi.")
    with pytest.raises(openai.BadRequestError):
        await client.audio.transcriptions.create(file=("a.wav", b"no"), model="gpt-transcribe")
    with pytest.raises(openai.BadRequestError):
        await client.audio.transcriptions.create(
            file=("a.wav", WAV), model="gpt-transcribe", response_format="verbose_json"
        )
    server.fault = SpeechFault(status=429, body=b'{"error": {"message": "later"}}')
    with pytest.raises(openai.RateLimitError):
        await client.audio.speech.create(model="tts-1", voice="alloy", input="Hi.")


def test_words_make_different_sounds() -> None:
    assert make_ogg("one") != make_ogg("two")
    assert read_samples(make_wav("one")) != read_samples(make_wav("two"))
