"""A web site on loopback that does everything nasty, and a trap that nothing may ever reach."""

from __future__ import annotations

import errno
import gzip
import random
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from urllib.parse import unquote

import anyio
import msgspec
from anyio.abc import Listener, SocketAttribute, SocketStream, TaskGroup
from anyio.streams.buffered import BufferedByteReceiveStream

from ..net.client import Exchange, Net, NetLimits

PUBLIC = "127.0.0.2"
"""Plays the public address: all of 127.0.0.0/8 is this machine, and no test needs another."""
PRIVATE = "127.0.0.1"
BLOCK = 10 << 20

Answer = Callable[[SocketStream, str], Awaitable[None]]
"""(connection, query) -> writes the whole answer; the connection is closed afterwards."""


class SeenRequest(msgspec.Struct, frozen=True):
    """A request as it came, header names in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes = b""


class LocalSite:
    """Enter it to have it run at `host`:`port`. `pages` are its answers by path, the nasty ones
    from the start; others are set with `page`. Its visitors speak through `exchange`. `requests`
    are those that came, `connections` how many there were, `open` how many are open."""

    def __init__(
        self, address: str = PUBLIC, host: str = "site.test", exchange: Exchange | None = None
    ) -> None:
        self.address = address
        self.host = host
        self.port = 0
        self.exchange = exchange
        self.requests: list[SeenRequest] = []
        self.connections = self.open = 0
        self.pages: dict[str, Answer] = dict(NASTY)
        self._group: TaskGroup | None = None
        self._listener: Listener[SocketStream] | None = None

    async def __aenter__(self) -> LocalSite:
        listener = await anyio.create_tcp_listener(local_host=self.address, local_port=self.port)
        self.port = listener.extra(SocketAttribute.local_port)
        self._group = await anyio.create_task_group().__aenter__()
        self._group.start_soon(listener.serve, self._serve)
        self._listener = listener
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._group is not None:
                self._group.cancel_scope.cancel()
                await self._group.__aexit__(kind, error, trace)
        finally:
            if self._listener is not None:
                await self._listener.aclose()

    def url(self, path: str = "/") -> str:
        return f"http://{self.host}:{self.port}{path}"

    def page(
        self,
        path: str,
        body: str | bytes = b"",
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Answer with this at `path`; HTML, unless `headers` say something else."""
        data = body.encode() if isinstance(body, str) else body
        fields = {"Content-Type": "text/html; charset=utf-8"} | dict(headers or {})
        self.pages[path] = plain(data, status, fields)

    def net(
        self, names: Mapping[str, Sequence[str]] | None = None, limits: NetLimits | None = None
    ) -> Net:
        """A client for which this site is public, and which knows no names but its own and
        `names`."""
        known = {self.host: [self.address], **(names or {})}

        async def resolve(host: str, port: int) -> Sequence[str]:
            if host not in known:
                raise OSError(f"no such name: {host}")
            return known[host]

        return self.spoken_to(Net(limits, resolve=resolve, allow={(self.address, self.port)}))

    def spoken_to(self, net: Net) -> Net:
        """The client, speaking as this site's visitors do."""
        return net if self.exchange is None else net.with_exchange(self.exchange)

    async def _serve(self, stream: SocketStream) -> None:
        self.connections += 1
        self.open += 1
        try:
            async with stream:
                seen = await _request(stream)
                self.requests.append(seen)
                path, _, query = seen.target.partition("?")
                answer = self.pages.get(path) or plain(b"nothing here", 404)
                await answer(stream, unquote(query))
        except (
            anyio.BrokenResourceError,
            anyio.EndOfStream,
            anyio.ClosedResourceError,
            anyio.DelimiterNotFound,
        ):
            pass  # who reads it has had enough
        except anyio.IncompleteRead:
            pass
        finally:
            self.open -= 1


@asynccontextmanager
async def on_one_port(*sites: LocalSite) -> AsyncIterator[None]:
    """They run, each at its address, on one port that is free at all of them."""
    while True:
        async with AsyncExitStack() as stack:
            try:
                for site in sites:
                    site.port = 0 if site is sites[0] else sites[0].port
                    await stack.enter_async_context(site)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                continue  # somebody else on this machine has it at another address
            yield
            return


class Rebinding:
    """A resolver that answers like an attacker's: first the public address, then the private one,
    and so on."""

    def __init__(self, answers: Sequence[Sequence[str]] = ((PUBLIC,), (PRIVATE,))) -> None:
        self._answers = answers
        self.asked = 0

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked += 1
        return self._answers[(self.asked - 1) % len(self._answers)]


def plain(
    body: bytes,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    length: int | None = None,
) -> Answer:
    """An answer like any other; `length` is what it says of itself, where that is a lie."""

    async def answer(stream: SocketStream, query: str) -> None:
        await stream.send(
            _head(
                status,
                {"Content-Length": str(len(body) if length is None else length), **(headers or {})},
            )
        )
        await stream.send(body)

    return answer


def streamed(pieces: Callable[[], AsyncIterator[bytes]], headers: Mapping[str, str]) -> Answer:
    """An answer in chunks, as many as there are."""

    async def answer(stream: SocketStream, query: str) -> None:
        await stream.send(_head(200, {"Transfer-Encoding": "chunked", **headers}))
        async for piece in pieces():
            if not piece:
                continue  # it would be the end
            await stream.send(b"%x\r\n%b\r\n" % (len(piece), piece))
        await stream.send(b"0\r\n\r\n")

    return answer


def raw(data: bytes, *, then_wait: bool = False) -> Answer:
    """These bytes and the end; or these bytes, and then nothing for ever."""

    async def answer(stream: SocketStream, query: str) -> None:
        await stream.send(data)
        if then_wait:
            await stream.receive()  # nothing comes, until the other side hangs up

    return answer


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} Said\r\n{lines}Connection: close\r\n\r\n".encode(
        "utf-8", "surrogateescape"
    )


async def _request(stream: SocketStream) -> SeenRequest:
    buffered = BufferedByteReceiveStream(stream)
    head = (await buffered.receive_until(b"\r\n\r\n", 65536)).decode("latin-1").split("\r\n")
    method, target, _ = head[0].split(" ", 2)
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])
    }
    body = await buffered.receive_exactly(int(headers.get("content-length", "0")))
    return SeenRequest(method, target, headers, body)


async def _where(stream: SocketStream, query: str) -> None:
    """/to?ADDRESS leads to ADDRESS."""
    await stream.send(_head(302, {"Location": query, "Content-Length": "0"}))


async def _hop(stream: SocketStream, query: str) -> None:
    """/hop?3 leads to /hop?2, and so on; /hop?0 is a page."""
    left = int(query or 0)
    if not left:
        return await plain(b"<p>arrived</p>", headers={"Content-Type": "text/html"})(stream, query)
    await stream.send(_head(302, {"Location": f"/hop?{left - 1}", "Content-Length": "0"}))


async def _drip() -> AsyncIterator[bytes]:
    while True:
        yield b"."
        await anyio.sleep(0.01)


async def _endless() -> AsyncIterator[bytes]:
    while True:
        yield b"All work and no play makes Jack a dull boy.\n" * 1000


def _bomb(window: int, gigabytes: int = 10) -> Callable[[], AsyncIterator[bytes]]:
    """Zeros, packed a thousandfold. A block that ends with a full flush may be repeated as often as
    one likes."""

    async def pieces() -> AsyncIterator[bytes]:
        packer = zlib.compressobj(9, zlib.DEFLATED, window)
        first = packer.compress(bytes(BLOCK)) + packer.flush(zlib.Z_FULL_FLUSH)
        again = packer.compress(bytes(BLOCK)) + packer.flush(zlib.Z_FULL_FLUSH)
        yield first
        for _ in range(gigabytes * 100):
            yield again

    return pieces


async def _twice() -> AsyncIterator[bytes]:
    """A bomb in a bomb: what the outer layer gives is small, and the inner one is not."""
    inner = gzip.compress(bytes(20 * BLOCK))
    while True:
        yield gzip.compress(inner)


async def _members() -> AsyncIterator[bytes]:
    empty = gzip.compress(b"", mtime=0)
    while True:
        yield empty * 1000


async def _name() -> AsyncIterator[bytes]:
    """The header of a gzip file, with a name that never ends: nothing comes out, for ever."""
    yield b"\x1f\x8b\x08\x08\0\0\0\0\0\x03"
    while True:
        yield b"a" * 65536


async def _large() -> AsyncIterator[bytes]:
    """Far larger than it may be, and packed as an honest page is."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    for n in range(2000):
        yield packer.compress(
            "".join(f"{n} {i * n} words and words\n" for i in range(1000)).encode()
        )


HTML = {"Content-Type": "text/html; charset=utf-8"}
_NOISE = random.Random(7).randbytes(200_000)
_CUT = gzip.compress(b"<p>" + random.Random(8).randbytes(5000).hex().encode())[:-2000]

NASTY: dict[str, Answer] = {
    "/": plain(b"<title>Home</title><h1>Hello</h1><p>An ordinary page.</p>", headers=HTML),
    "/to": _where,
    "/hop": _hop,
    "/loop": raw(b"HTTP/1.1 302 Found\r\nLocation: /loop\r\nContent-Length: 0\r\n\r\n"),
    "/silent": raw(b"", then_wait=True),
    "/stalls": raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", then_wait=True),
    "/drip": streamed(_drip, HTML),
    "/endless": streamed(_endless, HTML),
    "/short": plain(b"less than it says", headers=HTML, length=1000),
    "/long": plain(b"more than it says", headers=HTML, length=4),
    "/vast": plain(b"", headers=HTML, length=10**12),
    "/negative": plain(b"x", headers=HTML, length=-5),
    "/bomb": streamed(_bomb(16 + zlib.MAX_WBITS), HTML | {"Content-Encoding": "gzip"}),
    "/bomb-deflate": streamed(_bomb(zlib.MAX_WBITS), HTML | {"Content-Encoding": "deflate"}),
    "/bomb-raw": streamed(_bomb(-zlib.MAX_WBITS), HTML | {"Content-Encoding": "deflate"}),
    "/bomb-twice": streamed(_twice, HTML | {"Content-Encoding": "gzip, gzip"}),
    "/bomb-members": streamed(_members, HTML | {"Content-Encoding": "gzip"}),
    "/bomb-header": streamed(_name, HTML | {"Content-Encoding": "gzip"}),
    "/large-gzip": streamed(_large, HTML | {"Content-Encoding": "gzip"}),
    "/layers": plain(b"x", headers=HTML | {"Content-Encoding": ", ".join(["gzip"] * 50)}),
    "/brotli": plain(b"\x0b\x02\x80x\x03", headers=HTML | {"Content-Encoding": "br"}),
    "/cut-gzip": plain(_CUT, headers=HTML | {"Content-Encoding": "gzip"}),
    "/no-gzip": plain(b"<p>not packed at all</p>", headers=HTML | {"Content-Encoding": "gzip"}),
    "/charset": plain("<p>für</p>".encode("latin-1"), headers=HTML),
    "/binary": plain(_NOISE, headers=HTML),
    "/links": plain(b"<a href>" * 1_000_000, headers=HTML),
    "/deep": plain(b"<div>" * 200_000, headers=HTML),
    "/headers": raw(
        b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(100_000)) + b"\r\n"
    ),
    "/header": raw(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 20_000_000 + b"\r\n\r\n"),
    "/continue": raw(b"HTTP/1.1 100 Continue\r\n\r\n" * 50_000, then_wait=True),
    "/no-http": raw(b"220 mail.test ESMTP\r\n"),
    "/hangs-up": raw(b""),
    "/busy": plain(b"later", 429, {"Retry-After": "120"}),
    "/busy-forever": plain(b"later", 503, {"Retry-After": "99999999999999999999"}),
    "/gone": plain(b"nothing", 404),
    "/forbidden": plain(b"no", 403),
    "/robots.txt": plain(b"User-agent: *\nDisallow: /\n", headers={"Content-Type": "text/plain"}),
    "/cookies": raw(
        b"HTTP/1.1 302 Found\r\nSet-Cookie: a=b\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"
    ),
}
