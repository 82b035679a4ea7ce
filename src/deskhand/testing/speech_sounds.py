"""What is said in which recording, and sound files that are made of words. Needs `av`."""

from __future__ import annotations

import io
import math
import struct
from hashlib import sha256

import av
import msgspec

from .speech import is_sound, read_samples, write_wav

RATE = 24_000


class KnownRecording(msgspec.Struct, frozen=True):
    """What is said in a recording."""

    text: str
    language: str = "en"
    seconds: float = 1.5


class SpokenSounds:
    """Recordings that are known by their SHA-256."""

    def __init__(self) -> None:
        self._known: dict[str, KnownRecording] = {}

    def knows(
        self, data: bytes, text: str, language: str = "en", seconds: float = 1.5
    ) -> KnownRecording:
        """From now on, this is what is said in such a recording. A WAV file is known by its
        samples, too: whoever has the samples alone makes a file of their own."""
        known = KnownRecording(text, language, seconds)
        for part in (data, read_samples(data)):
            if part:
                self._known[sha256(part).hexdigest()] = known
        return known

    def hear(self, data: bytes) -> KnownRecording | None:
        """What is said in it; None where it is no sound file."""
        if not is_sound(data):
            return None
        for part in (data, read_samples(data)):
            if (known := self._known.get(sha256(part).hexdigest())) is not None:
                return known
        return KnownRecording("", "", 1.0)

    def say(self, text: str, sound: str) -> bytes:
        """A sound file, or samples, in which these words are heard afterwards."""
        data = make_ogg(text) if sound == "opus" else write_wav(make_tone(text, RATE), RATE)
        self.knows(data, text)
        return read_samples(data) if sound == "samples" else data


def make_tone(text: str, rate: int) -> bytes:
    """Samples of 16 bits that are audible, and differ from text to text."""
    digest = sha256(text.encode("utf-8", "replace")).digest()
    samples = [
        round(3_000 * math.sin(2 * math.pi * (300 + 4 * byte) * at / rate))
        for byte in digest[:8]
        for at in range(rate // 20)
    ]
    return struct.pack(f"<{len(samples)}h", *samples)


def make_ogg(text: str) -> bytes:
    """Such samples as OGG with Opus."""
    rate = 48_000
    samples = make_tone(text, rate)
    file = io.BytesIO()
    with av.open(file, "w", format="ogg") as container:
        stream = container.add_stream("libopus", rate=rate, layout="mono")
        frame = av.AudioFrame(format="s16", layout="mono", samples=len(samples) // 2)
        frame.sample_rate = rate
        frame.pts = 0
        frame.planes[0].update(samples)
        container.mux([*stream.encode(frame), *stream.encode(None)])
    return file.getvalue()
