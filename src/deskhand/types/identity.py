"""Who speaks, from where, and what a channel hands in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from .client import ClientRequest
from .labels import Label
from .messages import Message, ResultPart, ToolResult
from .options import SessionOptions


class Address(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Where a conversation happens. `channel` is a name from the configuration, `account` the bot
    there, `chat` and `thread` are the platform's own ids, `group` says that more than one person
    reads there."""

    channel: str
    account: str = ""
    chat: str = ""
    thread: str = ""
    group: bool = False


class Principal(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Who acts. The Door resolves it; a job, child or result acts `on_behalf_of` a person, with no
    more rights."""

    id: str
    roles: tuple[str, ...] = ()
    kind: Literal["person", "clock", "agent", "system"] = "person"
    on_behalf_of: str = ""


SYSTEM = Principal("system", ("owner",), "system")


EVERYBODY = "*"


OWN_SURFACES = frozenset({"terminal", "web", "api", "door", "job", "subagent"})
"""Surfaces of our own: they know users, and no identities of a platform."""


class Participant(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Somebody who takes part in a conversation. `person` is who they are now; EVERYBODY: a group
    reads it. `owner`: they have the role of an owner."""

    person: str
    owner: bool = False


Participants = Mapping[str, Participant]
"""Those who take part in a conversation, by how they are known where they write: an identity of a
platform is one participant, whoever it is linked to."""


def with_participant(
    before: Participants, principal: Principal, address: Address, sender: str
) -> Participants:
    """These, and who now says something at this address. An identity that is linked to another user
    than before is that user from now on, and no further participant."""
    if address.group:
        return {**before, EVERYBODY: Participant(EVERYBODY)}
    return {
        **before,
        participant_key(principal, address, sender): Participant(
            responsible_person(principal), "owner" in principal.roles
        ),
    }


def find_predecessor(
    before: Participants, principal: Principal, address: Address, sender: str
) -> str:
    """The person who wrote as this identity until now, where it is somebody else's, and who takes
    part in no other way; '' for nobody."""
    if address.group or not before:
        return ""
    person = principal.on_behalf_of or principal.id
    if len(before) == 1 and next(iter(before.values())).person == person:
        return ""  # as nearly always
    mine = participant_key(principal, address, sender)
    known = before.get(mine)
    if known is None or known.person == person:
        return ""
    elsewhere = any(each.person == known.person for name, each in before.items() if name != mine)
    return "" if elsewhere else known.person


def participant_key(principal: Principal, address: Address, sender: str) -> str:
    """How somebody is known where they write: by the identity on its platform, on surfaces of our
    own by their name."""
    if principal.kind != "person" or not sender or address.channel in OWN_SURFACES:
        return principal.on_behalf_of or principal.id
    return f"{address.channel}:{address.account}:{sender}"


def only_person(participants: Participants) -> str:
    """The id of the one person who takes part, EVERYBODY where it is a group or several have, ''
    before anybody did."""
    people = {each.person for each in participants.values()}
    return people.pop() if len(people) == 1 else EVERYBODY if people else ""


def is_read_by_others(participants: Participants) -> bool:
    """Whether others than owners read the conversation."""
    return not all(each.owner for each in participants.values())


def list_reader_names(principal: Principal) -> tuple[str, ...]:
    """The names under which the readers of a label mean this principal."""
    return (principal.id, *(f"role:{role}" for role in principal.roles))


def responsible_person(principal: Principal) -> str:
    """The person whose doing it is."""
    return principal.on_behalf_of or principal.id


class Answer(msgspec.Struct, frozen=True, tag="answer", gc=False):
    """What a person chose for an open approval or question."""

    ask_id: str
    choice: str


class Command(msgspec.Struct, frozen=True, tag="command", omit_defaults=True, gc=False):
    """`/name args` or `!name args`, for the agent's command table and never for the model. `to` is
    where a handoff leads; the door finds that out. `turn` is set where a button was pressed: the
    inbox id of the message that opened the turn that it is about."""

    name: str
    args: str = ""
    prefix: Literal["/", "!"] = "/"
    to: Address | None = None
    turn: int = 0


class Said(msgspec.Struct, frozen=True, tag="said", omit_defaults=True):
    """A message for the agent. `earlier` is what a program says was said before it, `request` what
    it wants of the turn."""

    message: Message
    earlier: tuple[Message, ...] = ()
    request: ClientRequest | None = None


class Result(msgspec.Struct, frozen=True, tag="result", gc=False):
    """What a call that was left open has come to: a child's answer, a finished background
    command."""

    call_id: str
    parts: tuple[ResultPart, ...]


class ToolResults(msgspec.Struct, frozen=True, tag="tool_results", omit_defaults=True):
    """What a program's own tools gave for calls that were handed over to it, all at once, and what
    is said after them. The `call_id` of each is the one under which it was handed over."""

    results: tuple[ToolResult, ...]
    message: Message | None = None
    request: ClientRequest | None = None


class Edit(msgspec.Struct, frozen=True, tag="edit", gc=False):
    """A person rewrote their message `of` (the platform's id)."""

    of: str
    message: Message


class Deletion(msgspec.Struct, frozen=True, tag="deletion", omit_defaults=True, gc=False):
    """A person took back their message `of` (the platform's id). Its sender may be '', as not every
    platform says whose it was. `said` is what it said; the door finds both out."""

    of: str
    said: str = ""


class Reaction(msgspec.Struct, frozen=True, tag="reaction", gc=False):
    of: str
    emoji: str
    added: bool


class Rewind(msgspec.Struct, frozen=True, tag="rewind", omit_defaults=True, gc=False):
    """The conversation is to go back to how it was after event `to_n`, where no turn was open; with
    `message`, that is received next. What runs is interrupted."""

    to_n: int
    message: Message | None = None


class Configure(msgspec.Struct, frozen=True, tag="configure", gc=False):
    """How the conversation is to be held from here on."""

    options: SessionOptions


Body = (
    Said | Answer | Command | Result | ToolResults | Edit | Deletion | Reaction | Rewind | Configure
)
When = Literal["steer", "queue", "interrupt"]


class Inbound(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One event as a channel received it.

    `external_id` is the platform's name of it and dedupes redelivery per (channel, account). `at`
    is when it was said, seconds since the epoch. `session` is set where the surface already knows
    it. `by_program`: a bot wrote it, and no person. `language` is that of the sender's chat
    program, as `de-AT`, where the platform says it.
    """

    external_id: str
    address: Address
    sender: str
    at: float
    body: Body
    session: str = ""
    reply_to: str = ""
    when: When = "steer"
    by_program: bool = False
    language: str = ""


class Waiting(msgspec.Struct, frozen=True, gc=False):
    """An accepted inbound that no turn has taken in yet."""

    inbox_id: int
    principal: Principal
    inbound: Inbound


class Receipt(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What a surface learns when it hands something in. `accepted` and `duplicate` are durable: the
    platform may be told. `after` is the last event of the session before this one: follow from
    there."""

    status: Literal["accepted", "duplicate", "refused"]
    session: str = ""
    inbox_id: int = 0
    after: int = 0
    reason: str = ""


CLIENT_NAMED_CHANNELS = frozenset({"web", "api"})
"""Surfaces where the person names the conversation; their own begin with their name. Elsewhere the
platform says who reads in a chat."""


def is_own_session(principal: Principal, session: str) -> bool:
    """Whether it is theirs to begin: one on the page or in the API, under their name."""
    channel, _, rest = session.partition("/")[2].partition(":")
    return channel in CLIENT_NAMED_CHANNELS and rest.startswith(f"{principal.id}:")


def session_key(agent: str, address: Address) -> str:
    """The session in which `agent` talks at `address`: stable and readable, but opaque to everyone
    else."""
    place = ":".join(
        part.replace(":", "_") for part in (address.channel, address.account, address.chat) if part
    )
    return f"{agent}/{place}" + (f":{address.thread}" if address.thread else "")


def principal_label(principal: Principal) -> Label:
    """Under which label the words of this principal enter."""
    if principal.kind != "person":
        below = principal.on_behalf_of and "owner" not in principal.roles
        return Label(
            "tool_local", source=principal.id, by=(responsible_person(principal),) if below else ()
        )
    if "owner" in principal.roles:
        return Label("owner", source=principal.id)
    return Label("member", source=principal.id, by=(responsible_person(principal),))
