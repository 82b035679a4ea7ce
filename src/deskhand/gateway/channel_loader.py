"""Opens the channels of the configuration. Only the code of those is imported."""

from __future__ import annotations

from collections.abc import AsyncIterator
from importlib.metadata import entry_points
from urllib.parse import quote

from ..channels.base import Channel, ChannelContext, Closing, Introducing, Introduction
from ..channels.settings import ChannelConfig
from ..config.clock import SystemClock
from ..config.config import Settings
from ..store.blobs import Blobs
from ..types.clock import Clock
from ..types.commit import Outgoing
from ..types.errors import ChannelError, ConfigError, LoginRefused
from ..types.identity import Inbound
from ..types.private_files import write_private_file

ENTRY_POINTS = "deskhand.channels"
RETRY_S = 600.0


class Unopened:
    """Replaces a channel that cannot be opened, and says why in the health. Its messages wait in
    the outbox."""

    idempotent = False

    def __init__(self, name: str, kind: str, why: str) -> None:
        self.name = name
        self.kind = kind
        self.why = why

    async def receive(self) -> AsyncIterator[Inbound]:
        raise LoginRefused(self.why)
        yield  # pragma: no cover -- makes it a generator

    async def send(self, outgoing: Outgoing, mark: str) -> str:
        raise ChannelError(self.why, RETRY_S, unsent=True)


def open_channels(settings: Settings, blobs: Blobs, clock: Clock) -> tuple[Channel, ...]:
    """All channels of the configuration, also those that are switched off: they may be switched on
    later. One that cannot be opened is an `Unopened`."""
    found: list[Channel] = []
    for name, config in settings.config.channels.items():
        try:
            found.append(_open(name, config, settings, blobs, clock))
        except ConfigError as error:
            why = f"the channel {name!r} is not started: {error}"
            found.append(Unopened(name, config.type or name, why))
    return tuple(found)


async def fetch_introduction(
    name: str, config: ChannelConfig, settings: Settings, blobs: Blobs
) -> Introduction:
    """Ask the platform who this bot is. Raises ConfigError, ChannelError, with the next step."""
    channel = _open(name, config, settings, blobs, SystemClock())
    try:
        if not isinstance(channel, Introducing):
            raise ConfigError(f"the channel {name!r} does not know its own name on the platform")
        return await channel.introduce()
    finally:
        if isinstance(channel, Closing):
            await channel.close()


def _open(
    name: str, config: ChannelConfig, settings: Settings, blobs: Blobs, clock: Clock
) -> Channel:
    """Raises ConfigError with the next step."""
    kind = config.type or name
    entries = list(entry_points(group=ENTRY_POINTS, name=kind))
    if not entries:
        known = ", ".join(sorted({entry.name for entry in entry_points(group=ENTRY_POINTS)}))
        raise ConfigError(
            f"there is no kind of channel {kind!r}; set channels.{name}.type to one of: {known}"
        )
    try:
        open_ = entries[0].load()
    except ImportError as error:
        raise ConfigError(
            f"it is not installed ({error.name} is missing): pip install 'deskhand[{kind}]'"
        ) from error

    channel: Channel = open_(LoadedContext(name, config, settings, blobs, clock))
    return channel


class LoadedContext:
    """What a channel gets of this process. See `ChannelContext`."""

    def __init__(
        self, name: str, config: ChannelConfig, settings: Settings, blobs: Blobs, clock: Clock
    ) -> None:
        self.name = name
        self.config = config
        self.state = settings.home.state
        self._cursor = self.state / f"cursor-{quote(name, safe='')}"
        self._environment = settings.environment
        self._blobs = blobs
        self._clock = clock

    def secret(self, variable: str) -> str:
        return self._environment.get(variable, "")

    def load_cursor(self) -> str:
        try:
            return self._cursor.read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    def save_cursor(self, cursor: str) -> None:
        write_private_file(self._cursor, cursor)

    async def put_blob(self, data: bytes) -> str:
        return await self._blobs.put(data)

    async def get_blob(self, name: str) -> bytes:
        return await self._blobs.get(name)

    def now(self) -> float:
        return self._clock.now()


_channel: type[Channel] = Unopened
_context: type[ChannelContext] = LoadedContext
