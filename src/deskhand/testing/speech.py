"""An engine that needs no model and no network, for tests: what it says are WAV files that it
understands again."""

from __future__ import annotations

import io
import wave
from hashlib import sha256

import anyio
import anyio.lowlevel

from ..speech.base import (
    MAX_SAY_CHARS,
    WAV,
    Heard,
    OnShare,
    Recording,
    Sound,
    Speech,
    Voice,
    ignore_share,
)
from ..speech.wav import wrap_samples
from ..types.errors import SpeechError

RATE = 16_000
_MARK = b"deskhand says: "
_KNOWN_STARTS = (b"OggS", b"RIFF", b"\x1aE\xdf\xa3", b"ID3", b"fLaC", b"\xff\xfb", b"\xff\xf1")


class ScriptedSpeech:
    """Hears what it said itself, and what it was told of with `knows`; any other sound file is
    silence to it. While `fails` is not '' each call raises SpeechError with that sentence, and
    `say` alone with `fails_to_say`; while `hangs` none returns. `heard` and `said` keep what it was
    asked."""

    def __init__(self, name: str = "fake/speech") -> None:
        self.name = name
        self.fails = ""
        self.fails_to_say = ""
        self.hangs = False
        self.heard: list[tuple[Recording, str]] = []
        self.said: list[tuple[str, Voice]] = []
        self._known: dict[str, Heard] = {}

    def knows(self, data: bytes, text: str, language: str = "") -> None:
        """From now on, this is what is said in such a recording."""
        self._known[sha256(data).hexdigest()] = Heard(text, language)

    async def hear(
        self, recording: Recording, language: str = "", on_share: OnShare = ignore_share
    ) -> Heard:
        """See Speech.hear."""
        self.heard.append((recording, language))
        await self._wait()
        if not is_sound(recording.data):
            raise SpeechError(f"{self.name} cannot read this recording: send another kind of file")
        on_share(0.5)
        await anyio.lowlevel.checkpoint()
        on_share(1.0)
        known = self._known.get(sha256(recording.data).hexdigest())
        return known or Heard(read_text(recording.data), language, read_wav_seconds(recording.data))

    async def say(self, text: str, voice: Voice = Voice()) -> Sound:  # noqa: B008 -- it is frozen
        """See Speech.say."""
        self.said.append((text, voice))
        await self._wait()
        if self.fails_to_say:
            raise SpeechError(self.fails_to_say)
        if len(text) > MAX_SAY_CHARS:
            raise SpeechError(f"{self.name} speaks at most {MAX_SAY_CHARS:,} characters at once")
        return Sound(make_wav(text), WAV)

    async def _wait(self) -> None:
        await anyio.lowlevel.checkpoint()
        if self.hangs:
            await anyio.sleep_forever()
        if self.fails:
            raise SpeechError(self.fails)


def make_wav(text: str, rate: int = RATE) -> bytes:
    """A WAV file in which `text` is hidden as noise that nobody hears; '' is plain silence."""
    hidden = _MARK + text.encode("utf-8", "replace") if text else bytes(rate // 10)
    samples = b"".join(bytes((byte, 0)) for byte in hidden)  # 16 bits, little-endian, very quiet
    return write_wav(samples, rate)


def write_wav(samples: bytes, rate: int = RATE) -> bytes:
    """Samples of 16 bits, one channel, as a WAV file."""
    return wrap_samples(samples, rate).data


def read_samples(data: bytes) -> bytes:
    """The samples of a WAV file; nothing where it is none."""
    try:
        with wave.open(io.BytesIO(data)) as reader:
            return bytes(reader.readframes(reader.getnframes()))
    except (wave.Error, EOFError):
        return b""


def read_wav_seconds(data: bytes) -> float:
    """How long a WAV file is; 0 where it is none."""
    try:
        with wave.open(io.BytesIO(data)) as reader:
            return float(reader.getnframes() / (reader.getframerate() or 1))
    except (wave.Error, EOFError):
        return 0.0


def read_text(data: bytes) -> str:
    """The text that `make_wav` hid; '' in any other file."""
    hidden = read_samples(data)[::2]
    return hidden.removeprefix(_MARK).decode(errors="replace") if hidden.startswith(_MARK) else ""


def is_sound(data: bytes) -> bool:
    """Whether a file begins as a sound file does."""
    return data.startswith(_KNOWN_STARTS) or data[4:8] == b"ftyp"


_: type[Speech] = ScriptedSpeech
