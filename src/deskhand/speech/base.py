"""What hears and speaks: engines on this machine, or of a provider."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

import msgspec

OGG = "audio/ogg"
WAV = "audio/wav"
MAX_SAY_CHARS = 4_000
"""A longer answer is not spoken."""

Use = Literal["hear", "say"]
"""What an engine is wanted for."""
OnShare = Callable[[float], None]
"""Told which share of a recording was heard, from 0 to 1."""


def ignore_share(share: float) -> None:
    """The OnShare of who does not want to know."""


class Recording(msgspec.Struct, frozen=True):
    """A sound file as it came: OGG with Opus from most chats, WebM or MP4 from browsers, and
    whatever people attach. Nothing in it is to be trusted."""

    data: bytes
    mime: str = OGG


class Heard(msgspec.Struct, frozen=True):
    """What was said; `text` is '' where nobody spoke. `language` is a code of ISO 639-1, '' where
    the engine does not tell; `seconds` is how long the recording is, 0 where nobody measured it."""

    text: str
    language: str = ""
    seconds: float = 0.0


class Sound(msgspec.Struct, frozen=True):
    """Words as a sound file: OGG with Opus, or WAV."""

    data: bytes
    mime: str = OGG


class Voice(msgspec.Struct, frozen=True):
    """How words are to sound. `name` is what the engine calls a voice, '' for its usual one;
    `language` a code of ISO 639-1, '' where the words tell it themselves."""

    name: str = ""
    language: str = ""


class Speech(Protocol):
    """One engine. Every implementation passes `deskhand.testing.speech_suite`."""

    @property
    def name(self) -> str:
        """What people know it by: `openai/whisper-1`, `local/base`."""
        ...

    async def hear(
        self, recording: Recording, language: str = "", on_share: OnShare = ignore_share
    ) -> Heard:
        """What was said in it. `language` is what to expect; '' finds it out. Raises SpeechError
        with the next step."""
        ...

    async def say(self, text: str, voice: Voice = Voice()) -> Sound:  # noqa: B008 -- it is frozen
        """These words, at most MAX_SAY_CHARS of them. Raises SpeechError with the next step."""
        ...
