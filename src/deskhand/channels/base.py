"""What a channel is: a place where people talk. It translates, and knows nothing of agents, stores or models."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol, runtime_checkable

from ..types.commit import Outgoing
from ..types.identity import Address, Inbound


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
        """What people write, for as long as it is iterated. When the next one is asked for, the one before is safe:
        only then may it be confirmed to the platform. Raises ChannelError when the platform is away; iterating anew
        then delivers again what was not confirmed."""
        ...

    async def send(self, outgoing: Outgoing, mark: str) -> str:
        """Say it, and return the platform's id of the message. `mark` is a note for the reader (`may be a
        duplicate`), or ''. Raises SendRefused when it can never work, ChannelError when it may work later."""
        ...


@runtime_checkable
class Instructing(Protocol):
    """A channel that has something to tell the model about a place: who can be named there, how text must look."""

    def instructions(self, address: Address) -> str:
        """It stands at the end of the prompt; it should change seldom, as the model then reads everything anew."""
        ...


@runtime_checkable
class Allowing(Protocol):
    """A channel whose configuration names people who may write without being users: they are guests."""

    @property
    def allow_from(self) -> tuple[str, ...]:
        """The platform's own ids of them. With none, only users are let in."""
        ...


@runtime_checkable
class Reporting(Protocol):
    """A channel that knows how it is doing, though nobody may have written for days."""

    def health(self) -> float | None:
        """When the platform last answered, in seconds since the epoch; None: not yet."""
        ...
