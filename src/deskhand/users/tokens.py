"""Tokens and one-time login links. A secret is 256 random bits. It is shown once; only its SHA-256
is stored."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from contextlib import suppress
from hashlib import sha256

import msgspec

from ..policy.roles import allowed_agents, allowed_scopes, narrow_roles
from ..types.commit import Change
from ..types.errors import ConfigError, Refused, StoreError
from ..types.identity import Principal
from ..types.marked_texts import mark_text
from ..types.people import SCOPES, Grant, Identity, Scope, TokenRow, User
from . import queries
from .user_cache import Records

PREFIX = "dh_"
SECRET_CHARS = len(PREFIX) + 43
LOGIN_TTL_S = 600.0
BROWSER_TTL_S = 30 * 24 * 3600.0
PLATFORM_TTL_S = 24 * 3600.0
USED_EVERY_S = 60.0
"""How often the use of a token is noted, instead of with every request."""
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
        token = await queries.find_token(self._store, hash_secret(secret))
        if token is None:
            return None
        now = self._clock.now()
        user = self._roster.snapshot().users.get(token.user)
        if user is None or (token.expires_at is not None and token.expires_at <= now):
            return None

        found = self._grant(user, token.scopes, token.id, token.expires_at)
        if found is None:
            return None
        used_at = token.last_used_at
        if used_at is None or not 0 <= now - used_at < USED_EVERY_S:
            await self._note_used(token.id, now)
        return msgspec.structs.replace(found, browser=token.kind == "browser")

    def make_grant(self, user: str, token_id: str, expires_at: float) -> Grant | None:
        known = self._roster.snapshot().users.get(user)
        return None if known is None else self._grant(known, SCOPES, token_id, expires_at)

    def _grant(
        self, user: User, scopes: Collection[str], token_id: str, expires_at: float | None
    ) -> Grant | None:
        custom = self._roster.roles()
        given = tuple(scope for scope in allowed_scopes(user.roles, custom) if scope in scopes)
        if "admin" in given and len(given) < len(SCOPES):  # made by an older version
            given = tuple(scope for scope in given if scope != "admin")
        if not given:
            return None
        return Grant(
            Principal(user.name, narrow_roles(user.roles, custom, given)),
            given,
            token_id=token_id,
            expires_at=expires_at,
            agents=allowed_agents(user.roles, custom),
        )

    async def _note_used(self, token_id: str, now: float) -> None:
        with suppress(StoreError):  # only people read it
            await self._store.change([queries.mark_token_used(token_id, now)])

    async def tokens(self, user: str = "") -> list[TokenRow]:
        if not user or user != self._who.id:
            self._require_owner("see the tokens of others")
        return await queries.list_tokens(self._store, user)

    async def make_token(
        self, user: str, name: str, scopes: tuple[Scope, ...] = SCOPES, lasts_s: float | None = None
    ) -> tuple[TokenRow, str]:
        self._require_owner("make tokens")
        label = " ".join(name.split())[:NAME_CHARS]
        if unknown := set(scopes) - set(SCOPES):
            raise ConfigError(
                f"there is no scope {sorted(unknown)[0]!r}; choose from: {', '.join(SCOPES)}"
            )
        given = tuple(
            s
            for s in allowed_scopes(self._get_user(user).roles, self._roster.roles())
            if s in scopes
        )
        if not given:
            raise Refused(
                mark_text("the roles of {user} give none of: {scopes}").format(
                    user=repr(user), scopes=", ".join(scopes) or "no scope at all"
                )
            )
        if "admin" in given and len(given) < len(SCOPES):
            raise ConfigError(
                "a token with `admin` can change everything: give it all scopes, or leave "
                "`admin` out"
            )
        if not label:
            raise ConfigError("a token needs a name that says what it is for")
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
        add = queries.add_token(token, hash_secret(secret))
        await self._write("token made", _subject(token), *first, add)
        return token, secret

    async def rotate(self, token_id: str) -> tuple[TokenRow, str]:
        self._require_owner("make tokens")
        async with self._roster.change_lock:  # rotated twice at once, one token would become two
            old = await self._get_token(token_id)
            lasts_s = None if old.expires_at is None else old.expires_at - old.created_at
            return await self._add_token(old, lasts_s, queries.drop_token(old.id))

    async def revoke(self, token_id: str) -> None:
        token = await queries.get_token(self._store, token_id)
        if token is None or token.user != self._who.id:
            self._require_owner("revoke the tokens of others")
        token = await self._get_token(token_id)
        await self._write("token revoked", _subject(token), queries.drop_token(token.id))

    async def _get_token(self, token_id: str) -> TokenRow:
        token = await queries.get_token(self._store, token_id)
        if token is None:
            raise Refused(
                mark_text(
                    "there is no token {token}; list tokens with: deskhand tokens list"
                ).format(token=repr(token_id))
            )
        return token

    async def make_login(self, user: str) -> str:
        self._require_owner("make a link to log in")
        if not allowed_scopes(self._get_user(user).roles, self._roster.roles()):
            raise Refused(
                f"{user!r} has no role, so there is nothing to log in to: deskhand users add-role"
            )
        secret = new_secret()
        now = self._clock.now()
        add = queries.add_login(hash_secret(secret), user, now + LOGIN_TTL_S)
        await self._write("login link made", user, queries.expire_logins(now), add)
        return secret

    async def redeem_login(self, secret: str) -> tuple[TokenRow, str] | None:
        if len(secret) != SECRET_CHARS or not secret.startswith(PREFIX):
            return None
        fresh = new_secret()
        token_id = new_id()
        now = self._clock.now()
        link = hash_secret(secret)
        redeem = queries.redeem_login(
            link,
            token_id=token_id,
            secret_hash=hash_secret(fresh),
            scopes=SCOPES,
            now=now,
            expires_at=now + BROWSER_TTL_S,
        )
        added, *_ = await self._store.change(
            [redeem, queries.drop_login(link), queries.expire_tokens(now)]
        )
        if not added:
            return None
        token = await self._get_token(token_id)
        await self.add_audit_note(Principal(token.user), "logged in", token.id)
        return token, fresh

    async def log_in(self, identity: Identity) -> tuple[TokenRow, str]:
        snapshot = self._roster.snapshot()
        anywhere = msgspec.structs.replace(identity, account="")
        known = snapshot.name_by_identity
        user = snapshot.users.get(known.get(identity) or known.get(anywhere) or "")
        if user is None or snapshot.broken:
            who = f"{identity.external_id} on {identity.channel}"
            raise Refused(
                mark_text("nobody here is {who}: write to the bot first, and be let in").format(
                    who=who
                )
            )
        given = tuple(
            scope for scope in allowed_scopes(user.roles, self._roster.roles()) if scope != "admin"
        )
        if not given:
            raise Refused(f"{user.name!r} has no role, so there is nothing to log in to")
        wanted = TokenRow(
            "", user.name, f"in {identity.channel}", "browser", given, self._clock.now()
        )
        await self._store.change([queries.expire_tokens(self._clock.now())])
        return await self._add_token(wanted, PLATFORM_TTL_S)


def new_id() -> str:
    return f"tok_{secrets.token_hex(6)}"


def _subject(token: TokenRow) -> str:
    """How the audit trail names a token."""
    return f"{token.user} {token.id} {token.name}"
