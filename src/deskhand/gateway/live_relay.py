"""What a model is saying in one process, for those who follow in another one.

It goes through the database and is not kept: who misses a piece gets the whole text with its event.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence

import anyio
import msgspec
from msgspec.structs import replace

from ..store.base import TELL_BYTES, Store
from ..types.door import Progress
from ..types.errors import StoreUnavailable
from .feed import join_pieces
from .remote_turns import RemoteTurns

log = logging.getLogger(__name__)

PAUSE_S = 0.05
"""Pieces that come within this time are sent together."""
MOST_WAITING = 2_000
PIECE_CHARS = TELL_BYTES // 8
"""A longer text is sent in several pieces: a character may take six bytes."""
SHOWN = frozenset({"text", "thinking", "reset", "status", "tool_output", "tool_result", "step"})
"""Prompts and requests are too long, and for owners alone."""


class LivePiece(msgspec.Struct, frozen=True, array_like=True):
    """A piece of what happens in a session."""

    session: str
    progress: Progress


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[LivePiece]).decode
Publish = Callable[[str, Progress], None]


class LiveSender:
    """Sends what happens in the sessions of this process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: list[LivePiece] = []
        self._news = anyio.Event()

    def put(self, session: str, item: Progress) -> None:
        """Send this soon. Never waits; where too much waits, it is left out."""
        if item.kind not in SHOWN or len(self._waiting) >= MOST_WAITING:
            return
        last = self._waiting[-1] if self._waiting else None
        joined = (
            join_pieces(last.progress, item)
            if last is not None and last.session == session
            else None
        )
        if joined is not None:
            self._waiting[-1] = LivePiece(session, joined)
        else:
            self._waiting.append(LivePiece(session, item))
        self._news.set()

    async def run(self) -> None:
        """Send for ever."""
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            waiting = self._waiting
            self._waiting = []
            try:
                for message in pack(waiting):
                    await self._store.tell(message)
            except StoreUnavailable as error:
                log.info("Others are not told what is being written: %s", error)
            await anyio.sleep(PAUSE_S)


def pack(pieces: Sequence[LivePiece]) -> Iterator[str]:
    """The pieces in as few messages as there need be, none of them longer than TELL_BYTES."""
    message: list[bytes] = []
    size = 2
    for piece in pieces:
        for part in _split(piece):
            encoded = _encode(part)
            if len(encoded) + 2 > TELL_BYTES:  # the name of its session is that long
                continue
            if message and size + len(encoded) + 1 > TELL_BYTES:
                yield _join(message)
                message = []
                size = 2
            message.append(encoded)
            size += len(encoded) + 1
    if message:
        yield _join(message)


def _join(encoded: Sequence[bytes]) -> str:
    return (b"[%b]" % b",".join(encoded)).decode()


def _split(piece: LivePiece) -> Iterator[LivePiece]:
    """A long piece in several that say the same one after the other."""
    progress = piece.progress
    if len(progress.text) <= PIECE_CHARS:
        yield piece
        return
    for start in range(0, len(progress.text), PIECE_CHARS):
        text = progress.text[start : start + PIECE_CHARS]
        offset = progress.offset + start if progress.kind == "text" else progress.offset
        yield LivePiece(piece.session, replace(progress, text=text, offset=offset))


async def receive_live(store: Store, turns: RemoteTurns, publish: Publish) -> None:
    """Publish what other processes send, until cancelled."""

    def receive(message: str) -> None:
        try:
            pieces = _decode(message)
        except (msgspec.MsgspecError, RecursionError) as error:  # of another version
            log.info("Could not read what another worker is writing: %s", error)
            return
        for piece in pieces:
            turns.on_progress(piece.session, piece.progress)
            publish(piece.session, piece.progress)

    with store.listening(receive):
        await anyio.sleep_forever()
