"""A channel in memory: what a test hands in, and what was sent."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio

from ..channels.base import Channel
from ..types.commit import Outgoing
from ..types.identity import Address, Inbound, Said
from ..types.messages import Message, Text
from .crash import Fuse


class MemoryChannel:
    """Delivers what is in `waiting` until it is confirmed, as a platform does. `confirmed` are the ids that were."""

    def __init__(self, name: str = "memory", *, fuse: Fuse | None = None, idempotent: bool = False) -> None:
        self.name, self.idempotent = name, idempotent
        self.waiting: list[Inbound] = []
        self.confirmed: list[str] = []
        self.sent: list[tuple[Outgoing, str]] = []
        self._fuse = fuse or Fuse()

    def write(self, text: str, chat: str = "1", external_id: str = "", sender: str = "ann") -> Inbound:
        """Somebody writes this."""
        number = external_id or str(len(self.waiting) + len(self.confirmed) + 1)
        said = Said(Message("user", (Text(text),)))
        inbound = Inbound(number, Address(self.name, chat=chat), sender, 1_700_000_000.0, said)
        self.waiting.append(inbound)
        return inbound

    async def receive(self) -> AsyncIterator[Inbound]:
        while True:
            while self.waiting:
                yield self.waiting[0]
                self._fuse.tick("before confirm")
                self.confirmed.append(self.waiting.pop(0).external_id)
            await anyio.sleep(0.002)

    async def send(self, outgoing: Outgoing, mark: str) -> str:
        self._fuse.tick("before send")
        self.sent.append((outgoing, mark))
        self._fuse.tick("after send")
        return str(len(self.sent))


_: type[Channel] = MemoryChannel
