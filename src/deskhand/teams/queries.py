"""Typed queries on teammates, and on what they write to each other."""

from __future__ import annotations

import msgspec

from ..store.base import Store
from ..types.commit import Change
from ..types.teams import Mail, Teammate, Verdict, parse_mail_row, parse_teammate_row

_encode = msgspec.json.encode


async def open_teammates(store: Store) -> list[Teammate]:
    """Those of all teams that have not shut down, and those that have but hold tasks still."""
    return [parse_teammate_row(row) for row in await store.query("teammate_open", ())]


def add_teammate(teammate: Teammate) -> Change:
    """It belongs to the team; one of that name that has shut down is called back."""
    row = (teammate.team, teammate.name, teammate.role, teammate.id, teammate.at)
    return Change("teammate_add", row)


def set_idle_since(teammate: Teammate, at: float | None) -> Change:
    """It has had nothing to do since then (seconds since the epoch); None: it has. Nothing of the
    commit is written where it has shut down, or was stopped."""
    return Change("teammate_idle", (at, teammate.team, teammate.name), must=True)


def retire(teammate: Teammate) -> Change:
    """It shuts down, as it has had nothing to do. Nothing of the commit is written where something
    is on its way to it."""
    return Change("teammate_retire", (teammate.team, teammate.name), must=True)


def mark_left(teammate: Teammate) -> Change:
    """It holds no tasks any more."""
    return Change("teammate_left", (teammate.team, teammate.name))


def add_mail(mail: Mail) -> Change:
    """Something is written to a member of the team, to be given once."""
    request = _encode(mail.request) if mail.request is not None else None
    what = (mail.kind, mail.text, _encode(mail.label), request, mail.about, mail.at)
    return Change("mail_add", (mail.id, mail.team, mail.sender, mail.recipient, *what))


async def wanted_mail(store: Store) -> list[Mail]:
    """What is still to be given, the oldest first."""
    return [parse_mail_row(row) for row in await store.query("mail_wanted", ())]


def mark_given(mail: Mail) -> Change:
    """It is with whom it is for. Nothing of the commit is written where it was dropped."""
    return Change("mail_given", (mail.id,), must=True)


def drop_mail(mail: Mail) -> Change:
    """Nobody is to read it any more."""
    return Change("mail_drop", (mail.id,))


async def inbox_of(store: Store, team: str, name: str, limit: int) -> list[Mail]:
    """What this member was given last, the latest first."""
    rows = await store.query("mail_inbox", (team, name, limit))
    return [parse_mail_row(row) for row in rows]


async def find_mail(store: Store, team: str, id_: str) -> Mail | None:
    """The mail of this id in that team."""
    rows = await store.query("mail_find", (team, id_))
    return parse_mail_row(rows[0]) if rows else None


async def find_answer(store: Store, mail: Mail) -> Mail | None:
    """The mail that answers this one; None while there is none."""
    rows = await store.query("mail_answering", (mail.team, mail.id))
    return parse_mail_row(rows[0]) if rows else None


def answer_mail(mail: Mail, verdict: Verdict) -> Change:
    """What it asks is answered: once, for nothing of another answer is written."""
    return Change("mail_answer", (verdict, mail.id), must=True)


def forget_mail(before: float) -> Change:
    """Forget what was given before this time (seconds since the epoch)."""
    return Change("mail_forget", (before,))
