"""Tokens and one-time links. A secret is 256 random bits, is shown once, and is looked up by its
SHA-256."""

from __future__ import annotations

import secrets
from contextlib import suppress
from hashlib import sha256
from typing import Any

import msgspec

from ..policy.roles import allowed_agents, allowed_scopes, narrow_roles
from ..types.commit import Change
from ..types.errors import ConfigError, Refused, StoreError
from ..types.identity import Principal
from ..types.people import SCOPES, Grant, Scope, TokenRow
from .user_cache import Records

PREFIX = "dh_"
SECRET_CHARS = len(PREFIX) + 43
LOGIN_TTL_S = 600.0
BROWSER_TTL_S = 30 * 24 * 3600.0
USED_EVERY_S = 60.0
"""How exactly it is noted when a token was used: not with every request."""
NAME_CHARS = 80


def new_secret() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def hash_secret(secret: str) -> bytes:
    return sha256(secret.encode(errors="replace")).digest()


class Credentials(Records):
    """The part of `types.people.People` that is about tokens and logins."""

    async def authenticate(self, secret: str) -> Grant | None:
        if len(secret) != SECRET_CHARS or not secret.startswith(PREFIX):
            return None
        rows = await self._store.query("token_find", (hash_secret(secret),))
        if not rows:
            return None
        token_id, name, kind, scopes, expires_at, used_at = rows[0]
        now = self._clock.now()
        user = self._roster.snapshot().users.get(name)
        if user is None or (expires_at is not None and expires_at <= now):
            return None
        roles = user.roles
        custom = self._roster.roles()
        wanted = scopes.split()
        given = tuple(scope for scope in allowed_scopes(roles, custom) if scope in wanted)
        if "admin" in given and len(given) < len(SCOPES):  # made by an older version
            given = tuple(scope for scope in given if scope != "admin")
        if not given:
            return None
        if used_at is None or not 0 <= now - used_at < USED_EVERY_S:
            await self._note_used(token_id, now)
        who = Principal(name, narrow_roles(roles, custom, given))
        return Grant(
            who, given, token_id, kind == "browser", expires_at, allowed_agents(roles, custom)
        )

    async def _note_used(self, token_id: str, now: float) -> None:
        with suppress(StoreError):  # it is only for people to read
            await self._store.change([Change("token_used", (now, token_id))])

    async def tokens(self, user: str = "") -> list[TokenRow]:
        if not user or user != self._who.id:
            self._require_owner("see the tokens of others")
        return [_row(row) for row in await self._store.query("token_list", (user,))]

    async def make_token(
        self, user: str, name: str, scopes: tuple[Scope, ...] = SCOPES, lasts_s: float | None = None
    ) -> tuple[TokenRow, str]:
        self._require_owner("make tokens")
        label = " ".join(name.split())[:NAME_CHARS]
        if unknown := set(scopes) - set(SCOPES):
            raise ConfigError(
                f"there is no scope {sorted(unknown)[0]!r}; there are: {', '.join(SCOPES)}"
            )
        given = tuple(
            s
            for s in allowed_scopes(self._get_user(user).roles, self._roster.roles())
            if s in scopes
        )
        if not given:
            raise Refused(
                f"the roles of {user!r} give none of: {', '.join(scopes) or 'no scope at all'}"
            )
        if "admin" in given and len(given) < len(SCOPES):
            raise ConfigError(
                "whoever may `admin` changes the house, and so may do everything: give all "
                "scopes, or leave admin out"
            )
        if not label:
            raise ConfigError("a token needs a name, so that you know later what it is for")
        return await self._add_token(
            TokenRow("", user, label, "api", given, self._clock.now()), lasts_s
        )

    async def _add_token(
        self, wanted: TokenRow, lasts_s: float | None, *first: Change
    ) -> tuple[TokenRow, str]:
        secret = new_secret()
        now = self._clock.now()
        expires_at = None if lasts_s is None else now + lasts_s
        token = msgspec.structs.replace(
            wanted, id=new_id(), created_at=now, expires_at=expires_at, last_used_at=None
        )
        row = (
            token.id,
            hash_secret(secret),
            token.user,
            token.name,
            token.kind,
            " ".join(token.scopes),
            now,
            expires_at,
        )
        await self._write(
            "token made", f"{token.user} {token.id} {token.name}", *first, Change("token_add", row)
        )
        return token, secret

    async def rotate(self, token_id: str) -> tuple[TokenRow, str]:
        self._require_owner("make tokens")
        async with self._roster.change_lock:  # else one that is rotated twice at once is two
            old = await self._get_token(token_id)
            lasts_s = None if old.expires_at is None else old.expires_at - old.created_at
            return await self._add_token(old, lasts_s, Change("token_drop", (old.id,)))

    async def revoke(self, token_id: str) -> None:
        rows = await self._store.query("token_get", (token_id,))
        if not rows or rows[0][1] != self._who.id:
            self._require_owner("revoke the tokens of others")
        old = await self._get_token(token_id)
        await self._write(
            "token revoked", f"{old.user} {old.id} {old.name}", Change("token_drop", (old.id,))
        )

    async def _get_token(self, token_id: str) -> TokenRow:
        rows = await self._store.query("token_get", (token_id,))
        if not rows:
            raise Refused(f"there is no token {token_id!r}; `deskhand tokens list` shows them")
        return _row(rows[0])

    async def make_login(self, user: str) -> str:
        self._require_owner("make a link to log in")
        if not allowed_scopes(self._get_user(user).roles, self._roster.roles()):
            raise Refused(
                f"{user!r} has no role, so there is nothing to log in to: deskhand users add-role"
            )
        secret = new_secret()
        now = self._clock.now()
        row = Change("login_add", (hash_secret(secret), user, now + LOGIN_TTL_S))
        await self._write("login link made", user, Change("login_expire", (now,)), row)
        return secret

    async def redeem_login(self, secret: str) -> tuple[TokenRow, str] | None:
        if len(secret) != SECRET_CHARS or not secret.startswith(PREFIX):
            return None
        fresh = new_secret()
        token_id = new_id()
        now = self._clock.now()
        link = hash_secret(secret)
        row = (link, token_id, hash_secret(fresh), " ".join(SCOPES), now, now + BROWSER_TTL_S)
        once = [
            Change("login_redeem", row),
            Change("login_drop", (link,)),
            Change("token_expire", (now,)),
        ]
        made, *_ = await self._store.change(once)
        if not made:
            return None
        token = await self._get_token(token_id)
        await self.add_audit_note(Principal(token.user), "logged in", token.id)
        return token, fresh


def new_id() -> str:
    return f"tok_{secrets.token_hex(6)}"


def _row(row: tuple[Any, ...]) -> TokenRow:
    token_id, user, name, kind, scopes, created_at, expires_at, used_at = row
    held = scopes.split()
    given = tuple(scope for scope in SCOPES if scope in held)
    return TokenRow(token_id, user, name, kind, given, created_at, expires_at, used_at)
