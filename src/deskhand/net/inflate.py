"""Bodies unpacked while they arrive, and never further than was allowed."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Protocol

from ..types.errors import NetError, TooLarge

STEP_BYTES = 64 << 10
RATIO_FROM_BYTES = 1 << 20
"""Below this much a body may be as small as it likes: a page of spaces is no bomb."""
MAX_LAYERS = 2
MAX_MEMBERS = 1000


class InflateMeter:
    """Counts one body. `limit_bytes` is how much it may be unpacked, `ratio` how many times what
    was received."""

    def __init__(self, limit_bytes: int, ratio: int) -> None:
        self._limit = limit_bytes
        self._ratio = ratio
        self.received = 0
        self.unpacked = 0

    def expect(self, size: int) -> None:
        """So much is to come, as the sender says. Raises TooLarge, before anything is read."""
        if size > self._limit:
            raise TooLarge(describe_too_large(self._limit))

    def receive(self, size: int) -> None:
        """`size` more bytes came in. Raises TooLarge."""
        self.received += size
        if self.received > self._limit:
            raise TooLarge(describe_too_large(self._limit))

    def count(self, size: int) -> None:
        """`size` more bytes came out. Raises TooLarge."""
        self.unpacked += size
        if self.unpacked > self._limit:
            raise TooLarge(describe_too_large(self._limit))
        if self.unpacked > RATIO_FROM_BYTES and self.unpacked > self._ratio * self.received:
            raise TooLarge(
                f"it unpacks to over {self._ratio} times its size, like a decompression bomb; "
                "reading was stopped."
            )


def describe_too_large(limit: int) -> str:
    """What is said of a body that is larger than it may be."""
    size = f"{limit / 1e6:.0f} MB" if limit >= 1_000_000 else f"{limit:,} bytes"
    return f"it is larger than {size}, and was not read further."


class _Layer(Protocol):
    def feed(self, data: bytes) -> Iterator[bytes]: ...

    @property
    def is_complete(self) -> bool: ...


class Inflater:
    """The layers of a Content-Encoding, undone in order. Raises NetError for one that is not
    known."""

    def __init__(self, encoding: str, meter: InflateMeter) -> None:
        names = [name.strip().lower() for name in encoding.split(",") if name.strip()]
        names = [name for name in names if name != "identity"]
        if len(names) > MAX_LAYERS:
            raise TooLarge(f"it is compressed {len(names)} times over, like a decompression bomb.")
        self._layers = [_make_layer(name) for name in reversed(names)]
        self._meter = meter

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The pieces that `data` unpacks to, each at most STEP_BYTES. Raises NetError, TooLarge."""
        self._meter.receive(len(data))
        pieces: Iterator[bytes] = iter((data,))
        for layer in self._layers:
            pieces = _feed_pieces(layer, pieces)
        try:
            for piece in pieces:
                self._meter.count(len(piece))
                yield piece
        except zlib.error:
            raise NetError("its compressed body is damaged.") from None

    def close(self) -> None:
        """All is here. Raises NetError where a layer wants more."""
        if self._meter.received and not all(layer.is_complete for layer in self._layers):
            raise NetError("its compressed body is cut off.")


def _make_layer(name: str) -> _Layer:
    match name:
        case "gzip" | "x-gzip":
            return _Zlib(gzip=True)
        case "deflate":
            return _Zlib(gzip=False)
        case _:
            raise NetError(f"it uses a compression that was not requested ({name[:20]!r}).")


def _feed_pieces(layer: _Layer, pieces: Iterator[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        yield from layer.feed(piece)


class _Zlib:
    """gzip, also of several members; deflate with its header or, as some servers send it,
    without."""

    def __init__(self, *, gzip: bool) -> None:
        self._gzip = gzip
        self._held = b""
        self._members = 0
        self._inflate = zlib.decompressobj(16 + zlib.MAX_WBITS)
        self._begun = False

    @property
    def is_complete(self) -> bool:
        return not self._held and (self._inflate.eof or not self._begun)

    def feed(self, data: bytes) -> Iterator[bytes]:
        data = self._held + data
        if not self._begun and not self._try_begin(data):
            return
        while data:
            piece = self._inflate.decompress(data, STEP_BYTES)
            if piece:
                yield piece
            data = self._inflate.unconsumed_tail
            # It holds back what did not fit.
            while len(piece) == STEP_BYTES and not data and not self._inflate.eof:
                piece = self._inflate.decompress(b"", STEP_BYTES)
                if piece:
                    yield piece
            if self._inflate.eof:
                data = self._inflate.unused_data
                # What stands behind the end of deflate, or fills up a block of gzip, means nothing.
                if not self._gzip or not data.strip(b"\0"):
                    return
                self._begin_member()

    def _begin_member(self) -> None:
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise TooLarge(
                f"it is compressed in more than {MAX_MEMBERS:,} pieces, like a decompression bomb."
            )
        self._inflate = zlib.decompressobj(16 + zlib.MAX_WBITS)

    def _try_begin(self, data: bytes) -> bool:
        """Whether enough is here to begin. Some send deflate without its two bytes of header (RFC
        9110 8.4.1.2)."""
        self._held = b"" if self._gzip or len(data) >= 2 else data
        if self._held or not data:
            return False
        if not self._gzip:
            headed = data[0] & 15 == 8 and int.from_bytes(data[:2], "big") % 31 == 0
            self._inflate = zlib.decompressobj(zlib.MAX_WBITS if headed else -zlib.MAX_WBITS)
        self._begun = True
        return True
