"""What all wires have in common: names that go into addresses and forms, and answers that may be
anything."""

from __future__ import annotations

import math
from typing import TypeVar

import msgspec

from ..net.client import Fetched
from ..types.errors import SpeechError
from ..types.messages import clean_text
from .base import OGG, WAV, Sound
from .wire import find_extension

MAX_NAME_CHARS = 200
MAX_HEARD_CHARS = 1_000_000
"""No recording that a provider takes has more words in it: this is no transcript."""
_MAX_SECONDS = 1_000_000.0
_AUDIO_MIMES = {
    "ogg": "audio/ogg",
    "webm": "audio/webm",
    "m4a": "audio/mp4",
    "aac": "audio/aac",
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "flac": "audio/flac",
}

T = TypeVar("T")


def check_name(what: str, name: str) -> str:
    """The name of a model, a voice or a language as it can be sent. Raises SpeechError for one that
    would change the meaning of an address, a header or a form."""
    if not name or len(name) > MAX_NAME_CHARS or not name.isprintable() or not name.strip("./"):
        shown = repr(name if len(name) <= 60 else f"{name[:60]}…")
        raise SpeechError(f"{shown} is not the name of a {what}: write it as the provider does")
    return name


def find_audio_mime(mime: str) -> str:
    """The usual name for this kind of sound; `audio/ogg` for what is not known."""
    return _AUDIO_MIMES[find_extension(mime)]


def decode_answer(fetched: Fetched, kind: type[T]) -> T:
    """The JSON of an answer. Raises ValueError."""
    try:
        return msgspec.json.decode(fetched.body, type=kind)
    except RecursionError as error:
        raise ValueError("the answer is nested too deeply") from error


def clean_heard(text: str) -> str:
    """A transcript as it can be kept. Raises ValueError for one that no recording can have."""
    if len(text) > MAX_HEARD_CHARS:
        raise ValueError("the transcript is too long")
    return clean_text(text).strip()


def read_seconds(said: float | str | None) -> float:
    """A length in seconds; 0 where there is none, or none that makes sense."""
    try:
        seconds = float(said or 0)
    except ValueError:
        return 0.0
    return seconds if math.isfinite(seconds) and 0 < seconds < _MAX_SECONDS else 0.0


def read_sound_file(data: bytes) -> Sound:
    """A sound file that we can pass on: OGG or WAV, by its first bytes. Raises ValueError."""
    if data.startswith(b"OggS"):
        return Sound(data, OGG)
    if data.startswith(b"RIFF") and data[8:12] == b"WAVE":
        return Sound(data, WAV)
    raise ValueError("the answer is neither OGG nor WAV")
