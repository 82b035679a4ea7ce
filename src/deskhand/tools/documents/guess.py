"""Which encoding bytes are most likely in that say nothing about it. Needs chardetng-py."""

from __future__ import annotations

import re

from chardetng_py import EncodingDetector

from deskhand.tools.documents.encodings import SAFE_ENCODINGS

_BEYOND_ASCII = re.compile(rb"[\x80-\xff]")
_ASCII_BYTES_BEFORE = 64
_SAMPLE_BYTES = 16_384
_MIN_BYTES_READ_OTHERWISE = 3
"""With fewer, a text of Western Europe is often taken for another one: for one `ã` or `ï`."""
_DEFAULT = "cp1252"
_CANDIDATES = {
    **{label: codec for label, codec in SAFE_ENCODINGS.items() if codec != "iso2022-jp"},
    "cp874": "cp874",
}
"""By the name that the detector has for them. What writes text as ASCII is never guessed."""


def guess_encoding(data: bytes) -> str:
    """The name of a codec, judged by the first 16 kB from where the bytes are no longer ASCII.
    Windows-1252 where nothing else is likely, or hardly a byte would be read otherwise."""
    first = _BEYOND_ASCII.search(data)
    if first is None:
        return _DEFAULT
    start = max(first.start() - _ASCII_BYTES_BEFORE, 0)
    sample = data[start : start + _SAMPLE_BYTES]
    detector = EncodingDetector()
    detector.feed(sample, last=False)  # it may be cut off within a character
    name = _CANDIDATES.get(detector.guess(tld=None, allow_utf8=False).lower(), _DEFAULT)
    read_otherwise = sample.translate(None, _find_bytes_read_alike(name))
    return name if len(read_otherwise) >= _MIN_BYTES_READ_OTHERWISE else _DEFAULT


def _find_bytes_read_alike(name: str) -> bytes:
    each = [bytes([number]) for number in range(256)]
    return b"".join(
        byte for byte in each if byte.decode(name, "replace") == byte.decode(_DEFAULT, "replace")
    )
