"""Recordings in OGG with Opus in which nobody speaks, made without a codec.

https://www.rfc-editor.org/rfc/rfc3533 (pages), https://www.rfc-editor.org/rfc/rfc7845 (headers)
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

SILENCE = b"\xf8\xff\xfe"
"""A packet of 20 ms: https://www.rfc-editor.org/rfc/rfc6716, section 3.1."""
PACKET_SAMPLES = 960
PRE_SKIP = 312
_BEGINS, _ENDS = 2, 4
_POLYNOMIAL = 0x04C11DB7


def make_silence(seconds: float, *, serial: int = 1) -> bytes:
    """A recording of this length, to 20 ms. Each `serial` makes another file."""
    count = max(round(seconds * 48_000 / PACKET_SAMPLES), 1)
    return make_ogg_opus([SILENCE] * count, serial=serial)


def make_ogg_opus(packets: Sequence[bytes], *, serial: int = 1) -> bytes:
    """These packets of 20 ms each as a file, a page for up to 50 of them."""
    head = b"OpusHead" + struct.pack("<BBHIhB", 1, 1, PRE_SKIP, 48_000, 0, 0)
    tags = b"OpusTags" + struct.pack("<I", 4) + b"test" + struct.pack("<I", 0)
    pages = [make_page([head], 0, serial, 0, _BEGINS), make_page([tags], 0, serial, 1)]
    for start in range(0, len(packets), 50):
        some = packets[start : start + 50]
        done = start + len(some)
        position = PRE_SKIP + PACKET_SAMPLES * done
        kind = _ENDS if done == len(packets) else 0
        pages.append(make_page(some, position, serial, len(pages), kind))
    return b"".join(pages)


def make_page(
    packets: Sequence[bytes], position: int, serial: int, number: int, kind: int = 0
) -> bytes:
    """A page of whole packets."""
    laces = b"".join(b"\xff" * (len(each) // 255) + bytes([len(each) % 255]) for each in packets)
    head = struct.pack("<4sBBqII", b"OggS", 0, kind, position, serial, number)
    body = bytes([len(laces)]) + laces + b"".join(packets)
    checksum = _sum_up(head + bytes(4) + body)
    return head + struct.pack("<I", checksum) + body


def _sum_up(page: bytes) -> int:
    """RFC 3533, section 6: a CRC from zero that is neither reflected nor inverted."""
    found = 0
    for byte in page:
        found ^= byte << 24
        for _ in range(8):
            found = (found << 1) ^ (_POLYNOMIAL if found & 0x80000000 else 0)
            found &= 0xFFFFFFFF
    return found
