"""The guarded client: whatever address it is given, nothing but the public web is reached, and
never for long.

A name is resolved once, all of its addresses are judged, and one of those very addresses is
connected to: a name that means something else a moment later (DNS rebinding) gains nothing. TLS and
the `Host` header keep the name. Redirects are followed here, each judged anew. There are no
cookies, and proxies of the environment are not asked.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import SocketStream

from ..types.errors import AddressRefused, NetError
from .address import find_connect_problem
from .host_rate_limit import HostRateLimiter
from .url import Url, join_url, parse_host, parse_url, quote_short

USER_AGENT = "Mozilla/5.0 (compatible; Deskhand/0.1)"
REDIRECT_STATUSES = frozenset((301, 302, 303, 307, 308))
_SLOW = "It may be slow now: try again later, or another address."
_CROSS_ORIGIN_HEADERS = frozenset(("accept", "accept-language", "user-agent"))
"""The headers that may go to another host than the one for which they were meant."""

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""(host, port) -> its IP addresses. Raises OSError."""
RawResponse = tuple[int, dict[str, str], bytes]
"""Status, headers with names in lower case, unpacked body; a redirect need have none."""


class NetLimits(msgspec.Struct, frozen=True):
    """What one fetch may take, with all of its redirects. `body_bytes` counts both as sent and as
    unpacked, `ratio` is one to the other; `idle_s` runs between two pieces, and for each
    connection."""

    body_bytes: int = 10_000_000
    ratio: int = 100
    total_s: float = 30.0
    idle_s: float = 15.0
    redirects: int = 5


class Fetched(msgspec.Struct, frozen=True):
    """What a server answered, whatever its status. `url` is where it came from in the end, `hops`
    are the addresses that led there. `headers` have names in lower case; `body` is unpacked."""

    url: Url
    status: int
    headers: Mapping[str, str]
    body: bytes
    hops: tuple[Url, ...] = ()

    @property
    def media_type(self) -> str:
        """`text/html`, without what may stand behind it; '' where the server did not say."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class OutboundRequest(msgspec.Struct, frozen=True):
    """`headers` beyond a few harmless ones go to the host of `url` alone. One with a body is not
    redirected."""

    url: Url
    headers: Mapping[str, str] = {}
    method: str = "GET"
    body: bytes | None = None


class SystemNames:
    """What the system's resolver says. It may hang for long on a name that somebody chose, so it
    has threads of its own and is not waited for: nobody else's names are held up by it."""

    def __init__(self, at_once: int = 8) -> None:
        self._at_once = at_once
        self._limiter: anyio.CapacityLimiter | None = None

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self._limiter = self._limiter or anyio.CapacityLimiter(self._at_once)
        ask = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        found = await anyio.to_thread.run_sync(ask, abandon_on_cancel=True, limiter=self._limiter)
        return [str(address[0]) for *_, address in found]


Exchange = Callable[[OutboundRequest, Sequence[str], NetLimits], Awaitable[RawResponse]]
"""Sends one request to one of these addresses, which were judged, and follows nothing. Raises
NetError and TimeoutError."""


class Net:
    """One per process. `resolve` and `allow` are for who starts the process: `allow` holds (host or
    address, port) that are reached although they are not public, such as a search engine on this
    machine. No model's word gets there. `manners` knows which host is to be left alone for a
    while."""

    def __init__(
        self,
        limits: NetLimits | None = None,
        *,
        resolve: Resolve | None = None,
        allow: Iterable[tuple[str, int]] = (),
        tls: ssl.SSLContext | None = None,
        closed: str = "",
    ) -> None:
        self.limits = limits or NetLimits()
        self._resolve: Resolve = resolve or SystemNames()
        self._allow = frozenset(allow)
        self._tls = tls
        self._closed = closed
        self._exchange: Exchange | None = None
        self.rate_limiter = HostRateLimiter()

    @cached_property
    def tls_context(self) -> ssl.SSLContext:
        """Whose certificates are believed."""
        return self._tls or ssl.create_default_context()

    def with_allowed_host(self, host: str, port: int) -> Net:
        """The same, which also reaches this host where it is not public: the word of a person,
        never of a model."""
        return self._copy({*self._allow, (parse_host(host), port)}, self._exchange)

    def with_exchange(self, exchange: Exchange) -> Net:
        """The same rules with another way to talk to an address that they allow."""
        return self._copy(self._allow, exchange)

    def _copy(self, allow: Iterable[tuple[str, int]], exchange: Exchange | None) -> Net:
        other = Net(
            self.limits, resolve=self._resolve, allow=allow, tls=self._tls, closed=self._closed
        )
        other._exchange = exchange
        other.rate_limiter = self.rate_limiter
        return other

    async def get(
        self,
        url: str | Url,
        headers: Mapping[str, str] | None = None,
        limits: NetLimits | None = None,
    ) -> Fetched:
        """Fetch a page or a file. Raises NetError with a sentence; AddressRefused and TooLarge are
        two of its kinds."""
        target = parse_url(url) if isinstance(url, str) else url
        return await self.send(OutboundRequest(target, headers or {}), limits)

    async def send(self, request: OutboundRequest, limits: NetLimits | None = None) -> Fetched:
        """Send a request as it stands, and follow where a GET leads. Raises NetError."""
        limits = limits or self.limits
        try:
            with anyio.fail_after(limits.total_s):
                return await self._follow(request, limits)
        except TimeoutError:
            raise NetError(
                f"{request.url.origin} took longer than {limits.total_s:g} s. {_SLOW}"
            ) from None

    async def resolve_host(self, host: str, port: int) -> tuple[str, ...]:
        """Where `host` may be connected to: all of its addresses, each judged. Raises NetError,
        AddressRefused."""
        if self._closed:
            raise NetError(self._closed)
        host = parse_host(f"[{host}]" if ":" in host else host)
        is_address = ":" in host or host.replace(".", "").isdigit()
        try:
            found = (host,) if is_address else await self._resolve(host, port)
        except (OSError, UnicodeError):
            found = ()
        if not found:
            raise NetError(f"the host name {quote_short(host)} was not found: check its spelling.")
        for address in found:
            self._check_address(host, address, port)
        return tuple(dict.fromkeys(found))

    async def connect(self, host: str, port: int) -> SocketStream:
        """A plain connection to one of the addresses of `host`. Raises NetError, AddressRefused."""
        addresses = await self.resolve_host(host, port)
        why = "it did not answer"
        for address in addresses[:4]:
            try:
                with anyio.fail_after(self.limits.idle_s / 2):
                    return await anyio.connect_tcp(address, port)  # noqa: TID251 -- judged above
            except TimeoutError:
                why = "it did not answer in time"
            except OSError as error:
                why = describe_connection_error(error)
        raise NetError(f"{quote_short(host)} could not be reached: {why}.")

    def _check_address(self, host: str, address: str, port: int) -> None:
        if (host, port) in self._allow or (address, port) in self._allow:
            return
        if why := find_connect_problem(address):
            where = f"its address {address} is" if address != host else "that is"
            raise AddressRefused(
                f"{quote_short(host)} is not fetched: {where} {why}, and only the public web can "
                "be reached."
            )

    async def _follow(self, request: OutboundRequest, limits: NetLimits) -> Fetched:
        hops: list[Url] = []
        while True:
            status, headers, body = await self._exchange_once(request, limits)
            where = headers.get("location", "")
            if status not in REDIRECT_STATUSES or not where:
                return Fetched(request.url, status, headers, body, tuple(hops))
            if request.body is not None:
                raise NetError(
                    f"{request.url.origin} redirects the request, and redirects are not followed "
                    "here."
                )
            hops.append(request.url)
            if len(hops) > limits.redirects:
                raise NetError(
                    f"{hops[0].origin} redirects more than {limits.redirects} times; the request "
                    "was stopped."
                )
            request = _make_redirect(request, where)

    async def _exchange_once(self, request: OutboundRequest, limits: NetLimits) -> RawResponse:
        url = request.url
        addresses = await self.resolve_host(url.host, url.port)
        exchange = self._exchange or self._load_http_exchange()
        try:
            return await exchange(request, addresses, limits)
        except TimeoutError:
            raise NetError(f"{url.origin} sent nothing for {limits.idle_s:g} s. {_SLOW}") from None

    def _load_http_exchange(self) -> Exchange:
        from .exchange import exchange_http  # noqa: PLC0415 -- half of what it takes to read the settings, and 17 MB

        return partial(exchange_http, tls=self._tls)


def _make_redirect(request: OutboundRequest, where: str) -> OutboundRequest:
    """The request for the address to which the answer leads. Raises AddressRefused."""
    try:
        url = join_url(request.url, where)
    except AddressRefused as error:
        raise AddressRefused(
            f"{request.url.origin} redirects to an address that is not fetched: {error}"
        ) from None
    if request.url.scheme == "https" and url.scheme == "http":
        raise AddressRefused(
            f"{request.url.origin} redirects to {url.origin}, without encryption: not followed."
        )
    headers = request.headers
    if url.origin != request.url.origin:
        headers = {
            name: value for name, value in headers.items() if name.lower() in _CROSS_ORIGIN_HEADERS
        }
    return OutboundRequest(url, headers, request.method)


def describe_connection_error(error: BaseException) -> str:
    """What went wrong with a connection, in words that say nothing of how we are made."""
    match error:
        case ssl.SSLCertVerificationError():
            return "its certificate is not valid, so its identity cannot be verified"
        case ssl.SSLError():
            return "no encrypted connection could be established"
        case OSError() if isinstance(error, ConnectionRefusedError) or _is_refused(error.__cause__):
            return "it refused the connection"
        case ConnectionResetError():
            return "it closed the connection without an answer"
        case _:
            return "the connection failed"


def _is_refused(cause: BaseException | None) -> bool:
    """anyio wraps what each address said."""
    found = cause.exceptions if isinstance(cause, BaseExceptionGroup) else (cause,)
    return any(isinstance(each, ConnectionRefusedError) for each in found)
