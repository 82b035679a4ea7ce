"""Reads one recording: `main` takes a `RecordingTask` as a line on stdin and the file behind it.
Run by `recordings.py` in the sandbox, a process for each, as what people send is decoded by
libraries in C; needs the extra [voice]."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from typing import Any

import av
import msgspec
import numpy as np

from .recordings import MAX_S, RATE, RecordingPiece, RecordingTask

OPUS_RATE = 48_000
OPUS_BITS = 32_000
SEEK_S = 15.0
"""A piece ends at the quietest moment of its last so many seconds."""
QUIET_S = 0.2

Samples = np.ndarray[Any, np.dtype[np.int16]]


class Unreadable(Exception):
    """Why a recording was not read, as the end of a sentence about it."""


def read_piece(data: bytes, task: RecordingTask) -> tuple[RecordingPiece, Samples]:
    """The piece that begins at sample `task.begin`. Raises Unreadable."""
    try:
        with av.open(io.BytesIO(data), mode="r", metadata_errors="ignore") as container:
            if not container.streams.audio:
                raise Unreadable("there is no sound in it")
            whole_s = container.duration / av.time_base if container.duration else 0.0
            if whole_s > MAX_S:
                raise Unreadable(f"it is longer than {MAX_S / 3600:.0f} hours")
            held, more = _collect(_decode(container), task)
    except (av.FFmpegError, ValueError) as error:
        raise Unreadable(f"it is no sound that can be read ({type(error).__name__})") from None
    most = int(task.piece_s * RATE)
    cut = find_quiet_moment(held, most) if more else len(held)
    end = task.begin + cut
    share = min(end / RATE / whole_s, 0.99) if more and whole_s > 0 else 1.0
    return RecordingPiece(end=end, more=more, share=share, seconds=cut / RATE), held[:cut]


def _decode(container: Any) -> Iterator[Samples]:
    resampler = av.AudioResampler(format="s16", layout="mono", rate=RATE)
    for frame in container.decode(container.streams.audio[0]):
        frame.pts = None  # a broken clock in the file is no reason to stop
        for sound in resampler.resample(frame):
            yield _to_samples(sound)
    for sound in resampler.resample(None):
        yield _to_samples(sound)


def _to_samples(sound: Any) -> Samples:
    samples: Samples = sound.to_ndarray().reshape(-1)
    return samples


def _collect(chunks: Iterator[Samples], task: RecordingTask) -> tuple[Samples, bool]:
    """The samples behind `task.begin`, one piece of them at most, and whether there are more."""
    most = int(task.piece_s * RATE)
    skip = task.begin
    held: list[Samples] = []
    size = 0
    for chunk in chunks:
        rest = chunk[skip:]
        skip = max(skip - len(chunk), 0)
        if len(rest):
            held.append(rest)
            size += len(rest)
        if size > most:
            return np.concatenate(held), True
    return np.concatenate([*held, np.zeros(0, np.int16)]), False


def find_quiet_moment(samples: Samples, most: int) -> int:
    """Where to cut, at `most` samples or up to SEEK_S before that: in the quietest moment."""
    window = int(QUIET_S * RATE)
    begin = max(window, most - int(SEEK_S * RATE))
    count = (most - begin) // window
    if count < 1:
        return most
    tail = samples[begin : begin + count * window].reshape(count, window).astype(np.float32)
    quietest = int(np.argmin((tail * tail).mean(axis=1)))
    return begin + quietest * window + window // 2


def encode_opus(samples: Samples) -> bytes:
    """OGG with Opus."""
    out = io.BytesIO()
    resampler = av.AudioResampler(format="s16", layout="mono", rate=OPUS_RATE)
    with av.open(out, "w", format="ogg") as container:
        stream: Any = container.add_stream("libopus", rate=OPUS_RATE, layout="mono")
        stream.bit_rate = OPUS_BITS
        frame = av.AudioFrame.from_ndarray(samples.reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate = RATE
        for sound in (*resampler.resample(frame), *resampler.resample(None), None):
            container.mux(stream.encode(sound))
    return out.getvalue()


def answer(data: bytes, task: RecordingTask) -> tuple[RecordingPiece, bytes]:
    """What is told of the recording, and the piece of it."""
    try:
        piece, samples = read_piece(data, task)
        if task.form == "samples":
            return piece, samples.tobytes()
        if not len(samples):
            return RecordingPiece(problem="there is no sound in it"), b""
        return piece, encode_opus(samples)
    except Unreadable as error:
        return RecordingPiece(problem=str(error)), b""


def main() -> None:
    """Answer what stands on stdin: a line about the piece, and the piece."""
    task = msgspec.json.decode(sys.stdin.buffer.readline(), type=RecordingTask)
    piece, data = answer(sys.stdin.buffer.read(), task)
    sys.stdout.buffer.write(msgspec.json.encode(piece) + b"\n" + data)
