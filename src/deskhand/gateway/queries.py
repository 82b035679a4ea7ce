"""Typed queries on the tables of the gateway: the outbox with its drafts, named sessions, and
rounds of programs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable
from typing import Any

import msgspec

from ..store.base import Store
from ..types.commit import Change, OutboxRow, OutboxState, Outgoing
from ..types.events import MessageReceived
from ..types.identity import Address

_encode = msgspec.json.encode
_decode_outgoing = msgspec.json.Decoder(Outgoing).decode
_decode_received = msgspec.json.Decoder(MessageReceived).decode


class StoredDraft(msgspec.Struct, frozen=True):
    """A draft in the outbox. `platform_id` is '' when nobody knows whether it was posted."""

    id: int
    platform_id: str
    outgoing: Outgoing


class SentAsk(msgspec.Struct, frozen=True):
    """A message in the outbox that asks a question. `platform_id` is '' until it was sent."""

    state: OutboxState
    platform_id: str
    outgoing: Outgoing


class UnsentMessage(msgspec.Struct, frozen=True):
    """A message that its platform did not take, and the `error`. `at` is when it was put into the
    outbox, in seconds since the epoch."""

    id: int
    session: str
    channel: str
    at: float
    error: str


class RoundCount(msgspec.Struct, frozen=True):
    """How many rounds programs began within a time. `first` is the number of the first round, or
    0."""

    count: int
    first: int


class ProgramRounds(msgspec.Struct, frozen=True):
    """How many rounds one program began."""

    program: str
    count: int


# The outbox


async def last_outbox_id(store: Store) -> int:
    """The id of the last row of the outbox, or 0."""
    ((id_,),) = await store.query("outbox_last", ())
    return int(id_)


async def was_refused_before(store: Store, row: OutboxRow) -> bool:
    """Whether the platform did not take what this conversation was owed just before this row."""
    return ("failed",) in await store.query("outbox_before", (row.session, row.id))


def limit_outbox_wait(due_at: float) -> Change:
    """Make everything that is to be sent due at this time at the latest (seconds since the
    epoch)."""
    return Change("outbox_begin", (due_at,))


async def due_beside(
    store: Store, now: float, limit: int, channels: Collection[str], rows: Collection[int]
) -> list[OutboxRow]:
    """What is to be sent now on these channels, the oldest first, but for what is said where these
    rows are said."""
    on = _encode(sorted(channels)).decode()
    others = _encode(sorted(rows)).decode()
    return _read_rows(await store.query("outbox_beside", (now, limit, on, others)))


def defer_message(id_: int) -> Change:
    """Let this message wait for the time at which its reader wants to be told."""
    return Change("outbox_defer", (id_,))


def release_message(id_: int, outgoing: Outgoing) -> Change:
    """Send this message now, as `outgoing` says."""
    return Change("outbox_release", (_encode(outgoing), id_))


async def deferred_messages(store: Store) -> list[OutboxRow]:
    """The messages that wait for such a time, the oldest first."""
    return _read_rows(await store.query("outbox_deferred", ()))


def _read_rows(rows: Iterable[tuple[Any, ...]]) -> list[OutboxRow]:
    return [
        OutboxRow(id_, session, _decode_outgoing(body), state, attempts, at, sent_id, mark)
        for id_, session, body, state, attempts, at, sent_id, mark in rows
    ]


async def unasked_since(store: Store, row: OutboxRow, since: float) -> AsyncIterator[Outgoing]:
    """What is said on the channel of this row before it, and since this time, without that anybody
    waits for it; the latest first."""
    place = (row.outgoing.address.channel, row.id, since)
    for (body,) in await store.query("outbox_said_lately", place):
        outgoing = _decode_outgoing(body)
        if outgoing.unasked is not None:
            yield outgoing


async def messages_of_ask(store: Store, session: str, ask_id: str) -> list[SentAsk]:
    """The messages of this session that ask this question."""
    found = []
    for state, platform_id, body in await store.query("ask_said", (session, ask_id)):
        found.append(SentAsk(state, platform_id, _decode_outgoing(body)))
    return found


# What could not be sent


async def unsent_messages(store: Store) -> list[UnsentMessage]:
    """The messages that could not be sent, the latest first."""
    return [UnsentMessage(*row) for row in await store.query("unsent_list", ())]


def retry_unsent(id_: int) -> Change:
    """Send this message again. It may arrive twice."""
    return Change("unsent_retry", (id_,))


def drop_unsent(id_: int) -> Change:
    """Forget a message that could not be sent."""
    return Change("unsent_drop", (id_,))


# Drafts


async def is_outbox_busy(store: Store, session: str, outgoing: Outgoing) -> bool:
    """Whether something of this session, or for the place of `outgoing`, is still to be sent."""
    ((busy,),) = await store.query("draft_waits", (session, _encode(outgoing)))
    return bool(busy)


async def find_draft(store: Store, session: str, before: int) -> StoredDraft | None:
    """The last draft of this session whose id is less than `before`."""
    for id_, platform_id, body in await store.query("draft_before", (session, before)):
        return StoredDraft(id_, platform_id, _decode_outgoing(body))
    return None


async def orphaned_drafts(store: Store) -> list[StoredDraft]:
    """The drafts that no turn will complete: their session is at rest, and has sent everything."""
    found = []
    for id_, platform_id, body in await store.query("drafts_left", ()):
        found.append(StoredDraft(id_, platform_id, _decode_outgoing(body)))
    return found


def open_draft(session: str, outgoing: Outgoing, at: float) -> Change:
    """Store a draft before it is posted. Changes no row while the session has another draft, or
    something else of it or for this place is to be sent."""
    channel = outgoing.address.channel
    return Change("draft_open", (outgoing.key, session, _encode(outgoing), at, channel))


def mark_draft_posted(id_: int, platform_id: str) -> Change:
    """The draft was posted, and its platform gave it this id."""
    return Change("draft_posted", (platform_id, id_))


def drop_draft(id_: int) -> Change:
    """Delete a draft that was not posted."""
    return Change("draft_drop", (id_,))


def close_draft(id_: int) -> Change:
    """Nothing more will be written over this draft."""
    return Change("draft_close", (id_,))


# Named sessions


def session_name_at(store: Store, place: str) -> str:
    """The name of the session that goes on at this place, or '' for the one without a name."""
    for (name,) in store.query_sync("named_get", (place,)):
        return str(name)
    return ""


def set_session_name(place: str, name: str) -> Change:
    """From now on the session with this name goes on at this place."""
    return Change("named_set", (place, name))


def clear_session_name(place: str) -> Change:
    """From now on the session without a name goes on at this place."""
    return Change("named_drop", (place,))


def hand_session_over(place: str, session: str) -> Change:
    """From now on this session, which is of another place, goes on at this one."""
    return Change("named_set", (place, session))


def take_session_back(session: str) -> Change:
    """From now on this session goes on where it began only."""
    return Change("named_return", (session,))


async def places_beside_own(store: Store, session: str) -> set[str]:
    """The places where this session goes on, besides the one where it began."""
    return {place for (place,) in await store.query("named_elsewhere", (session,))}


async def first_address(store: Store, session: str) -> Address | None:
    """Where the first message of this session was written; None where there is none."""
    for (body,) in await store.query("named_home", (session,)):
        return _decode_received(body).address
    return None


# Rounds of programs


async def count_rounds(store: Store, after: float, until: float) -> RoundCount:
    """How many rounds began after the first and not after the second time (seconds since the
    epoch)."""
    (row,) = await store.query("machine_rounds_since", (after, until))
    return RoundCount(*row)


async def busiest_programs(store: Store, limit: int) -> list[ProgramRounds]:
    """Who began most rounds, and how many."""
    return [ProgramRounds(*row) for row in await store.query("machine_rounds_by", (limit,))]


def add_round(program: str, at: float) -> Change:
    """This program began a round."""
    return Change("machine_round_add", (at, program))


def move_rounds(at: float) -> Change:
    """Count all rounds as of this time."""
    return Change("machine_rounds_are_of", (at,))


def trim_rounds(until: float, after: float) -> Change:
    """Forget the rounds that began not after the first, or after the second time."""
    return Change("machine_round_trim", (until, after))


def clear_rounds() -> Change:
    """Forget all rounds."""
    return Change("machine_round_clear", ())
