"""Sarvam, for the languages of India. A request hears half a minute at most.

https://docs.sarvam.ai/api-reference-docs/speech-to-text/transcribe and
https://docs.sarvam.ai/api-reference-docs/text-to-speech/convert.
"""

from __future__ import annotations

import base64
import binascii

import msgspec

from ..net.client import Fetched, OutboundRequest
from ..net.url import parse_url
from ..types.errors import SpeechError
from .base import Heard, Recording, Sound, Voice
from .language_codes import find_language
from .wire import SpeechProvider, SpeechWire, encode_recording
from .wire_fields import check_name, clean_heard, decode_answer, read_sound_file

_SPOKEN = {
    "bn": "bn-IN",
    "en": "en-IN",
    "gu": "gu-IN",
    "hi": "hi-IN",
    "kn": "kn-IN",
    "ml": "ml-IN",
    "mr": "mr-IN",
    "or": "od-IN",
    "pa": "pa-IN",
    "ta": "ta-IN",
    "te": "te-IN",
}
"""What Sarvam speaks: a code of ISO 639-1, and what Sarvam calls the language."""


class _Transcription(msgspec.Struct, frozen=True):
    transcript: str
    language_code: str | None = None


class _Speech(msgspec.Struct, frozen=True):
    audios: tuple[str, ...]


class SarvamWire(msgspec.Struct, frozen=True):
    """`voice` is the speaker where none is named."""

    voice: str

    def make_hear_request(
        self, provider: SpeechProvider, recording: Recording, language: str
    ) -> OutboundRequest:
        """Raises SpeechError for a model or a language that cannot be sent. One that Sarvam may not
        know is left to it to find."""
        if language:
            check_name("language", language)
        fields = {
            "model": check_name("model", provider.model),
            "language_code": _SPOKEN.get(language, "unknown"),
        }
        if provider.model.startswith("saaras"):
            fields["mode"] = "transcribe"  # it can translate, too
        kind, body = encode_recording(fields, recording)
        return _make_request(provider, "speech-to-text", kind, body)

    def read_heard(self, fetched: Fetched) -> Heard:
        """Raises ValueError."""
        answer = decode_answer(fetched, _Transcription)
        return Heard(clean_heard(answer.transcript), _read_language(answer.language_code))

    def make_say_request(
        self, provider: SpeechProvider, text: str, voice: Voice
    ) -> OutboundRequest:
        """Raises SpeechError for a voice that cannot be sent, or a language that Sarvam does not
        speak."""
        language = _SPOKEN.get(voice.language or "en")
        if language is None:
            raise SpeechError(f"{provider.name} does not speak {voice.language[:8]!r}")
        fields = {
            "text": text,
            "target_language_code": language,
            "speaker": check_name("voice", voice.name or self.voice),
            "model": check_name("model", provider.model),
        }
        body = msgspec.json.encode(fields)
        return _make_request(provider, "text-to-speech", "application/json", body)

    def read_sound(self, fetched: Fetched) -> Sound:
        """Raises ValueError."""
        answer = decode_answer(fetched, _Speech)
        if len(answer.audios) != 1:
            raise ValueError("the answer is not one sound")
        try:
            return read_sound_file(base64.b64decode(answer.audios[0], validate=True))
        except binascii.Error as error:
            raise ValueError("the sound is not base64") from error


def _read_language(code: str | None) -> str:
    known = {theirs: ours for ours, theirs in _SPOKEN.items()}
    return known.get(code or "") or find_language(code)


def _make_request(provider: SpeechProvider, path: str, kind: str, body: bytes) -> OutboundRequest:
    headers = {"content-type": kind}
    if provider.key:
        headers["api-subscription-key"] = provider.key
    return OutboundRequest(parse_url(f"{provider.base}/{path}"), headers, "POST", body)


_: type[SpeechWire] = SarvamWire
