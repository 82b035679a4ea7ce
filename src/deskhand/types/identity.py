"""Who speaks, from where, and what a channel hands in."""

from __future__ import annotations

from typing import Literal

import msgspec

from .messages import Message, ResultPart
from .options import SessionOptions


class Address(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Where a conversation happens. `channel` is a name from the configuration, `account` the bot there, `chat` and
    `thread` are the platform's own ids, `group` says that more than one person reads there."""

    channel: str
    account: str = ""
    chat: str = ""
    thread: str = ""
    group: bool = False


class Principal(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Who acts. The Door resolves it; a job, child or result acts `on_behalf_of` a person, with no more rights."""

    id: str
    roles: tuple[str, ...] = ()
    kind: Literal["person", "clock", "agent", "system"] = "person"
    on_behalf_of: str = ""


SYSTEM = Principal("system", ("owner",), "system")


EVERYBODY = "*"


def company(before: str, address: Address, person: str) -> str:
    """Who takes part in a conversation ('' before anybody did) once this person has said something at this address:
    their id while they are alone with the agent, else EVERYBODY."""
    return person if before in ("", person) and not address.group else EVERYBODY


def readers_of(principal: Principal) -> tuple[str, ...]:
    """The names under which the readers of a label mean this principal."""
    return (principal.id, *(f"role:{role}" for role in principal.roles))


def acts_for(principal: Principal) -> str:
    """The person whose doing it is."""
    return principal.on_behalf_of or principal.id


class Answer(msgspec.Struct, frozen=True, tag="answer", gc=False):
    """What a person chose for an open approval or question."""

    ask_id: str
    choice: str


class Command(msgspec.Struct, frozen=True, tag="command", omit_defaults=True, gc=False):
    """`/name args` or `!name args`, for the agent's command table and never for the model."""

    name: str
    args: str = ""
    prefix: Literal["/", "!"] = "/"


class Said(msgspec.Struct, frozen=True, tag="said", gc=False):
    """A message for the agent."""

    message: Message


class Result(msgspec.Struct, frozen=True, tag="result", gc=False):
    """What a call that was left open has come to: a child's answer, a finished background command."""

    call_id: str
    parts: tuple[ResultPart, ...]


class Edit(msgspec.Struct, frozen=True, tag="edit", gc=False):
    """A person rewrote their message `of` (the platform's id)."""

    of: str
    message: Message


class Reaction(msgspec.Struct, frozen=True, tag="reaction", gc=False):
    of: str
    emoji: str
    added: bool


class Rewind(msgspec.Struct, frozen=True, tag="rewind", omit_defaults=True, gc=False):
    """The conversation is to go back to how it was after event `to_n`, where no turn was open; with `message`, that is
    received next. What runs is interrupted."""

    to_n: int
    message: Message | None = None


class Configure(msgspec.Struct, frozen=True, tag="configure", gc=False):
    """How the conversation is to be held from here on."""

    options: SessionOptions


Body = Said | Answer | Command | Result | Edit | Reaction | Rewind | Configure
When = Literal["steer", "queue", "interrupt"]


class Inbound(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One event as a channel received it.

    `external_id` is the platform's name of it and dedupes redelivery per (channel, account). `at` is when it was
    said, seconds since the epoch. `session` is set where the surface already knows it.
    """

    external_id: str
    address: Address
    sender: str
    at: float
    body: Body
    session: str = ""
    reply_to: str = ""
    when: When = "steer"


class Waiting(msgspec.Struct, frozen=True, gc=False):
    """An accepted inbound that no turn has taken in yet."""

    inbox_id: int
    principal: Principal
    inbound: Inbound


class Receipt(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What a surface learns when it hands something in. `accepted` and `duplicate` are durable: the platform may be
    told. `after` is the last event of the session before this one: follow from there."""

    status: Literal["accepted", "duplicate", "refused"]
    session: str = ""
    inbox_id: int = 0
    after: int = 0
    reason: str = ""


CHOSEN = frozenset({"web", "api"})
"""Surfaces where the person names the conversation; their own begin with their name. Elsewhere the platform says who
reads in a chat."""


def is_own(principal: Principal, session: str) -> bool:
    """Whether it is theirs to begin: one on the page or in the API, under their name."""
    channel, _, rest = session.partition("/")[2].partition(":")
    return channel in CHOSEN and rest.startswith(f"{principal.id}:")


def session_key(agent: str, address: Address) -> str:
    """The session in which `agent` talks at `address`: stable and readable, but opaque to everyone else."""
    place = ":".join(part.replace(":", "_") for part in (address.channel, address.account, address.chat) if part)
    return f"{agent}/{place}" + (f":{address.thread}" if address.thread else "")
