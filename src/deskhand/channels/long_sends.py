"""Saying what takes several messages: after a fault it goes on where it was."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ..types.commit import Outgoing
from ..types.errors import ChannelError
from .pieces import MessageForm, Piece, is_long, make_pieces, prepend_note

MAX_REMEMBERED = 200

SendPiece = Callable[[int, Piece], Awaitable[str]]
"""Sends one message and returns the platform's id of it. Raises ChannelError."""


class _Sent(msgspec.Struct):
    """The ids so far, and whether the next message may have arrived."""

    ids: list[str] = []
    doubt: bool = False


class LongSends:
    """What a channel whose messages have this form says, and what has arrived of answers that a
    fault cut off."""

    def __init__(self, form: MessageForm) -> None:
        self._form = form
        self._known: dict[str, _Sent] = {}

    async def send(
        self, outgoing: Outgoing, mark: str, send: SendPiece, *, over: bool = False
    ) -> str:
        """Say it in as many messages as it takes, but for those that have arrived. With `over` the
        first is written over a message that is there.

        `mark` stands only on the message that is in doubt. Returns the id of the message with the
        buttons, else of the first. Raises the ChannelError of `send`, which is `unsent` only where
        nothing arrived.
        """
        cut = partial(make_pieces, outgoing, self._form, over=over)
        pieces = await anyio.to_thread.run_sync(cut) if is_long(outgoing) else cut()
        known = self._known.setdefault(outgoing.key, _Sent())
        if len(self._known) > MAX_REMEMBERED:
            del self._known[next(iter(self._known))]
        if known.ids and not known.doubt:
            mark = ""
        doubtful = max(len(known.ids), int(over))
        known.doubt = True
        try:
            for i in range(len(known.ids), len(pieces)):
                piece = pieces[i]
                if i == doubtful:
                    piece = replace(piece, words=prepend_note(piece.words, mark))
                known.ids.append(await send(i, piece))
        except ChannelError as fault:
            known.doubt = not fault.unsent
            fault.unsent = fault.unsent and not known.ids
            raise
        self._known.pop(outgoing.key, None)
        asks = max((i for i, piece in enumerate(pieces) if piece.file is None), default=0)
        return next(iter(known.ids[asks if outgoing.ask is not None else 0 :]), "")
