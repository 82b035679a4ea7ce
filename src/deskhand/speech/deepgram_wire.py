"""Deepgram. A recording is the body itself, and a voice is a model of its own.

https://developers.deepgram.com/reference/speech-to-text/listen-pre-recorded,
https://developers.deepgram.com/docs/language-detection,
https://developers.deepgram.com/reference/text-to-speech/speak-request and
https://developers.deepgram.com/docs/tts-models.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

import msgspec

from ..net.client import Fetched, OutboundRequest
from ..net.url import parse_url
from .base import Heard, Recording, Sound, Voice
from .language_codes import find_language
from .wire import SpeechProvider, SpeechWire
from .wire_fields import (
    check_name,
    clean_heard,
    decode_answer,
    find_audio_mime,
    read_seconds,
    read_sound_file,
)


class _Alternative(msgspec.Struct, frozen=True):
    transcript: str


class _Channel(msgspec.Struct, frozen=True):
    alternatives: tuple[_Alternative, ...]
    detected_language: str | None = None


class _Results(msgspec.Struct, frozen=True):
    channels: tuple[_Channel, ...]


class _Metadata(msgspec.Struct, frozen=True):
    duration: float | None = None


class _Transcription(msgspec.Struct, frozen=True):
    results: _Results
    metadata: _Metadata | None = None


class DeepgramWire(msgspec.Struct, frozen=True):
    """Asks for OGG with Opus."""

    def make_hear_request(
        self, provider: SpeechProvider, recording: Recording, language: str
    ) -> OutboundRequest:
        """Raises SpeechError for a language that cannot be sent."""
        query = {"model": check_name("model", provider.model), "smart_format": "true"}
        if language:
            query["language"] = check_name("language", language)
        else:
            query["detect_language"] = "true"  # without it, everything is taken for English
        kind = find_audio_mime(recording.mime)
        return _make_request(provider, "listen", query, kind, recording.data)

    def read_heard(self, fetched: Fetched) -> Heard:
        """Raises ValueError."""
        answer = decode_answer(fetched, _Transcription)
        try:
            channel = answer.results.channels[0]
            text = channel.alternatives[0].transcript
        except IndexError as error:
            raise ValueError("the answer has no transcript") from error
        seconds = read_seconds(answer.metadata.duration if answer.metadata else 0)
        return Heard(clean_heard(text), find_language(channel.detected_language), seconds)

    def make_say_request(
        self, provider: SpeechProvider, text: str, voice: Voice
    ) -> OutboundRequest:
        """Raises SpeechError for a voice that cannot be sent."""
        query = {
            "model": check_name("voice", voice.name or provider.model),
            "encoding": "opus",
            "container": "ogg",
        }
        body = msgspec.json.encode({"text": text})
        return _make_request(provider, "speak", query, "application/json", body)

    def read_sound(self, fetched: Fetched) -> Sound:
        """Raises ValueError."""
        return read_sound_file(fetched.body)


def _make_request(
    provider: SpeechProvider, method: str, query: Mapping[str, str], kind: str, body: bytes
) -> OutboundRequest:
    headers = {"content-type": kind}
    if provider.key:
        headers["authorization"] = f"Token {provider.key}"
    url = parse_url(f"{provider.base}/v1/{method}?{urlencode(query)}")
    return OutboundRequest(url, headers, "POST", body)


_: type[SpeechWire] = DeepgramWire
