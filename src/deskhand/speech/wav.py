"""WAV files, which everything plays."""

from __future__ import annotations

import io
import wave

from .base import WAV, Sound


def wrap_samples(samples: bytes, rate: int, channels: int = 1) -> Sound:
    """Samples of 16 bits, little-endian, as a WAV file."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(channels)
        writer.setsampwidth(2)
        writer.setframerate(rate)
        writer.writeframes(samples)
    return Sound(file.getvalue(), WAV)
