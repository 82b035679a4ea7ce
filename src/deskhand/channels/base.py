"""What a channel is: a place where people talk. It translates, and knows nothing of agents, stores
or models."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from ..types.commit import Outgoing
from ..types.identity import Address, Inbound
from .settings import ChannelConfig


class ChannelContext(Protocol):
    """What a channel is given when it is opened.

    An entry point of `deskhand.channels` names a function that takes one and returns a Channel:

        def open_matrix(context: ChannelContext) -> Channel: ...

    The function raises ConfigError, with the next step, if the channel cannot work as it is
    configured. It neither connects nor writes files: that begins with `receive` or `send`.
    """

    @property
    def name(self) -> str:
        """The channel's name in the configuration."""
        ...

    @property
    def config(self) -> ChannelConfig:
        """What is set for this channel."""
        ...

    @property
    def state(self) -> Path:
        """The folder for the channel's own files. It may not exist yet."""
        ...

    def secret(self, variable: str) -> str:
        """The value of this environment variable, or ''."""
        ...

    def load_cursor(self) -> str:
        """What was saved last, also before a restart; '' at first."""
        ...

    def save_cursor(self, cursor: str) -> None:
        """Remember up to where the platform has told of what happened. Only what is confirmed may
        be passed, so that it is never ahead of the inbox. Raises OSError."""
        ...

    async def put_blob(self, data: bytes) -> str:
        """Store these bytes and return their name. Raises StoreFull."""
        ...

    async def get_blob(self, name: str) -> bytes:
        """The bytes under this name. Raises BlobMissing."""
        ...

    def now(self) -> float:
        """Seconds since the epoch."""
        ...


class Channel(Protocol):
    """One account on one platform. Every implementation passes `deskhand.testing.channel_suite`."""

    @property
    def name(self) -> str:
        """The channel's name in the configuration, as in `Address.channel`."""
        ...

    @property
    def idempotent(self) -> bool:
        """The platform itself drops a second message with the same key."""
        ...

    def receive(self) -> AsyncIterator[Inbound]:
        """What people write, for as long as it is iterated; an async generator, which is closed at
        the end. When the next one is asked for, the one before is safe: only then may it be
        confirmed to the platform. Raises ChannelError when the platform is away; iterating anew
        then delivers again what was not confirmed."""
        ...

    async def send(self, outgoing: Outgoing, mark: str) -> str:
        """Say it, and return the platform's id of the message. `mark` is a note for the reader
        (`may be a duplicate`), or ''. Raises SendRefused when it can never work, ChannelError when
        it may work later."""
        ...


@runtime_checkable
class Instructing(Protocol):
    """A channel that has something to tell the model about a place: who can be named there, how
    text must look."""

    def instructions(self, address: Address) -> str:
        """It stands at the end of the prompt; it should change seldom, as the model then reads
        everything anew."""
        ...


@runtime_checkable
class Editing(Protocol):
    """A channel whose messages can be changed after they were sent."""

    def edit_interval_s(self, address: Address) -> float:
        """How many seconds must lie between two changes at this address; 0 where an answer is not
        to be shown while it is written."""
        ...

    async def edit(self, platform_id: str, outgoing: Outgoing, mark: str) -> str:
        """Make the message say this instead, all of it: what does not fit is sent behind it. Doing
        it again changes nothing, but for what was sent behind: `mark` is for that. Where the
        message is gone, it is sent anew. Returns the id as `send` does, and raises the same."""
        ...


@runtime_checkable
class Removing(Protocol):
    """A channel whose messages can be taken away after they were sent."""

    async def remove(self, platform_id: str, address: Address) -> None:
        """Take the message away; where it is gone already, nothing happens. Raises SendRefused when
        that can never work, ChannelError when it may work later."""
        ...


@runtime_checkable
class Acknowledging(Protocol):
    """A channel that can show somebody that their message was read, while they wait for what comes
    of it."""

    async def acknowledge(self, inbound: Inbound) -> None:
        """Mark the message, or say it in one short line. Raises ChannelError."""
        ...


@runtime_checkable
class Speaking(Protocol):
    """A channel that takes voice messages: `send` takes one `Audio`, OGG with Opus or WAV, and
    people can play it where they read."""

    @property
    def takes_voice(self) -> bool: ...


@runtime_checkable
class Reacting(Protocol):
    """A channel on which emojis can be set on messages."""

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        """Set one of `types.reactions.EMOJIS` on a message of somebody; doing it again changes
        nothing. Raises SendRefused when it can never work, ChannelError when it may work later."""
        ...


@runtime_checkable
class Typing(Protocol):
    """A channel that can show that an answer is on its way."""

    async def show_typing(self, address: Address) -> None:
        """Show it for the next five seconds, or until something is said. Raises ChannelError."""
        ...


class Room(msgspec.Struct, frozen=True):
    """A place of a platform where people write. `kind` says in a word or two what it is. `joined`:
    the bot is in it, as far as the platform tells. `public`: everybody who uses the same workspace
    may read there."""

    id: str
    name: str
    kind: str
    joined: bool = True
    public: bool = False


class PastMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message that was written before. `id` is what `Inbound.external_id` is for a new one, `at`
    is in seconds since the epoch. `sender` is the platform's id of who wrote it, `name` how that is
    shown there. `thread` is the thread that it stands in or begins, '' for none. `ours`: the bot
    itself wrote it."""

    id: str
    sender: str
    name: str
    at: float
    text: str
    thread: str = ""
    ours: bool = False


@runtime_checkable
class Reading(Protocol):
    """A channel that can read what was written before. All of it is content from outside."""

    async def list_rooms(self) -> tuple[Room, ...]:
        """The rooms that the bot is in, and those that it could be invited to and may know of.
        Chats with one person need not be among them. Raises SendRefused, with what to do, where the
        platform does not allow it; ChannelError when it may work later."""
        ...

    async def read_history(self, address: Address, count: int) -> tuple[PastMessage, ...]:
        """The last `count` messages of a room, the newest last; with a thread in the address, those
        of this thread, which has to be in that room. Raises SendRefused where there is no such room
        or thread, or the bot may not read it; ChannelError when it may work later."""
        ...

    def find_thread(self, inbound: Inbound) -> Address | None:
        """The thread in which this was said, where it did not begin with it; None elsewhere. Asks
        nobody."""
        ...


class Introduction(msgspec.Struct, frozen=True):
    """Under which name people find a bot, and an address that opens a chat with it."""

    name: str
    link: str


@runtime_checkable
class Introducing(Protocol):
    """A channel that can say where people find it."""

    async def introduce(self) -> Introduction:
        """Asked of the platform, so that it shows that the token holds. Raises ChannelError."""
        ...


@runtime_checkable
class Closing(Protocol):
    """A channel that holds connections."""

    async def close(self) -> None:
        """Let go of them. It is not used afterwards."""
        ...


class ChannelHealth(msgspec.Struct, frozen=True, omit_defaults=True):
    """Facts about a channel, times in seconds since the epoch, 0 for never. `error` is the last
    one, as a sentence."""

    ok_at: float = 0.0
    error_at: float = 0.0
    error: str = ""


@runtime_checkable
class Healthy(Protocol):
    """A channel that remembers how it fared."""

    def health(self) -> ChannelHealth: ...


@runtime_checkable
class Allowing(Protocol):
    """A channel whose configuration names people who may write without being users: they are
    guests."""

    @property
    def allow_from(self) -> tuple[str, ...]:
        """The platform's own ids of them. With none, only users are let in."""
        ...
