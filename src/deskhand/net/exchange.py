"""One exchange over HTTP, with an address that was judged before. Who fetches nothing does without
aiohttp."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import aiohttp  # noqa: TID251 -- the one place
from aiohttp.abc import AbstractResolver, ResolveResult  # noqa: TID251 -- the one place
from yarl import URL

from ..types.errors import NetError, TooLarge
from .client import (
    REDIRECT_STATUSES,
    USER_AGENT,
    NetLimits,
    OutboundRequest,
    RawResponse,
    describe_connection_error,
)
from .inflate import InflateMeter, Inflater
from .url import quote_short


async def exchange_http(
    request: OutboundRequest,
    addresses: Sequence[str],
    limits: NetLimits,
    *,
    tls: ssl.SSLContext | None = None,
) -> RawResponse:
    """See `client.Exchange`."""
    url = request.url
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=limits.idle_s, sock_read=limits.idle_s)
    connector = aiohttp.TCPConnector(
        resolver=_Pinned(addresses),
        use_dns_cache=False,
        force_close=True,
        ssl=tls or True,
        socket_factory=_make_socket_factory(addresses),
    )
    headers = {
        "Accept-Encoding": "gzip, deflate",
        "User-Agent": USER_AGENT,
        "Accept": "*/*",
        **request.headers,
    }
    try:
        async with (
            aiohttp.ClientSession(
                connector=connector,
                timeout=timeout,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            ) as session,
            session.request(
                request.method,
                URL(str(url), encoded=True),
                headers=headers,
                data=request.body,
                allow_redirects=False,
            ) as response,
        ):
            found: dict[str, str] = {}
            for name, value in response.headers.items():
                key = name.lower()
                found[key] = f"{found[key]}, {value}" if key in found else value
            redirects = response.status in REDIRECT_STATUSES and "location" in found
            body = b"" if redirects else await _read_body(response, found, limits)
            return response.status, found, body
    except TooLarge as error:
        raise TooLarge(f"{quote_short(str(url))} was refused: {error}") from None
    except TimeoutError:
        raise
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise NetError(f"{url.origin} could not be fetched: {_describe_error(error)}.") from None


class _Pinned(AbstractResolver):
    """Knows nothing but the addresses that were judged."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in self._addresses
        ]

    async def close(self) -> None:
        """There is nothing to close."""


def _make_socket_factory(addresses: Sequence[str]) -> Callable[[Any], socket.socket]:
    """Makes sockets for these addresses alone: the last look before a connection, whatever came
    before it."""

    def make(found: Any) -> socket.socket:
        family, kind, proto, _, target = found
        if target[0] not in addresses:
            raise OSError(f"{target[0]} was not checked")
        return socket.socket(family, kind, proto)

    return make


async def _read_body(
    response: aiohttp.ClientResponse, headers: Mapping[str, str], limits: NetLimits
) -> bytes:
    """All of the body, unpacked. Raises TooLarge as soon as it is, NetError for one that is
    damaged."""
    meter = InflateMeter(limits.body_bytes, limits.ratio)
    body = bytearray()
    try:
        meter.expect(response.content_length or 0)
        inflater = Inflater(headers.get("content-encoding", ""), meter)
        async for chunk in response.content.iter_any():
            for piece in inflater.feed(chunk):
                body += piece
        inflater.close()
    except TooLarge:
        raise
    except NetError as error:
        raise NetError(f"{quote_short(str(response.url))} cannot be read: {error}") from None
    return bytes(body)


def _describe_error(error: BaseException) -> str:
    match error:
        case ssl.SSLError():
            return describe_connection_error(error)
        case aiohttp.ClientConnectorError():
            return "it refused the connection"
        case aiohttp.ServerDisconnectedError():
            return "it closed the connection without an answer"
        case aiohttp.ClientPayloadError():
            return "the answer was cut off"
        case aiohttp.ClientResponseError():
            return "it did not answer with valid HTTP"
        case _:
            return describe_connection_error(error)
