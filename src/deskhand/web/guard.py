"""Who is let through: the right host, the right origin, a credential that holds, and not too many
guesses."""

from __future__ import annotations

import ipaddress
from collections import Counter, OrderedDict
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie

import msgspec
from starlette.datastructures import Headers

from ..types.clock import Clock
from ..types.identity import Principal
from ..types.people import Grant, People, Scope
from .errors import HttpProblem

COOKIE = "deskhand"
FORGERY_HEADER = "x-deskhand"
"""A page of another origin cannot send it without asking first, and it is never allowed."""
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
MAX_GUESSES = 10
REFILL_S = 6.0
"""Wrong credentials that are looked at: ten at once, then one in six seconds, for each address and
for all together."""
MAX_REMEMBERED = 1000
FRESH_S = 0.4
ANONYMOUS = Principal("anonymous")


class GuardLimits(msgspec.Struct, frozen=True):
    """`hosts` and `origins` as in settings."""

    hosts: frozenset[str]
    origins: frozenset[str]


class Credential(msgspec.Struct, frozen=True):
    """What a request brought along; `browser`: as a cookie."""

    secret: str
    browser: bool


def check_host(headers: Headers, hosts: frozenset[str]) -> None:
    """Raises HttpProblem unless there is one Host header and it is one of ours."""
    given = headers.getlist("host")
    if len(given) != 1 or given[0].lower() not in hosts:
        raise HttpProblem(
            421,
            "wrong_host",
            (
                "This Deskhand is not reached under that name. Its names are set by `web.host` "
                "and `web.hosts`."
            ),
        )


SIGNED_PREFIX = "/api/hooks/"
"""What is sent there says who sent it by its signature, and brings no credential."""


def check_origin(
    headers: Headers,
    origins: frozenset[str],
    credential: Credential | None,
    *,
    signed: bool = False,
) -> None:
    """Raises HttpProblem for what another site's page would send: asked of all that changes
    something, and of every WebSocket. Without an Origin only a program may, with its token in the
    header and no cookie, or with a signature of its own (`signed`); one that brings nothing is told
    so."""
    refused = HttpProblem(403, "wrong_origin", "Pages of other sites may not use this Deskhand.")
    origin = headers.get("origin")
    if len(headers.getlist("origin")) > 1 or headers.get("sec-fetch-site", "") == "cross-site":
        raise refused
    if origin is not None:
        if origin.lower() not in origins:
            raise refused
    elif (credential and credential.browser) or "cookie" in headers:
        raise refused
    elif credential is None and not signed:
        raise unauthenticated()


def credential_of(headers: Headers) -> Credential | None:
    """The bearer token, else the cookie of the page. Never anything in the address: addresses are
    logged."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and value.strip():
        return Credential(value.strip(), browser=False)
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return Credential(cookie.value, browser=True) if cookie is not None and cookie.value else None


class Guesses:
    """Looks credentials up, and only so many wrong ones. Those that held before are always looked
    at."""

    def __init__(self, people: People, clock: Clock) -> None:
        self._people = people
        self._clock = clock
        self._held: OrderedDict[bytes, None] = OrderedDict()
        self._asking: Counter[bytes] = Counter()
        self._looked: dict[Credential, tuple[float, bool]] = {}
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def authenticate(self, credential: Credential, client: str) -> Grant:
        """Raises HttpProblem: 401 where it does not hold, 429 where too many did not."""
        mark = sha256(credential.secret.encode("utf-8", "surrogateescape")).digest()
        held = mark in self._held
        guess = (
            not held and not self._asking[mark]
        )  # the same one ten times over is one guess: all clients come back
        if guess:
            self.check_rate(client)
            self.record_failure(client)  # before it is looked at: others are asked meanwhile
        self._asking[mark] += 1
        try:
            found = await self._people.authenticate(credential.secret)
        finally:
            self._asking[mark] -= 1
            if not self._asking[mark]:
                del self._asking[mark]
        if found is None or found.browser != credential.browser:
            if self._held.pop(mark, held) is None:
                self.record_failure(client)
            raise HttpProblem(
                401,
                "unauthenticated",
                (
                    "This token does not hold, or no longer. `deskhand login` and `deskhand "
                    "tokens create` make new ones."
                ),
                {"www-authenticate": "Bearer"},
            )
        if guess:
            self._refund(client)
        self._held[mark] = None
        self._held.move_to_end(mark)
        if len(self._held) > MAX_REMEMBERED:
            self._held.popitem(last=False)
        return found

    async def is_valid(self, credential: Credential) -> bool:
        """Whether it still does (or did FRESH_S ago), for a stream that stays open: of one there
        may be hundreds."""
        now = self._clock.monotonic()
        looked_at, held = self._looked.get(credential, (-FRESH_S, False))
        if now - looked_at < FRESH_S:
            return held
        found = await self._people.authenticate(credential.secret)
        held = found is not None and found.browser == credential.browser
        if len(self._looked) > MAX_REMEMBERED:
            self._looked.clear()
        self._looked[credential] = (now, held)
        return held

    def check_rate(self, client: str) -> None:
        """Raises HttpProblem where too much was guessed of late."""
        if self._tokens_left(client) < 1 or self._tokens_left("") < 1:
            wait = {"retry-after": str(int(REFILL_S * 2))}
            raise HttpProblem(
                429, "too_many_guesses", "Too many wrong tokens or links. Wait a minute.", wait
            )

    def record_failure(self, client: str) -> None:
        """One was wrong."""
        self._take_token(client)
        self._take_token("")

    def _refund(self, client: str) -> None:
        """What was counted was right."""
        for key in (client, ""):
            left, at = self._buckets.get(key, (float(MAX_GUESSES), 0.0))
            self._buckets[key] = (left + 1, at)

    def _tokens_left(self, key: str) -> float:
        left, at = self._buckets.get(key, (float(MAX_GUESSES), self._clock.monotonic()))
        return min(float(MAX_GUESSES), left + (self._clock.monotonic() - at) / REFILL_S)

    def _take_token(self, key: str) -> None:
        self._buckets[key] = (self._tokens_left(key) - 1, self._clock.monotonic())
        self._buckets.move_to_end(key)
        if len(self._buckets) > MAX_REMEMBERED:
            self._buckets.popitem(last=False)


def client_of(host: str) -> str:
    """The address that guesses are counted for: an IPv4 one is the same however it is written, and
    a whole IPv6 network belongs to one guesser."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)


def unauthenticated() -> HttpProblem:
    """Of whoever brings no credential where one is needed."""
    return HttpProblem(
        401,
        "unauthenticated",
        "Say who you are: send `Authorization: Bearer TOKEN` (`deskhand tokens create` "
        "makes one), or open the "
        "link that `deskhand login` prints.",
        {"www-authenticate": "Bearer"},
    )


def check_scope(grant: Grant | None, needs: Scope) -> None:
    """Raises HttpProblem unless the credential may do this."""
    if grant is None:
        raise unauthenticated()
    if needs not in grant.scopes:
        raise HttpProblem(
            403, "forbidden", f"This needs the right to {needs!r}, and your credential has it not."
        )
