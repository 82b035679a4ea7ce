"""Users and their credentials in memory: the People of tests that are about something else."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from itertools import count

from msgspec.structs import replace

from ..types.clock import Clock
from ..types.errors import ConfigError, Refused
from ..types.identity import Inbound, Principal
from ..types.people import OWNER_NAME, ROLE_SCOPES, SCOPES, Grant, Identity, Pairing, People, Scope, TokenRow, User

LOGIN_S, BROWSER_S, PAIRING_S = 600.0, 90 * 86400.0, 3600.0


class MemoryPeople:
    """`evaluated` counts the credentials that were looked up. `restricted` names the agents of a user."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._users = {OWNER_NAME: User(OWNER_NAME, ("owner",))}
        self._tokens: dict[str, TokenRow] = {}
        self._logins: dict[str, tuple[str, float]] = {}
        self._pairings: dict[str, Pairing] = {}
        self._numbers = count(1)
        self.restricted: dict[str, tuple[str, ...]] = {}
        self.evaluated = 0

    def authorise(self, inbound: Inbound) -> Principal | None:
        if inbound.address.channel == "terminal":
            return _principal(self._users[OWNER_NAME])
        mine = Identity(inbound.address.channel, inbound.sender)
        return next((_principal(user) for user in self._users.values() if mine in user.identities), None)

    def may_talk(self, principal: Principal, agent: str) -> bool:
        agents = self.restricted.get(principal.id)
        return agents is None or agent in agents

    async def grant_of(self, secret: str) -> Grant | None:
        self.evaluated += 1
        row = self._tokens.get(secret)
        if row is None or row.user not in self._users or _over(row.expires_at, self._clock.now()):
            return None
        user = self._users[row.user]
        allowed = _scopes(user)
        scopes = tuple(scope for scope in row.scopes if scope in allowed)
        browser, agents = row.kind == "browser", self.restricted.get(user.name)
        return Grant(_principal(user), scopes, row.id, browser, row.expires_at, agents)

    async def users(self) -> list[User]:
        return list(self._users.values())

    async def add_user(self, name: str, role: str, identity: Identity | None = None) -> User:
        if name in self._users:
            raise ConfigError(f"there is a user {name!r} already")
        _known(role)
        self._users[name] = User(name, (role,), (identity,) if identity else (), self._clock.now())
        return self._users[name]

    async def remove_user(self, name: str) -> None:
        user = self._user(name)
        if "owner" in user.roles and sum("owner" in each.roles for each in self._users.values()) == 1:
            raise Refused(f"{name!r} is the last owner")
        del self._users[name]
        self._tokens = {secret: row for secret, row in self._tokens.items() if row.user != name}

    async def link(self, name: str, identity: Identity) -> User:
        user = self._user(name)
        return self._keep(replace(user, identities=(*user.identities, identity)))

    async def unlink(self, identity: Identity) -> None:
        for user in list(self._users.values()):
            self._keep(replace(user, identities=tuple(each for each in user.identities if each != identity)))

    async def add_role(self, name: str, role: str) -> User:
        _known(role)
        user = self._user(name)
        return self._keep(replace(user, roles=tuple(dict.fromkeys((*user.roles, role)))))

    async def remove_role(self, name: str, role: str) -> User:
        user = self._user(name)
        return self._keep(replace(user, roles=tuple(each for each in user.roles if each != role)))

    async def tokens(self, user: str = "") -> list[TokenRow]:
        return [row for row in self._tokens.values() if user in ("", row.user)]

    async def make_token(
        self, user: str, name: str, scopes: tuple[Scope, ...] = SCOPES, lasts_s: float | None = None
    ) -> tuple[TokenRow, str]:
        allowed = _scopes(self._user(user))
        now, secret = self._clock.now(), f"dh_{secrets.token_urlsafe(32)}"
        given = tuple(scope for scope in scopes if scope in allowed)
        until = now + lasts_s if lasts_s is not None else None
        row = TokenRow(f"tok_{next(self._numbers)}", user, name, "api", given, now, until)
        self._tokens[secret] = row
        return row, secret

    async def revoke(self, token_id: str) -> None:
        self._tokens = {secret: row for secret, row in self._tokens.items() if row.id != token_id}

    async def make_login(self, user: str) -> str:
        self._user(user)
        secret = secrets.token_urlsafe(32)
        self._logins[secret] = (user, self._clock.now() + LOGIN_S)
        return secret

    async def redeem_login(self, secret: str) -> tuple[TokenRow, str] | None:
        user, until = self._logins.pop(secret, ("", 0.0))
        if not user or user not in self._users or _over(until, self._clock.now()):
            return None
        now, cookie = self._clock.now(), secrets.token_urlsafe(32)
        scopes = _scopes(self._users[user])
        row = TokenRow(f"tok_{next(self._numbers)}", user, "browser", "browser", scopes, now, now + BROWSER_S)
        self._tokens[cookie] = row
        return row, cookie

    async def ask_in(self, inbound: Inbound) -> str:
        code, place, now = secrets.token_hex(4).upper(), inbound.address, self._clock.now()
        self._pairings[code] = Pairing(code, place.channel, place.account, inbound.sender, now, now + PAIRING_S)
        return code

    async def pairings(self) -> list[Pairing]:
        return list(self._pairings.values())

    async def approve(self, code: str, user: str = "", role: str = "member") -> User:
        found = self._pairings.pop(code, None)
        if found is None:
            raise Refused(f"the code {code!r} does not hold")
        identity = Identity(found.channel, found.external_id)
        return await (self.link(user, identity) if user else self.add_user(f"guest-{code.lower()}", role, identity))

    async def refuse(self, code: str) -> None:
        self._pairings.pop(code, None)

    def _user(self, name: str) -> User:
        if name not in self._users:
            raise ConfigError(f"there is no user {name!r}")
        return self._users[name]

    def _keep(self, user: User) -> User:
        self._users[user.name] = user
        return user


def _principal(user: User) -> Principal:
    return Principal(user.name, user.roles)


def _scopes(user: User) -> tuple[Scope, ...]:
    allowed = {scope for role in user.roles for scope in ROLE_SCOPES.get(role, ROLE_SCOPES["member"])}
    return tuple(scope for scope in SCOPES if scope in allowed)


def _known(role: str) -> None:
    if role not in ROLE_SCOPES:
        raise ConfigError(f"there is no role {role!r}; there are: {', '.join(ROLE_SCOPES)}")


def _over(until: float | None, now: float) -> bool:
    return until is not None and until <= now


_: Callable[[Clock], People] = MemoryPeople
