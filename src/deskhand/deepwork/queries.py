"""Typed queries on long work, and on what goes on after a restart."""

from __future__ import annotations

import msgspec

from ..store.base import Store
from ..types.commit import Change
from ..types.identity import Address, Principal
from ..types.labels import Label


class OwedContinuation(msgspec.Struct, frozen=True, kw_only=True):
    """What a session is owed after a restart: `text` is handed in there for `principal`, under this
    label; '' only says that Deskhand is back. `key` is the call that asked for the restart, `run`
    the process that it asked, `at` is in seconds since the epoch."""

    key: str
    session: str
    principal: Principal
    address: Address
    text: str
    label: Label
    run: str
    at: float


_encode = msgspec.json.encode
_decode_principal = msgspec.json.Decoder(Principal).decode
_decode_address = msgspec.json.Decoder(Address).decode
_decode_label = msgspec.json.Decoder(Label).decode


# After a restart


async def owed_continuations(store: Store) -> list[OwedContinuation]:
    """All that is owed, the oldest first."""
    return [
        OwedContinuation(
            key=key,
            session=session,
            principal=_decode_principal(principal),
            address=_decode_address(address),
            text=text,
            label=_decode_label(label),
            run=run,
            at=at,
        )
        for key, session, principal, address, text, label, run, at in await store.query(
            "restart_owed", ()
        )
    ]


def is_restart_owed_by(store: Store, run: str) -> bool:
    """Whether a call has asked the process `run` to restart. Does not wait."""
    return any(row[6] == run for row in store.query_sync("restart_owed"))


def owe_continuation(owed: OwedContinuation) -> Change:
    """Store what a session is owed, once for its key."""
    row = (
        owed.key,
        owed.session,
        _encode(owed.principal),
        _encode(owed.address),
        owed.text,
        _encode(owed.label),
        owed.run,
        owed.at,
    )
    return Change("restart_add", row)


def mark_continued(key: str) -> Change:
    """What was owed under this key has been handed in."""
    return Change("restart_done", (key,))


# Long work


async def is_long_work(store: Store, session: str) -> bool:
    """Whether this session is in deep work or has a goal."""
    return any(deep or goal for deep, goal in await store.query("long_work_of", (session,)))


async def long_work_sessions(store: Store) -> list[str]:
    """The sessions that are in deep work or have a goal."""
    return [session for (session,) in await store.query("long_work_all", ())]
