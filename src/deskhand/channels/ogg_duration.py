"""How long a recording is, and about how loud where, read from its container alone.

Discord and Matrix want both beside a voice message. Opus needs more bytes for speech than for
silence, so that the sizes of its packets draw about the same picture as the samples would.

https://www.rfc-editor.org/rfc/rfc3533 (Ogg), https://www.rfc-editor.org/rfc/rfc7845 (Opus in it)
"""

from __future__ import annotations

import struct
from itertools import pairwise

import msgspec

RATE = 48_000
"""Granule positions count samples at this rate, whatever was recorded: RFC 7845, section 4."""
MAX_PACKET_SAMPLES = 5_760
"""120 ms: RFC 6716, section 3.2.5."""
HEADER_PACKETS = 2
_PAGE = struct.Struct("<4sBBqIIIB")
_HEAD = b"OpusHead"
_NO_POSITION = -1


class OggVoice(msgspec.Struct, frozen=True):
    """A recording in OGG with Opus: how long it is, and the size of each packet in bytes."""

    duration_s: float
    packet_bytes: tuple[int, ...]

    def draw_waveform(self, points: int, peak: int) -> list[int]:
        """From 0 to `peak` at no more than so many points of equal length; [0] where it has no
        packets."""
        sizes = self.packet_bytes or (0,)
        count = min(points, len(sizes))
        loudest = max(max(sizes), 1)
        bounds = [len(sizes) * i // count for i in range(count + 1)]
        heights = [max(sizes[start:end]) for start, end in pairwise(bounds)]
        return [height * peak // loudest for height in heights]


class _Page(msgspec.Struct, frozen=True):
    position: int
    serial: int
    laces: bytes
    body_start: int
    end: int


def find_ogg_voice(data: bytes) -> OggVoice | None:
    """What its pages say of it; None where it is no OGG with Opus, which alone most platforms take
    as a voice message."""
    try:
        return read_ogg_voice(data)
    except ValueError:
        return None


def read_ogg_voice(data: bytes) -> OggVoice:
    """What its pages say of it. Raises ValueError for anything but OGG with Opus in one stream, and
    for a length that its packets cannot have."""
    first = _read_page(data, 0)
    head = data[first.body_start : first.end]
    if not head.startswith(_HEAD) or len(head) < 12:
        raise ValueError("it is not Opus")
    skipped = int.from_bytes(head[10:12], "little")
    last = 0
    sizes: list[int] = []
    unfinished = 0
    at = 0
    while at < len(data):
        page = _read_page(data, at)
        if page.serial != first.serial:
            raise ValueError("it has more than one stream")
        for lace in page.laces:
            unfinished += lace
            if lace < 255:
                sizes.append(unfinished)
                unfinished = 0
        if page.position != _NO_POSITION:
            last = page.position
        at = page.end
    packets = tuple(sizes[HEADER_PACKETS:])
    samples = max(last - skipped, 0)
    if samples > MAX_PACKET_SAMPLES * len(packets):
        raise ValueError("it says that it is longer than it is")
    return OggVoice(samples / RATE, packets)


def _read_page(data: bytes, at: int) -> _Page:
    """The page that begins there. Raises ValueError."""
    if len(data) < at + _PAGE.size:
        raise ValueError("it is cut off")
    magic, version, _, position, serial, _, _, count = _PAGE.unpack_from(data, at)
    if magic != b"OggS" or version:
        raise ValueError("it is not Ogg")
    body_start = at + _PAGE.size + count
    laces = data[at + _PAGE.size : body_start]
    end = body_start + sum(laces)
    if len(laces) < count or end > len(data):
        raise ValueError("it is cut off")
    return _Page(position, serial, laces, body_start, end)
