"""OpenAI's audio interface, which Groq and most servers that people run themselves have too.

OpenAI: https://developers.openai.com/api/docs/guides/speech-to-text,
https://developers.openai.com/api/docs/models/gpt-transcribe and
https://developers.openai.com/api/docs/guides/text-to-speech; the fields are those of
https://github.com/openai/openai-python/tree/main/src/openai/types/audio.
Groq: https://console.groq.com/docs/speech-to-text and
https://console.groq.com/docs/text-to-speech/orpheus (WAV alone, and 200 characters at once).
"""

from __future__ import annotations

from typing import Literal

import msgspec

from ..net.client import Fetched, OutboundRequest
from ..net.url import parse_url
from .base import Heard, Recording, Sound, Voice
from .language_codes import find_language
from .wire import SpeechProvider, SpeechWire, encode_recording
from .wire_fields import check_name, clean_heard, decode_answer, read_seconds, read_sound_file

SoundFormat = Literal["opus", "wav"]


class _Language(msgspec.Struct, frozen=True):
    code: str = ""


class _Usage(msgspec.Struct, frozen=True):
    seconds: float | None = None


class _Transcription(msgspec.Struct, frozen=True):
    """`language` and `duration` are those of Whisper models, `languages` and `usage.seconds` those
    of gpt-transcribe."""

    text: str
    language: str | None = None
    duration: float | str | None = None
    languages: tuple[_Language, ...] | None = None
    usage: _Usage | None = None


class OpenAIWire(msgspec.Struct, frozen=True):
    """`sound` is the format to ask for (`opus` comes in OGG), `voice` the one where none is
    named."""

    sound: SoundFormat = "opus"
    voice: str = "alloy"

    def make_hear_request(
        self, provider: SpeechProvider, recording: Recording, language: str
    ) -> OutboundRequest:
        """Raises SpeechError for a language that cannot be sent."""
        is_whisper = "whisper" in provider.model.lower()
        fields = {
            "model": check_name("model", provider.model),
            "response_format": "verbose_json" if is_whisper else "json",
        }
        if language:
            fields["language"] = check_name("language", language)
        kind, body = encode_recording(fields, recording)
        return _make_request(provider, "audio/transcriptions", kind, body)

    def read_heard(self, fetched: Fetched) -> Heard:
        """Raises ValueError."""
        answer = decode_answer(fetched, _Transcription)
        named = answer.language or (answer.languages[0].code if answer.languages else "")
        seconds = answer.duration or (answer.usage.seconds if answer.usage else 0)
        return Heard(clean_heard(answer.text), find_language(named), read_seconds(seconds))

    def make_say_request(
        self, provider: SpeechProvider, text: str, voice: Voice
    ) -> OutboundRequest:
        """Raises SpeechError for a voice that cannot be sent."""
        fields = {
            "model": check_name("model", provider.model),
            "input": text,
            "voice": check_name("voice", voice.name or self.voice),
            "response_format": self.sound,
        }
        body = msgspec.json.encode(fields)
        return _make_request(provider, "audio/speech", "application/json", body)

    def read_sound(self, fetched: Fetched) -> Sound:
        """Raises ValueError."""
        return read_sound_file(fetched.body)


def _make_request(provider: SpeechProvider, path: str, kind: str, body: bytes) -> OutboundRequest:
    headers = {"content-type": kind}
    if provider.key:
        headers["authorization"] = f"Bearer {provider.key}"
    return OutboundRequest(parse_url(f"{provider.base}/{path}"), headers, "POST", body)


_: type[SpeechWire] = OpenAIWire
