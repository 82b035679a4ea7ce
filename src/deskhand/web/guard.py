"""Checks of every request: host, origin, credential, and how many wrong credentials came before."""

from __future__ import annotations

import ipaddress
from collections import Counter, OrderedDict
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

import msgspec
from starlette.datastructures import Headers

from ..types.clock import Clock
from ..types.identity import Principal
from ..types.marked_texts import mark_text
from ..types.people import Grant, People, Scope
from .errors import HttpProblem
from .sign_in import SignIn

COOKIE = "deskhand"
FORGERY_HEADER = "x-deskhand"
"""A page of another origin would need a CORS preflight to send this header, which we never
allow."""
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
MAX_GUESSES = 10
"""How many wrong credentials are checked at once, from one address and from all together."""
REFILL_S = 6.0
"""After how many seconds one more wrong credential is checked."""
MAX_REMEMBERED = 1000
FRESH_S = 0.4
"""How long a stream relies on the last check of its credential."""
ANONYMOUS = Principal("anonymous")


class GuardLimits(msgspec.Struct, frozen=True):
    """The names and the origins under which this Deskhand is reached. See `web.settings`."""

    hosts: frozenset[str]
    origins: frozenset[str]


class Credential(msgspec.Struct, frozen=True):
    """A secret that a request carries. `browser`: it came as a cookie."""

    secret: str
    browser: bool


def check_host(headers: Headers, hosts: frozenset[str]) -> None:
    """Raises HttpProblem unless there is one Host header and it is one of ours."""
    given = headers.getlist("host")
    if len(given) != 1 or given[0].lower() not in hosts:
        raise HttpProblem(
            421,
            "wrong_host",
            "This Deskhand does not serve that host name. Set its names with `web.host` and "
            "`web.hosts`.",
        )


SIGNED_PREFIX = "/api/hooks/"
"""Requests under this path are authenticated by their signature and carry no credential."""
DEVICE_PATHS = ("/auth/device", "/auth/token")
"""Where a program asks for its first credential."""


def check_origin(
    headers: Headers,
    origins: frozenset[str],
    credential: Credential | None,
    *,
    signed: bool = False,
) -> None:
    """Raises HttpProblem for a request that a page of another site could have sent. For requests
    that may change something, and for every WebSocket.

    Without an Origin header only a program may send one: with its token in the header and no
    cookie, or where it needs none (`signed`): with its own signature, or to ask for one.
    """
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
    """The bearer token, or else the cookie of the page. Secrets in the address are not accepted,
    since addresses are logged."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and value.strip():
        return Credential(value.strip(), browser=False)
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return Credential(cookie.value, browser=True) if cookie is not None and cookie.value else None


def id_token_of(query: bytes) -> Credential | None:
    """The ID token in the address of a WebSocket, where clients of openagent-core have it: a
    browser can send no header there. It ends by itself soon; our own tokens do not, and are not
    accepted in an address."""
    values = parse_qs(query.decode("latin-1")).get("token", [])
    token = values[0] if len(values) == 1 else ""
    return Credential(token, browser=False) if token.count(".") == 2 else None


class Guesses:
    """Authenticates credentials, and limits how many wrong ones are checked. A credential that was
    valid before is always checked."""

    def __init__(self, people: People, clock: Clock, sign_in: SignIn | None = None) -> None:
        self._people = people
        self._sign_in = sign_in
        self._clock = clock
        self._held: OrderedDict[bytes, None] = OrderedDict()
        self._asking: Counter[bytes] = Counter()
        self._looked: dict[Credential, tuple[float, bool]] = {}
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def authenticate(self, credential: Credential, client: str) -> Grant:
        """The grant of this credential. Raises HttpProblem: 401 if it is not valid, 429 if too many
        wrong ones came before."""
        mark = sha256(credential.secret.encode("utf-8", "surrogateescape")).digest()
        held = mark in self._held
        # After a restart all clients reconnect: the same credential at the same time is one guess.
        guess = not held and not self._asking[mark]
        if guess:
            self.check_rate(client)
            # Counted before the check, since other requests are checked meanwhile.
            self.record_failure(client)
        self._asking[mark] += 1
        try:
            found = await self._find_grant(credential)
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
                mark_text(
                    "This token is unknown, expired or revoked. Create a new one with "
                    "`deskhand tokens create` or `deskhand login`."
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

    async def _find_grant(self, credential: Credential) -> Grant | None:
        """What it is worth: a token of ours, or an ID token of the provider at which people sign
        in, which no browser keeps for us."""
        found = await self._people.authenticate(credential.secret)
        if found is None and self._sign_in is not None and not credential.browser:
            found = await self._sign_in.find_grant(credential.secret)
        return found

    async def is_valid(self, credential: Credential) -> bool:
        """Whether the credential is still valid. The answer may be FRESH_S old, since hundreds of
        streams may ask for one credential."""
        now = self._clock.monotonic()
        looked_at, held = self._looked.get(credential, (-FRESH_S, False))
        if now - looked_at < FRESH_S:
            return held
        found = await self._find_grant(credential)
        held = found is not None and found.browser == credential.browser
        if len(self._looked) > MAX_REMEMBERED:
            self._looked.clear()
        self._looked[credential] = (now, held)
        return held

    def check_rate(self, client: str) -> None:
        """Raises HttpProblem if this client, or all clients together, guessed too often."""
        if self._tokens_left(client) < 1 or self._tokens_left("") < 1:
            wait = {"retry-after": str(int(REFILL_S * 2))}
            raise HttpProblem(
                429,
                "too_many_guesses",
                mark_text("Too many wrong tokens or links. Wait a minute."),
                wait,
            )

    def record_failure(self, client: str) -> None:
        """Count a wrong credential from this client."""
        self._take_token(client)
        self._take_token("")

    def _refund(self, client: str) -> None:
        """Take back one guess that turned out to be right."""
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
    """The key that guesses of this address are counted under. All addresses of an IPv6 /64 network
    share one, and IPv4-mapped addresses count as IPv4."""
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
    """The error for a request without a credential that needs one."""
    return HttpProblem(
        401,
        "unauthenticated",
        mark_text(
            "Authentication is required: send `Authorization: Bearer TOKEN` with a "
            "token from `deskhand tokens create`, or open the link that `deskhand "
            "login` prints."
        ),
        {"www-authenticate": "Bearer"},
    )


def check_scope(grant: Grant | None, needs: Scope) -> None:
    """Raises HttpProblem unless the credential may do this."""
    if grant is None:
        raise unauthenticated()
    if needs not in grant.scopes:
        raise HttpProblem(
            403,
            "forbidden",
            mark_text("This needs the scope {scope}, which your credential does not have.").format(
                scope=repr(needs)
            ),
        )
