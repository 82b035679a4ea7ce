"""ElevenLabs. A voice has an id, which is part of the address.

https://elevenlabs.io/docs/api-reference/speech-to-text/convert,
https://elevenlabs.io/docs/api-reference/text-to-speech/convert and
https://elevenlabs.io/docs/overview/models.
"""

from __future__ import annotations

from urllib.parse import quote

import msgspec

from ..net.client import Fetched, OutboundRequest
from ..net.url import parse_url
from .base import Heard, Recording, Sound, Voice
from .language_codes import find_language
from .wire import SpeechProvider, SpeechWire, encode_recording
from .wire_fields import check_name, clean_heard, decode_answer, read_seconds, read_sound_file

_OUTPUT_FORMAT = "opus_48000_32"
"""Opus in OGG at 32 kbit/s, which every plan has."""


class _Transcription(msgspec.Struct, frozen=True):
    text: str
    language_code: str | None = None
    audio_duration_secs: float | None = None


class ElevenLabsWire(msgspec.Struct, frozen=True):
    """`voice` is the id of the voice where none is named."""

    voice: str

    def make_hear_request(
        self, provider: SpeechProvider, recording: Recording, language: str
    ) -> OutboundRequest:
        """Raises SpeechError for a language that cannot be sent."""
        fields = {
            "model_id": check_name("model", provider.model),
            "tag_audio_events": "false",  # else "(laughter)" stands where nobody speaks
            "timestamps_granularity": "none",
        }
        if language:
            fields["language_code"] = check_name("language", language)
        kind, body = encode_recording(fields, recording)
        return _make_request(provider, "speech-to-text", kind, body)

    def read_heard(self, fetched: Fetched) -> Heard:
        """Raises ValueError."""
        answer = decode_answer(fetched, _Transcription)
        language = find_language(answer.language_code)
        return Heard(clean_heard(answer.text), language, read_seconds(answer.audio_duration_secs))

    def make_say_request(
        self, provider: SpeechProvider, text: str, voice: Voice
    ) -> OutboundRequest:
        """Raises SpeechError for a voice or a language that cannot be sent."""
        fields = {"text": text, "model_id": check_name("model", provider.model)}
        if voice.language and "multilingual" not in provider.model:  # these refuse the field
            fields["language_code"] = check_name("language", voice.language)
        name = quote(check_name("voice", voice.name or self.voice), safe="")
        path = f"text-to-speech/{name}?output_format={_OUTPUT_FORMAT}"
        return _make_request(provider, path, "application/json", msgspec.json.encode(fields))

    def read_sound(self, fetched: Fetched) -> Sound:
        """Raises ValueError."""
        return read_sound_file(fetched.body)


def _make_request(provider: SpeechProvider, path: str, kind: str, body: bytes) -> OutboundRequest:
    headers = {"content-type": kind}
    if provider.key:
        headers["xi-api-key"] = provider.key
    return OutboundRequest(parse_url(f"{provider.base}/v1/{path}"), headers, "POST", body)


_: type[SpeechWire] = ElevenLabsWire
