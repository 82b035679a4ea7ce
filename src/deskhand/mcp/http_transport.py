"""The way to MCP servers on the web: the SDK's HTTP client over our guarded connections."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import anyio
import httpcore2
import httpx2

from ..net.client import Net
from ..types.errors import NetError

MAX_BODY_BYTES = 16 << 20
"""The longest answer that is no stream of events."""
MAX_EVENT_BYTES = 16 << 20
CONNECT_S = 15.0


class CheckedBackend(httpcore2.AsyncNetworkBackend):
    """Connects only to addresses that `net` has judged."""

    def __init__(self, net: Net) -> None:
        self._net = net
        self._plain = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 -- its interface
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            addresses = await self._net.resolve_host(host, port)
        except NetError as error:
            raise httpcore2.ConnectError(str(error)) from error
        failed: Exception = httpcore2.ConnectError(f"{host} has no address")
        for address in addresses[:4]:
            try:
                return await self._plain.connect_tcp(address, port, timeout=timeout)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failed = error
        raise failed

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)


class CheckedTransport(httpx2.AsyncBaseTransport):
    """Sends requests over connections of `CheckedBackend`. An answer that is no stream of events is
    taken up to MAX_BODY_BYTES."""

    def __init__(self, net: Net) -> None:
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=net.tls_context, network_backend=CheckedBackend(net), keepalive_expiry=60.0
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        sent = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(
                scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        try:
            answer = await self._pool.handle_async_request(sent)
        except httpcore2.TimeoutException as error:
            raise httpx2.ReadTimeout(f"{url.host} did not answer in time") from error
        except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
            raise httpx2.ConnectError(str(error) or f"{url.host} could not be reached") from error
        headers = httpx2.Headers(answer.headers)
        if headers.get("content-encoding", "identity") != "identity":
            await answer.aclose()
            raise httpx2.ReadError("it sent something packed, which was not asked for")
        is_stream = headers.get("content-type", "").startswith("text/event-stream")
        most = None if is_stream else MAX_BODY_BYTES
        stream = BoundedBody(answer.stream, most)
        return httpx2.Response(answer.status, headers=headers, stream=stream)

    async def aclose(self) -> None:
        await self._pool.aclose()


class BoundedBody(httpx2.AsyncByteStream):
    def __init__(self, stream: Any, most: int | None) -> None:
        self._stream = stream
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for piece in self._stream:
                size += len(piece)
                if self._most is not None and size > self._most:
                    raise httpx2.ReadError(f"the answer is longer than {self._most >> 20} MB")
                yield piece
        except httpcore2.TimeoutException as error:
            raise httpx2.ReadTimeout("nothing came for too long") from error
        except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
            raise httpx2.ReadError(str(error) or "the connection was cut") from error

    async def aclose(self) -> None:
        await self._stream.aclose()


def make_http_client(
    net: Net, headers: Mapping[str, str], read_s: float, auth: httpx2.Auth | None = None
) -> httpx2.AsyncClient:
    """A client that sends these headers with each request. It follows no redirects, asks no proxies
    of the environment and keeps no cookies of others."""
    timeout = httpx2.Timeout(CONNECT_S, read=read_s)
    transport = CheckedTransport(net)
    plain = {"accept-encoding": "identity", **headers}  # a small body may unpack to a huge one
    return httpx2.AsyncClient(
        transport=transport, headers=plain, timeout=timeout, auth=auth, trust_env=False
    )
