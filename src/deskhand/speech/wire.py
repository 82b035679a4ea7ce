"""How one provider is spoken to: pure functions, so that each wire is a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from ..net.client import Fetched, OutboundRequest
from ..net.form import FormFile, encode_form
from .base import MAX_SAY_CHARS, Heard, Recording, Sound, Voice

_EXTENSIONS = {
    "audio/ogg": "ogg",
    "audio/opus": "ogg",
    "audio/webm": "webm",
    "video/webm": "webm",
    "audio/mp4": "m4a",
    "audio/m4a": "m4a",
    "audio/x-m4a": "m4a",
    "audio/aac": "aac",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/flac": "flac",
    "audio/x-flac": "flac",
}


MAX_HEAR_S = 600.0
"""A longer recording is heard in pieces of this length."""


class SpeechProvider(msgspec.Struct, frozen=True):
    """Whom to ask: `name` is the provider's, `base` a URL without a slash at its end, `model` what
    the provider calls its model. The `key` is shown to nobody. `max_say_chars` is how much it
    speaks at once, where that is less than MAX_SAY_CHARS, and `max_hear_s` how much it hears."""

    name: str
    base: str
    model: str
    key: str = ""
    max_say_chars: int = MAX_SAY_CHARS
    max_hear_s: float = MAX_HEAR_S

    def __repr__(self) -> str:
        return f"SpeechProvider({self.name}/{self.model} at {self.base})"


class SpeechWire(Protocol):
    """The dialect of a provider. Making a request raises SpeechError for a name that cannot be
    sent. What is answered may be anything: reading raises ValueError for what makes no sense, and
    never anything else."""

    def make_hear_request(
        self, provider: SpeechProvider, recording: Recording, language: str
    ) -> OutboundRequest: ...

    def read_heard(self, fetched: Fetched) -> Heard: ...

    def make_say_request(
        self, provider: SpeechProvider, text: str, voice: Voice
    ) -> OutboundRequest: ...

    def read_sound(self, fetched: Fetched) -> Sound: ...


def find_extension(mime: str) -> str:
    """How the name of such a file ends: some providers go by that. `ogg` for what is not known."""
    return _EXTENSIONS.get(mime.partition(";")[0].strip().lower(), "ogg")


def encode_recording(fields: Mapping[str, str], recording: Recording) -> tuple[str, bytes]:
    """The content type and the body of a form with this recording as its `file`."""
    mime = recording.mime.partition(";")[0].strip().lower()
    kind = mime if mime in _EXTENSIONS else "application/octet-stream"
    file = FormFile("file", f"recording.{find_extension(mime)}", kind, recording.data)
    return encode_form(fields, [file])
