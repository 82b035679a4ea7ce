"""A channel in memory: what a test hands in, and what was sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from hashlib import sha256
from pathlib import Path

import anyio

from ..channels.base import (
    Channel,
    ChannelContext,
    Editing,
    PastMessage,
    Reading,
    Room,
    Speaking,
)
from ..channels.settings import ChannelConfig
from ..config.clock import SystemClock
from ..types.commit import Outgoing
from ..types.errors import BlobMissing, ChannelError, SendRefused
from ..types.identity import Address, Inbound, Said
from ..types.messages import Message, Text
from .crash import Fuse


class MemoryContext:
    """What a channel under test is opened with. Every secret is `token`, where `tokens` names no
    other; blobs and the cursor are in memory."""

    def __init__(
        self,
        name: str,
        config: ChannelConfig,
        state: Path,
        token: str = "",
        tokens: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.config = config
        self.state = state
        self.blobs: dict[str, bytes] = {}
        self.cursor = ""
        self._token = token
        self._tokens = tokens or {}

    def secret(self, variable: str) -> str:
        return self._tokens.get(variable, self._token)

    def load_cursor(self) -> str:
        return self.cursor

    def save_cursor(self, cursor: str) -> None:
        self.cursor = cursor

    async def put_blob(self, data: bytes) -> str:
        name = f"sha256:{sha256(data).hexdigest()}"
        self.blobs[name] = data
        return name

    async def get_blob(self, name: str) -> bytes:
        if name not in self.blobs:
            raise BlobMissing(f"there is no blob {name!r}")
        return self.blobs[name]

    def now(self) -> float:
        return SystemClock().now()


class MemoryChannel:
    """Delivers what is in `waiting` until it is confirmed, as a platform does. `confirmed` are the
    ids that were."""

    def __init__(
        self, name: str = "memory", *, fuse: Fuse | None = None, idempotent: bool = False
    ) -> None:
        self.name = name
        self.idempotent = idempotent
        self.waiting: list[Inbound] = []
        self.confirmed: list[str] = []
        self.sent: list[tuple[Outgoing, str]] = []
        self._fuse = fuse or Fuse()

    def write(
        self, text: str, chat: str = "1", external_id: str = "", sender: str = "ann"
    ) -> Inbound:
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


class MemorySpeaker(MemoryChannel):
    """One that takes voice messages."""

    takes_voice = True


class MemoryReader(MemoryChannel):
    """One that can be read: `rooms`, and the messages of each by its chat, or by its chat and
    thread. Threads are known by `Address.thread`; what begins one has its id. `asked` are the
    addresses that were read. With `away` it cannot be reached, with `hangs` it never answers."""

    def __init__(self, name: str = "memory") -> None:
        super().__init__(name)
        self.rooms: list[Room] = []
        self.history: dict[tuple[str, str], list[PastMessage]] = {}
        self.asked: list[Address] = []
        self.away = False
        self.hangs = False

    async def list_rooms(self) -> tuple[Room, ...]:
        self._reach()
        return tuple(self.rooms)

    async def read_history(self, address: Address, count: int) -> tuple[PastMessage, ...]:
        self.asked.append(address)
        self._reach()
        if self.hangs:
            await anyio.sleep_forever()
        found = self.history.get((address.chat, address.thread))
        if found is None:
            raise SendRefused("there is no such room")
        return tuple(found[-count:])

    def find_thread(self, inbound: Inbound) -> Address | None:
        address = inbound.address
        return address if address.thread not in ("", inbound.external_id) else None

    def _reach(self) -> None:
        if self.away:
            raise ChannelError("nobody is there", unsent=True)


class MemoryEditor(MemoryChannel):
    """One whose messages can be changed. `posts` are they as they read now, by their names; with
    `away` it cannot be reached. There is no chat `nowhere`. Each change is a boundary of the
    fuse."""

    def __init__(self, name: str = "memory", *, fuse: Fuse | None = None) -> None:
        super().__init__(name, fuse=fuse)
        self.posts: dict[str, str] = {}
        self.edits: list[tuple[str, str]] = []
        self.away = False
        self.retry_after_s: float | None = None

    async def receive(self) -> AsyncIterator[Inbound]:
        self._reach()
        async for inbound in super().receive():
            yield inbound

    async def send(self, outgoing: Outgoing, mark: str) -> str:
        self._reach()
        if outgoing.address.chat == "nowhere":
            raise SendRefused("there is no such chat")
        self._fuse.tick("before send")
        self.sent.append((outgoing, mark))
        name = str(len(self.sent))
        self.posts[name] = _shown(outgoing, mark)
        self._fuse.tick("after send")
        return name

    def edit_interval_s(self, address: Address) -> float:
        return 0.01

    async def edit(self, platform_id: str, outgoing: Outgoing, mark: str) -> str:
        self._reach()
        self._fuse.tick("before edit")
        self.posts[platform_id] = _shown(outgoing, "")
        self.edits.append((platform_id, self.posts[platform_id]))
        self._fuse.tick("after edit")
        return platform_id

    def _reach(self) -> None:
        if self.retry_after_s is not None:
            raise ChannelError("too much", self.retry_after_s, unsent=True)
        if self.away:
            raise ChannelError("nobody is there", unsent=True)


def _shown(outgoing: Outgoing, mark: str) -> str:
    text = "".join(part.text for part in outgoing.parts if isinstance(part, Text))
    return f"({mark}) {text}" if mark else text


_: type[Channel] = MemoryChannel
_editing: type[Editing] = MemoryEditor
_context: type[ChannelContext] = MemoryContext
_speaking: type[Speaking] = MemorySpeaker
_reading: type[Reading] = MemoryReader
