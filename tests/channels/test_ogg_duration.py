"""How long a recording is, by its container alone."""

from __future__ import annotations

import io
from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deskhand.channels.ogg_duration import find_ogg_voice, read_ogg_voice
from deskhand.testing.ogg import make_ogg_opus, make_page, make_silence

TWO_S = make_silence(2.0)


@pytest.mark.parametrize("seconds", [0.02, 1.0, 61.5])
def test_the_length_of_a_recording(seconds: float) -> None:
    voice = read_ogg_voice(make_silence(seconds))
    assert voice.duration_s == pytest.approx(seconds)
    assert len(voice.packet_bytes) == round(seconds / 0.02)


def test_a_decoder_hears_as_much() -> None:
    """What is written here without a codec is a file to one, and as long to it."""
    av = pytest.importorskip("av")
    with av.open(io.BytesIO(TWO_S)) as container:
        frames = list(container.decode(audio=0))
    heard_s = sum(each.samples for each in frames) / 48_000
    assert heard_s == pytest.approx(read_ogg_voice(TWO_S).duration_s, abs=0.02)


def test_what_an_encoder_writes() -> None:
    pytest.importorskip("av")
    from deskhand.testing.speech_sounds import make_ogg

    voice = read_ogg_voice(make_ogg("hello"))
    assert voice.duration_s == pytest.approx(0.4, abs=0.05) and len(voice.packet_bytes) > 10


NO_VOICE: dict[str, bytes] = {
    "nothing": b"",
    "a beginning": b"OggS",
    "a wave file": b"RIFF0000WAVE" + bytes(100),
    "no Opus": make_page([b"\x01vorbis" + bytes(20)], 0, 1, 0),
    "a short head": make_page([b"OpusHead\x01"], 0, 1, 0),
    "cut off": TWO_S[:-1],
    "more behind it": TWO_S + b"x",
    "two streams": TWO_S + make_silence(1.0, serial=2),
    "longer than it is": TWO_S + make_page([b"\xf8"], 2**62, 1, 9),
}


@pytest.mark.parametrize("name", NO_VOICE)
def test_what_is_no_voice_message(name: str) -> None:
    with pytest.raises(ValueError, match="it "):
        read_ogg_voice(NO_VOICE[name])
    assert find_ogg_voice(NO_VOICE[name]) is None


@given(st.binary(max_size=400), st.integers(0, len(TWO_S)), st.integers(0, 400))
def test_nothing_but_a_value_error(data: bytes, start: int, length: int) -> None:
    """Whatever it is, and whatever becomes of a file on the way."""
    for broken in (data, b"OggS" + data, TWO_S[:start] + data + TWO_S[start + length :]):
        voice = find_ogg_voice(broken)
        if voice is not None:
            assert 0 <= voice.duration_s <= 0.12 * len(voice.packet_bytes)
            assert all(0 <= each <= 255 for each in voice.draw_waveform(256, 255))


@example([1, 254, 255, 256, 509, 510, 511], 3)
@given(st.lists(st.integers(1, 1_000), max_size=700), st.integers(1, 300))
def test_a_waveform(sizes: list[int], points: int) -> None:
    """The loudest is the peak, and nothing is left out."""
    voice = read_ogg_voice(make_ogg_opus([bytes(size) for size in sizes]))
    assert voice.packet_bytes == tuple(sizes)
    drawn = voice.draw_waveform(points, 255)
    assert len(drawn) == max(min(points, len(sizes)), 1)
    assert max(drawn) == (255 if sizes else 0)


def test_a_packet_that_goes_on_on_the_next_page() -> None:
    """RFC 3533, section 6: one of 255 bytes and more ends with a shorter lace."""
    head = make_silence(0.02)
    whole = make_page([bytes(255)], 2 * 960 + 312, 1, 3)
    assert whole[26:29] == b"\x02\xff\x00"
    begun = whole[:26] + b"\x01\xff" + whole[29:]
    ended = make_page([bytes(10)], 3 * 960 + 312, 1, 4)
    assert read_ogg_voice(head + begun + ended).packet_bytes[-1] == 265


def test_time_grows_with_the_length() -> None:
    def took_s(data: bytes) -> float:
        times = []
        for _ in range(5):
            began = process_time()
            read_ogg_voice(data).draw_waveform(256, 255)
            times.append(process_time() - began)
        return min(times)

    page = make_page([], -1, 1, 3)
    for short in (make_silence(60.0), TWO_S + page * 3_000):
        long = short + (page * 7 * (len(short) // len(page)))
        assert took_s(long) < 40 * max(took_s(short), 0.000_1)
