"""Pairing: a stranger gets a code, gives it to the owner, and the owner approves it.

A code is 8 of 32 letters (40 bits). It is valid for an hour and once, and bound to the person who
got it: channel, account and the platform's own id. It is never accepted from a channel, so that
nobody can approve themselves.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection
from itertools import count
from math import ceil

from ..policy.roles import resolve_role, validate_user_name
from ..store.queries import enqueue
from ..types.commands import WELCOME
from ..types.commit import Outgoing
from ..types.errors import ConfigError, Refused, StoreError, StoreUnavailable
from ..types.identity import Inbound
from ..types.labels import LOCAL
from ..types.marked_texts import mark_text
from ..types.messages import Text
from ..types.people import (
    DEVICE_CHANNEL,
    DEVICE_TTL_S,
    OWNER_NAME,
    SIGN_IN_CHANNEL,
    Identity,
    Pairing,
    User,
)
from . import queries
from .owner_alerts import Alerts
from .user_cache import Records

LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Without letters and digits that look alike: I and 1, O and 0."""
CODE_CHARS = 8
CODE_TTL_S = 3600.0
MAX_PENDING = 3
"""How many people may wait for approval on one channel."""
MAX_PROGRAMS = 20
"""How many programs may: nobody knows one from another by its name."""
MAX_BAD_CODES = 5
LOCKOUT_S = 3600.0
FORGET_S = 24 * 3600.0


class Pairings(Records):
    """The part of `types.people.People` that is about pairing."""

    async def request_pairing(self, inbound: Inbound) -> str:
        address = inbound.address
        now = self._clock.now()
        if address.group or not inbound.sender or self._roster.snapshot().broken:
            return ""  # in a group, everybody would read the code
        code = "".join(secrets.choice(LETTERS) for _ in range(CODE_CHARS))
        is_program = address.channel == DEVICE_CHANNEL
        expires_at = now + (DEVICE_TTL_S if is_program else CODE_TTL_S)
        most = MAX_PROGRAMS if is_program else MAX_PENDING
        add = queries.add_pairing(
            code, address, inbound.sender, now=now, expires_at=expires_at, most=most
        )
        _, added = await self._store.change([queries.expire_pairings(now - FORGET_S), add])
        return code if added else ""

    async def pairings(self) -> list[Pairing]:
        self._require_owner("see who wants to be let in")
        return await queries.open_pairings(self._store, self._clock.now())

    async def preview_approval(self, code: str, user: str = "", role: str = "") -> User | None:
        """The user that `approve` would make or extend, or None for a bad code. Bad codes are not
        counted here."""
        self._require_owner("see who wants to be let in")
        wanted = _normalize_code(code)
        asked = next((each for each in await self.pairings() if each.code == wanted), None)
        return self._as_user(asked, user, role) if asked is not None else None

    def _as_user(self, asked: Pairing, user: str, role: str) -> User:
        """The user that this person becomes. A user who is there already keeps their roles."""
        if user:
            validate_user_name(user)
        wanted = resolve_role(role or "member", self._roster.roles())
        snapshot = self._roster.snapshot()
        identity = Identity(asked.channel, asked.external_id, asked.account)
        people = [each for each in snapshot.name_by_identity if each.channel != DEVICE_CHANNEL]
        first = not (role or people or asked.channel == DEVICE_CHANNEL)
        name = user or (OWNER_NAME if first else _free_user_name(identity, snapshot.users))
        known = snapshot.users.get(name)
        return User(name, known.roles if known is not None else (wanted,), (identity,))

    async def approve(self, code: str, user: str = "", role: str = "") -> User:
        self._require_owner("let somebody in")
        if user:
            validate_user_name(user)
        resolve_role(role or "member", self._roster.roles())
        async with self._roster.change_lock:
            asked = await self._check_code(code)
            new = self._as_user(asked, user, role)
            identity = new.identities[0]
            name = new.name
            now = self._clock.now()
            changes = [queries.settle_pairing(asked.code, "approved")]
            if name not in self._roster.snapshot().users:
                changes += [queries.add_user(name, now), queries.add_role(name, new.roles[0])]
            address = await queries.pairing_address(self._store, asked.code)
            changes.append(queries.add_identity(name, identity, now, address))
            if identity.channel != DEVICE_CHANNEL:
                words = Text(_welcome(name), LOCAL)
                welcome = Outgoing(f"people:in:{asked.code}", address, (words,))
                changes.append(enqueue(welcome, now))  # by whichever process has the channel
            try:
                await self._write("paired", f"{name} {format_identity(identity)}", *changes)
            except StoreUnavailable:
                raise
            except StoreError as error:
                raise Refused(
                    mark_text("{who} is somebody already; see: deskhand users list").format(
                        who=format_identity(identity)
                    )
                ) from error
            return self._get_user(name)

    async def refuse(self, code: str) -> None:
        self._require_owner("refuse somebody")
        code = _normalize_code(code)
        if code not in [each.code for each in await self.pairings()]:
            raise Refused(
                mark_text("nobody waits with the code {code}; see: deskhand pair list").format(
                    code=repr(code)
                )
            )
        await self._write("pairing refused", code, queries.settle_pairing(code, "refused"))

    def locked_until(self) -> float:
        """Until when no code is accepted (seconds since the epoch), or 0."""
        now = self._clock.now()
        until = queries.codes_locked_until(self._store)
        if until > now + LOCKOUT_S:  # the clock went back
            return 0.0
        return until if until > now else 0.0

    async def _check_code(self, code: str) -> Pairing:
        """The pairing with this code. Counts a bad code, and raises Refused."""
        now = self._clock.now()
        if until := self.locked_until():
            minutes = ceil((until - now) / 60)
            raise Refused(
                mark_text(
                    "too many bad codes ({most_number}); try again in {minutes_number} minutes"
                ).format(most_number=MAX_BAD_CODES, minutes_number=minutes)
            )
        wanted = _normalize_code(code)
        found = next((each for each in await self.pairings() if each.code == wanted), None)
        if found is not None:
            return found
        guesses = await queries.count_bad_codes(self._store, now - LOCKOUT_S) + 1
        if guesses < MAX_BAD_CODES:
            await self._write("bad pairing code", "", queries.add_bad_code(now))
            left = MAX_BAD_CODES - guesses
            raise Refused(
                mark_text(
                    "this code is not valid: it was used, is too old, or was never given "
                    "({left_number} tries left)"
                ).format(left_number=left)
            )
        await self._lock(now)
        raise Refused(
            mark_text(
                "this code is not valid; after {most_number} bad codes none is accepted for an hour"
            ).format(most_number=MAX_BAD_CODES)
        )

    async def _lock(self, now: float) -> None:
        """Accept no codes for a while, and alert the owners."""
        text = mark_text(
            "Somebody tried {codes_number} invalid pairing codes. No code is accepted for an "
            "hour. Was it you?"
        ).format(codes_number=MAX_BAD_CODES)
        told = await Alerts(self._store, self._clock).alert_owners(f"lock:{now}", text)
        locked = [queries.lock_codes(now + LOCKOUT_S), queries.forget_bad_codes()]
        await self._write("pairing locked", f"{MAX_BAD_CODES} bad codes", *locked, *told)


def format_identity(identity: Identity) -> str:
    """An identity as people write it: `telegram:42`, or `telegram/bot:42` on one account alone."""
    account = f"/{identity.account}" if identity.account else ""
    return f"{identity.channel}{account}:{identity.external_id}"


def _normalize_code(code: str) -> str:
    return re.sub(r"[\s-]", "", code[:100]).upper()


def _welcome(name: str) -> str:
    let_in = mark_text("You are let in: you are {user_name} here.").format(user_name=name)
    if name == OWNER_NAME:
        let_in = mark_text("You are let in: you are my owner now.")
    return f"{let_in}\n\n{WELCOME}"


def _free_user_name(identity: Identity, taken: Collection[str]) -> str:
    """A name that is not taken, made from the identity."""
    plain = f"{identity.channel}-{identity.external_id}".lower()
    base = re.sub(r"[^a-z0-9.]+", "-", plain).strip("-")[:56] or "guest"
    if base not in taken:
        return base
    return next(name for n in count(2) if (name := f"{base}-{n}") not in taken)


def check_identity(identity: Identity) -> Identity:
    """The same identity. Raises ConfigError when nobody can have it."""
    is_named = bool(identity.channel and identity.external_id.strip())
    if identity.channel == SIGN_IN_CHANNEL and "@" not in identity.external_id:
        raise ConfigError(
            f"{identity.external_id!r} is no email address: `{SIGN_IN_CHANNEL}` takes the one with "
            "which somebody signs in"
        )
    if not is_named or identity.channel in RESERVED_CHANNELS - {SIGN_IN_CHANNEL}:
        raise ConfigError(
            f"{format_identity(identity)!r} is not an identity: name a channel of the "
            "configuration and the platform's own id, such as: telegram 12345678"
        )
    return identity


RESERVED_CHANNELS = frozenset(
    {"terminal", "web", "api", "door", "job", "subagent", "system", SIGN_IN_CHANNEL, DEVICE_CHANNEL}
)
"""Surfaces of our own, where people are known by other means."""
