"""Typed queries on the tables of people: users, tokens, pairings, the audit trail, alerts, shares,
and when they want to be told."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import time
from typing import Any

import msgspec

from ..store.base import Store
from ..store.queries import decode_inbox_body
from ..types.commit import Change, Outgoing
from ..types.identity import Address, Inbound
from ..types.people import SCOPES, AuditEntry, Identity, Pairing, Scope, TokenRow, User
from ..types.shares import Share
from .notification_times import (
    NotificationTimes,
    format_hours,
    format_times,
    parse_hours,
    parse_times,
)

_encode = msgspec.json.encode
_decode_address = msgspec.json.Decoder(Address).decode
_decode_outgoing = msgspec.json.Decoder(Outgoing).decode


# Users


def people_version(store: Store) -> int:
    """A number that grows whenever any process has changed a user."""
    return int(store.query_sync("people_version")[0][0])


def mark_people_changed() -> Change:
    """Let every process read the users again."""
    return Change("people_changed", ())


def read_users(store: Store) -> dict[str, User]:
    """All users with their roles and identities, by name."""
    roles: dict[str, list[str]] = {}
    for user, role in store.query_sync("user_role_all"):
        roles.setdefault(user, []).append(role)

    identities: dict[str, list[Identity]] = {}
    for user, channel, external_id, account in store.query_sync("user_identity_all"):
        identities.setdefault(user, []).append(Identity(channel, external_id, account))

    users = {}
    for name, created_at in store.query_sync("user_all"):
        theirs = tuple(identities.get(name, ()))
        users[name] = User(name, tuple(roles.get(name, ())), theirs, created_at)
    return users


async def roles_of(store: Store, user: str) -> tuple[str, ...] | None:
    """The roles of this user, or None when there is no such user."""
    rows = await store.query("user_roles_of", (user,))
    if not rows:
        return None
    return tuple(role for (role,) in rows if role)


def add_user(name: str, at: float) -> Change:
    """Add a user without roles."""
    return Change("user_add", (name, at))


def remove_user(name: str) -> Change:
    """Delete a user, with their roles, identities and tokens."""
    return Change("user_remove", (name,))


def add_role(user: str, role: str) -> Change:
    """Give a user this role."""
    return Change("user_role_add", (user, role))


def remove_role(user: str, role: str) -> Change:
    """Take this role from a user."""
    return Change("user_role_remove", (user, role))


def add_identity(
    user: str, identity: Identity, at: float, address: Address | None = None
) -> Change:
    """Link an identity to a user. `address` is where they can be written to, if that is known.
    Fails when somebody has the identity already."""
    place = b"" if address is None else _encode(address)
    who = (identity.channel, identity.account, identity.external_id)
    return Change("user_identity_add", (*who, user, place, at))


def remove_identity(identity: Identity) -> Change:
    """Unlink an identity."""
    who = (identity.channel, identity.account, identity.external_id)
    return Change("user_identity_remove", who)


# The audit trail


async def list_audit_notes(store: Store, limit: int) -> list[AuditEntry]:
    """The lines of the audit trail, the latest first."""
    return [AuditEntry(*row) for row in await store.query("people_notes", (limit,))]


def audit_note(at: float, by: str, what: str, subject: str) -> Change:
    """A line of the audit trail: who did what to which subject, and when (seconds since the
    epoch)."""
    return Change("people_note", (at, by, what, subject))


def audit_note_once(at: float, by: str, what: str, subject: str) -> Change:
    """The same line, unless it was written within the last minute."""
    return Change("people_note_once", (at, by, what, subject))


def trim_audit_notes(keep: int) -> Change:
    """Delete all but the last `keep` lines."""
    return Change("people_notes_trim", (keep,))


# Tokens and logins


class StoredToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token, as it is found by the hash of its secret. Times are seconds since the epoch."""

    id: str
    user: str
    kind: str
    scopes: tuple[str, ...]
    expires_at: float | None
    last_used_at: float | None


async def find_token(store: Store, secret_hash: bytes) -> StoredToken | None:
    """The token whose secret has this hash, also when it has expired."""
    for id_, user, kind, scopes, expires_at, used_at in await store.query(
        "token_find", (secret_hash,)
    ):
        return StoredToken(
            id=id_,
            user=user,
            kind=kind,
            scopes=tuple(scopes.split()),
            expires_at=expires_at,
            last_used_at=used_at,
        )
    return None


async def get_token(store: Store, token_id: str) -> TokenRow | None:
    """The token of this id."""
    for row in await store.query("token_get", (token_id,)):
        return _parse_token(row)
    return None


async def list_tokens(store: Store, user: str) -> list[TokenRow]:
    """The tokens of this user, or of everybody for '', the oldest first."""
    return [_parse_token(row) for row in await store.query("token_list", (user,))]


def add_token(token: TokenRow, secret_hash: bytes) -> Change:
    """Store a token under the hash of its secret."""
    row = (
        token.id,
        secret_hash,
        token.user,
        token.name,
        token.kind,
        " ".join(token.scopes),
        token.created_at,
        token.expires_at,
    )
    return Change("token_add", row)


def mark_token_used(token_id: str, at: float) -> Change:
    """Note when a token was used last."""
    return Change("token_used", (at, token_id))


def drop_token(token_id: str) -> Change:
    """Delete a token."""
    return Change("token_drop", (token_id,))


def expire_tokens(now: float) -> Change:
    """Delete tokens that have expired."""
    return Change("token_expire", (now,))


def add_login(link_hash: bytes, user: str, expires_at: float) -> Change:
    """Store a one-time link for this user."""
    return Change("login_add", (link_hash, user, expires_at))


def expire_logins(now: float) -> Change:
    """Delete one-time links that have expired."""
    return Change("login_expire", (now,))


def redeem_login(
    link_hash: bytes,
    *,
    token_id: str,
    secret_hash: bytes,
    scopes: Sequence[Scope],
    now: float,
    expires_at: float,
) -> Change:
    """Add a browser's token for the user of this link. Changes no row when the link does not
    hold."""
    row = (link_hash, token_id, secret_hash, " ".join(scopes), now, expires_at)
    return Change("login_redeem", row)


def drop_login(link_hash: bytes) -> Change:
    """Delete a one-time link."""
    return Change("login_drop", (link_hash,))


def _parse_token(row: tuple[Any, ...]) -> TokenRow:
    token_id, user, name, kind, stored_scopes, created_at, expires_at, used_at = row
    held = stored_scopes.split()
    scopes = tuple(scope for scope in SCOPES if scope in held)
    return TokenRow(token_id, user, name, kind, scopes, created_at, expires_at, used_at)


# Pairings


async def open_pairings(store: Store, now: float) -> list[Pairing]:
    """Pairings whose code still holds, the oldest first."""
    return [Pairing(*row) for row in await store.query("pairing_open", (now,))]


async def pairing_address(store: Store, code: str) -> Address:
    """Where the person of this pairing wrote."""
    ((body,),) = await store.query("pairing_address", (code,))
    return _decode_address(body)


def add_pairing(
    code: str, address: Address, sender: str, *, now: float, expires_at: float, most: int
) -> Change:
    """Store a pairing. Changes no row when `most` already wait on this channel, or when the sender
    has a code that holds."""
    who = (address.channel, address.account, sender, _encode(address))
    return Change("pairing_add", (code, *who, now, expires_at, most))


def expire_pairings(before: float) -> Change:
    """Delete pairings that expired before this time."""
    return Change("pairing_expire", (before,))


def settle_pairing(code: str, state: str) -> Change:
    """Close a pairing as `approved` or `refused`."""
    return Change("pairing_settle", (state, code))


async def count_bad_codes(store: Store, since: float) -> int:
    """How many bad codes were tried since then."""
    ((count,),) = await store.query("pairing_guesses", (since,))
    return int(count)


def add_bad_code(at: float) -> Change:
    """Count a bad code."""
    return Change("pairing_guess_add", (at,))


def forget_bad_codes() -> Change:
    """Begin to count bad codes from zero."""
    return Change("pairing_guess_clear", ())


def codes_locked_until(store: Store) -> float:
    """Until when no code is accepted (seconds since the epoch), or a time in the past."""
    return float(store.query_sync("pairing_locked_until")[0][0])


def lock_codes(until: float) -> Change:
    """Accept no code until this time."""
    return Change("pairing_lock", (until,))


# Alerts and messages to people


class StoredAlert(msgspec.Struct, frozen=True, kw_only=True):
    """An alert with how many of its messages were sent, and how many are still to be sent."""

    id: int
    at: float
    text: str
    seen_at: float | None
    sent: int
    owed: int


class KnownIdentity(msgspec.Struct, frozen=True):
    """An identity of a person, with the address where they were let in, if that is known."""

    identity: Identity
    address: Address | None


class ActiveSession(msgspec.Struct, frozen=True):
    """A session, and in which minute (seconds since the epoch) something was last said there."""

    key: str
    last_at: float


class WrittenMessage(msgspec.Struct, frozen=True):
    """A message of a person, and when it was taken in (seconds since the epoch)."""

    at: float
    inbound: Inbound


async def latest_alerts(store: Store, limit: int) -> list[StoredAlert]:
    """The last alerts, the latest first."""
    return [
        StoredAlert(id=id_, at=at, text=text, seen_at=seen_at, sent=sent, owed=owed)
        for id_, at, text, seen_at, sent, owed in await store.query("alert_latest", (limit,))
    ]


def add_alert(key: str, at: float, text: str, said_as: str) -> Change:
    """Store an alert, once for each key. `said_as` is the key of a message that says the same."""
    return Change("alert_add", (key, at, text, said_as))


def trim_alerts() -> Change:
    """Delete all but the latest thousand alerts."""
    return Change("alert_trim", ())


def mark_alerts_seen(at: float) -> Change:
    """Note that an owner has seen all alerts."""
    return Change("alert_seen", (at,))


async def owner_names(store: Store) -> list[str]:
    """The names of all users with the role `owner`."""
    return [owner for (owner,) in await store.query("alert_owners", ())]


async def identities_of(store: Store, user: str) -> list[KnownIdentity]:
    """The identities of this user, the latest first."""
    return [
        KnownIdentity(
            Identity(channel, external_id, account), _decode_address(body) if body else None
        )
        for channel, account, external_id, body in await store.query("alert_identities", (user,))
    ]


async def recent_messages(store: Store, channels: Collection[str]) -> Iterator[Inbound]:
    """The last messages on these channels that are still in the inbox, the latest first. Erased
    ones are left out."""
    rows = await store.query("alert_recent", (_json_list(channels),))
    return (decode_inbox_body(body).inbound for (body,) in rows if body)


async def recent_sessions(store: Store, channels: Collection[str]) -> list[ActiveSession]:
    """The last sessions on these channels, the latest first."""
    rows = await store.query("alert_sessions", (_json_list(channels),))
    return [ActiveSession(session, last_at) for session, last_at in rows]


async def messages_written_in(store: Store, session: str) -> Iterator[WrittenMessage]:
    """The last messages of people in this session, the latest first. Erased ones are left out."""
    rows = await store.query("alert_written", (session,))
    return (WrittenMessage(at, decode_inbox_body(body).inbound) for at, body in rows if body)


async def addresses_of_message(store: Store, key: str) -> list[Address]:
    """Where the message with this key goes; empty when there is none."""
    rows = await store.query("alert_said", (key,))
    return [_decode_outgoing(body).address for (body,) in rows]


def send_once(outgoing: Outgoing, at: float) -> Change:
    """Put a message into the outbox. Does nothing when one with its key was there already."""
    row = (outgoing.key, "", _encode(outgoing), at, outgoing.address.channel)
    return Change("alert_send", row)


def _json_list(values: Collection[str]) -> str:
    """A list as the statements with json_each() take it."""
    return _encode(sorted(values)).decode()


# What people want to be told when


async def notification_times_of(store: Store, person: str) -> NotificationTimes:
    """What this person wants."""
    return _read_notification_times(await store.query("notification_get", (person,)))


def notification_times_now(store: Store, person: str) -> NotificationTimes:
    """The same, read at once."""
    return _read_notification_times(store.query_sync("notification_get", (person,)))


def _read_notification_times(rows: Iterable[tuple[Any, ...]]) -> NotificationTimes:
    for quiet, digest in rows:
        return NotificationTimes(parse_hours(quiet), parse_times(digest))
    return NotificationTimes()


def set_quiet_hours(person: str, hours: tuple[time, time] | None) -> Change:
    """From now on these are the quiet hours of this person."""
    return Change("notification_quiet", (person, format_hours(hours) if hours is not None else ""))


def set_digest_times(person: str, times: Sequence[time]) -> Change:
    """From now on this person is told at these times."""
    return Change("notification_digest", (person, format_times(times)))


def forget_notification_times(person: str) -> Change:
    """Forget what this person wanted."""
    return Change("notification_drop", (person,))


async def language_of(store: Store, person: str) -> str:
    """The code of the language in which they read; '' where that is not known."""
    for chosen, reported in await store.query("language_get", (person,)):
        return str(chosen or reported)
    return ""


def language_now(store: Store, person: str) -> tuple[str, str]:
    """The codes of the language that they chose, and that of their chat program; '' for none."""
    for chosen, reported in store.query_sync("language_get", (person,)):
        return str(chosen), str(reported)
    return "", ""


def choose_language(person: str, code: str) -> Change:
    """From now on they read in this language; '' for that of their chat program."""
    return Change("language_choose", (person, code))


def report_language(person: str, code: str) -> Change:
    """Their chat program has this language."""
    return Change("language_report", (person, code))


def forget_language(person: str) -> Change:
    """Forget in which language they read."""
    return Change("language_drop", (person,))


async def find_reader(store: Store, address: Address) -> str:
    """The user who reads in this chat, alone with the bot; '' where that is not known."""
    rows = await store.query("notification_reader", (address.channel, address.account))
    for user, external_id, body in rows:
        paired = _decode_address(body) if body else None
        if external_id == address.chat or (paired is not None and paired.chat == address.chat):
            return str(user)
    return ""


# Shared conversations


def add_share(share: Share, digest: bytes) -> Change:
    """Keep a link; `digest` is the SHA-256 of the secret in its address."""
    row = (
        share.id,
        digest,
        share.session,
        share.last_n,
        share.person,
        share.at,
        share.until,
        share.files,
    )
    return Change("share_add", row)


def trim_shares(now: float) -> Change:
    """Forget the links that have ended."""
    return Change("share_trim", (now,))


async def find_share(store: Store, digest: bytes, now: float) -> Share | None:
    """The link whose secret has this SHA-256, where its day has not come."""
    for row in await store.query("share_find", (digest, now)):
        return _make_share(row)
    return None


def _make_share(row: tuple[Any, ...]) -> Share:
    id, session, last_n, person, at, until, files = row
    return Share(id, session, last_n, person, at, until, bool(files))


async def shares_of(store: Store, person: str, now: float, limit: int) -> list[Share]:
    """Those that this person has made and that have not ended, the latest first."""
    rows = await store.query("share_list", (person, now, limit))
    return [_make_share(row) for row in rows]


def drop_share(share_id: str, person: str) -> Change:
    """End one that this person has made."""
    return Change("share_drop", (share_id, person))


def forget_shares(person: str) -> Change:
    """End all that this person has made."""
    return Change("share_drop_of", (person,))
