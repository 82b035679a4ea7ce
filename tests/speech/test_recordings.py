"""Recordings as people send them, read in the real sandbox by the real libraries."""

from __future__ import annotations

import io
import math
import struct
import wave
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand.net.client import Net
from deskhand.sandbox.base import Sandbox
from deskhand.sandbox.choose import open_sandbox
from deskhand.speech.base import OGG, WAV, Recording, Sound
from deskhand.speech.long_recordings import SHORT_BYTES, InPieces
from deskhand.speech.providers import ProviderAddress, open_api_speech
from deskhand.speech.recording_main import find_quiet_moment
from deskhand.speech.recordings import (
    MAX_RECORDING_BYTES,
    MAX_S,
    RATE,
    RecordingTask,
    encode_as_opus,
    read_piece,
    read_samples,
)
from deskhand.speech.sentences import split_sentences
from deskhand.speech.wav import wrap_samples
from deskhand.testing.speech_server import SpeechServer
from deskhand.types.errors import SandboxUnavailable, SpeechError


def tone(seconds: float, silent: Sequence[tuple[float, float]] = ()) -> bytes:
    """A tone as a WAV file, silent between these times."""
    samples = bytearray()
    for at in range(int(seconds * RATE)):
        is_silent = any(begin <= at / RATE < end for begin, end in silent)
        samples += struct.pack("<h", 0 if is_silent else int(8000 * math.sin(at / 8)))
    return wrap_samples(bytes(samples), RATE).data


async def sandbox() -> Sandbox:
    return (await open_sandbox()).sandbox


async def test_a_recording_in_pieces_is_whole() -> None:
    recording = Recording(tone(9.0), WAV)
    begin = 0
    joined = b""
    shares = []
    while True:
        piece, samples = await read_piece(recording, RecordingTask("samples", begin, 4.0), sandbox)
        joined += samples
        shares.append(piece.share)
        if not piece.more:
            break
        begin = piece.end
    assert len(joined) == 9 * RATE * 2 and shares == sorted(shares) and shares[-1] == 1.0
    assert joined == await read_samples(Sound(recording.data, WAV), sandbox)


async def test_it_is_cut_where_it_is_quiet() -> None:
    recording = Recording(tone(6.0, [(2.5, 3.5)]), WAV)
    piece, _ = await read_piece(recording, RecordingTask("samples", 0, 4.0), sandbox)
    assert 2.5 * RATE <= piece.end <= 3.5 * RATE and piece.more


async def test_words_become_a_voice_message_and_stay_as_long() -> None:
    sound = await encode_as_opus(Sound(tone(2.0), WAV), sandbox)
    assert sound.mime == OGG and sound.data.startswith(b"OggS")
    again = await read_samples(sound, sandbox)
    assert abs(len(again) / 2 / RATE - 2.0) < 0.05
    assert await encode_as_opus(sound, sandbox) is sound


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no sound that can be read"),
        (b"hello there", "no sound that can be read"),
        (b"OggS" + bytes(200), "no sound that can be read"),
        (b"RIFF\xff\xff\xff\x7fWAVEfmt ", "no sound that can be read"),
        (b"#EXTM3U\nfile:///etc/passwd\n", "no sound that can be read"),
        (b"ffconcat version 1.0\nfile /etc/passwd\n", "no sound that can be read"),
    ],
)
async def test_what_is_no_recording_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(SpeechError, match=why):
        await read_piece(Recording(data), RecordingTask("samples"), sandbox)


async def test_a_picture_has_no_sound() -> None:
    png = bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c626001"
        "000000ffff03000006000557bfabd40000000049454e44ae426082"
    )
    with pytest.raises(SpeechError, match="sound"):
        await read_piece(Recording(png), RecordingTask("samples"), sandbox)


async def test_nothing_is_read_that_is_too_long() -> None:
    with pytest.raises(SpeechError, match="100 MB"):
        await read_piece(
            Recording(bytes(MAX_RECORDING_BYTES + 1)), RecordingTask("samples"), sandbox
        )
    late = RecordingTask("samples", int((MAX_S + 1) * RATE))
    with pytest.raises(SpeechError, match="longer than 3 hours"):
        await read_piece(Recording(tone(0.1)), late, sandbox)


async def test_without_a_sandbox_nothing_is_read() -> None:
    async def none() -> Sandbox:
        raise SandboxUnavailable("no sandbox here")

    with pytest.raises(SpeechError, match="only read in the sandbox: no sandbox here"):
        await read_piece(Recording(tone(0.1), WAV), RecordingTask("samples"), none)


def test_samples_are_a_file_that_plays() -> None:
    with wave.open(io.BytesIO(wrap_samples(bytes(RATE), RATE).data)) as reader:
        assert (reader.getframerate(), reader.getnframes()) == (RATE, RATE // 2)


@given(st.integers(1, 200), st.integers(1, 400))
def test_a_cut_is_within_the_piece(most: int, more: int) -> None:
    import numpy as np

    samples = np.arange(most + more, dtype=np.int16)
    assert 0 < find_quiet_moment(samples, most) <= most


@given(st.text(alphabet="ab. !\n", max_size=300), st.integers(1, 60))
def test_sentences_lose_no_word(text: str, most: int) -> None:
    pieces = split_sentences(text, most)
    assert all(0 < len(piece) <= most for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


def test_sentences_stay_whole_where_they_fit() -> None:
    assert split_sentences("One two. Three four! Five?", 12) == ["One two.", "Three four!", "Five?"]


async def test_who_hears_half_a_minute_gets_pieces() -> None:
    """However small the recording is."""
    async with SpeechServer() as server:
        own = ProviderAddress(server.url("sarvam"), "KEY")
        engine = open_api_speech("sarvam", "hear", {"KEY": server.key}, own, Net())
        sound = await encode_as_opus(Sound(tone(60), WAV), sandbox)
        assert len(sound.data) < SHORT_BYTES
        heard = await InPieces(engine, sandbox).hear(Recording(sound.data))
        assert 59 < heard.seconds < 61 and len(server.asked) >= 3
        assert max(len(asked.file) for asked in server.asked) < len(sound.data) / 2
