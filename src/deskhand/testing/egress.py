"""Servers of a small web on loopback, and a way to the proxy as a command has it."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import anyio
from anyio.abc import ByteStream, SocketStream
from anyio.streams.tls import TLSStream

from ..config.clock import SystemClock
from ..net.client import Net
from ..net.egress import EgressHost, find_target_problem, parse_egress_host
from ..net.egress_ca import Authority
from ..net.egress_door import Slots, open_egress_socket
from ..net.egress_proxy import EgressPolicy, Use
from ..net.egress_secrets import HeldSecret, SecretBroker

Answer = Callable[[bytes], bytes]


def echo(request: bytes) -> bytes:
    """What came, as it came."""
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nX-Path: %s\r\n\r\n%s" % (
        len(request),
        request.split(b" ")[1],
        request,
    )


class EchoServer:
    """Reads a whole request, remembers it, answers, hangs up; with `keep` it goes on to the next
    one. It keeps a connection open for `linger_s` after the other side has ended it."""

    def __init__(self, answer: Answer = echo, *, keep: bool = False, linger_s: float = 0.0) -> None:
        self.answer = answer
        self.keep = keep
        self.linger_s = linger_s
        self.requests: list[bytes] = []
        self.accepted = 0
        self.port = 0

    async def serve(
        self, tls: ssl.SSLContext | None, task_status: anyio.abc.TaskStatus[None]
    ) -> None:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        self.port = listener.extra(anyio.abc.SocketAttribute.local_port)
        task_status.started()

        async def one(stream: ByteStream) -> None:
            self.accepted += 1
            async with stream:
                try:
                    if tls is not None:
                        stream = await TLSStream.wrap(
                            stream, server_side=True, ssl_context=tls, standard_compatible=False
                        )
                    while True:
                        self.requests.append(await _request(stream))
                        await stream.send(self.answer(self.requests[-1]))
                        if not self.keep:
                            break
                    with anyio.move_on_after(0.2):
                        await stream.receive()
                except (OSError, anyio.EndOfStream, anyio.BrokenResourceError):
                    await anyio.sleep(self.linger_s)

        async with listener:
            await listener.serve(one)


async def _request(stream: ByteStream) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += await stream.receive()
    head, _, body = data.partition(b"\r\n\r\n")
    lower = head.lower()
    if b"transfer-encoding: chunked" in lower:
        while not body.endswith(b"0\r\n\r\n"):
            body += await stream.receive()
    elif b"content-length: " in lower:
        size = int(lower.partition(b"content-length: ")[2].split(b"\r\n")[0])
        while len(body) < size:
            body += await stream.receive()
    return head + b"\r\n\r\n" + body


class Lab:
    """The proxy and its policy: `entries` are the hosts allowed, `web` says at which port of
    loopback a name is."""

    def __init__(self) -> None:
        now = SystemClock().now()
        self.authority, self.inner = Authority(now), Authority(now)
        self.entries: list[EgressHost] = []
        self.secrets: list[HeldSecret] = []
        self.web: dict[tuple[str, int], int] = {}
        self.uses: list[Use] = []
        self.dialled: list[tuple[str, int]] = []
        self.public = False
        self.posing = True
        self.trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.trust.load_verify_locations(cadata=self.authority.pem)
        self.relay = 0
        self.path = ""

    def allow(self, *hosts: str) -> None:
        self.entries += [parse_egress_host(each) for each in hosts]

    async def find_refusal(self, host: str, port: int) -> str:
        return find_target_problem(host, port, public=self.public, entries=self.entries)

    async def get_label(self) -> object:
        return None

    async def connect(self, host: str, port: int) -> ByteStream:
        async def resolve(host: str, port: int) -> Sequence[str]:
            return ["127.0.0.1"]

        self.dialled.append((host, port))
        inside = self.web.get((host, port))
        net = Net(resolve=resolve, allow=[(host, inside)] if inside else [])
        return await net.connect(host, inside or port)

    def secrets_for(self, host: str, port: int) -> SecretBroker | None:
        mine = [
            each
            for each in self.secrets
            if any((rule.host, rule.port) == (host, port) for rule in each.rules)
        ]
        return SecretBroker(host, mine, self.secrets) if mine else None

    def client_context(self) -> ssl.SSLContext:
        return self.trust

    def server_context(self, host: str) -> ssl.SSLContext | None:
        return self.inner.server_context(host) if self.posing else None

    def record_use(self, use: Use) -> None:
        self.uses.append(use)

    async def connected(self) -> SocketStream:
        """A connection to the relay, as a command makes it."""
        return await Net(allow=[("127.0.0.1", self.relay)]).connect("127.0.0.1", self.relay)

    async def say(self, data: bytes, *, then: bytes = b"", pieces: int = 0) -> bytes:
        """All that the proxy answers to these bytes."""
        async with await self.connected() as stream:
            try:
                for at in range(0, len(data), pieces or len(data)):
                    await stream.send(data[at : at + (pieces or len(data))])
                if then:
                    await stream.receive()
                    await stream.send(then)
                said = b""
                with anyio.fail_after(10):
                    while True:
                        said += await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return said

    @asynccontextmanager
    async def tunnel(
        self, authority: str, name: str | None = None, *, inner: bool = False
    ) -> AsyncIterator[ByteStream]:
        """TLS through the proxy, for `name`; `inner`: what answers is the proxy itself."""
        async with await self.connected() as stream:
            await stream.send(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
            said = await stream.receive()
            if not said.startswith(b"HTTP/1.1 200"):
                raise ConnectionRefusedError(said.decode())
            trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            trust.load_verify_locations(cadata=(self.inner if inner else self.authority).pem)
            name = authority.rpartition(":")[0] if name is None else name
            yield await TLSStream.wrap(
                stream, hostname=name, ssl_context=trust, standard_compatible=False
            )


async def everything(stream: ByteStream, request: bytes) -> bytes:
    """The whole answer to one request."""
    await stream.send(request)
    said = b""
    try:
        while True:
            said += await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return said


@asynccontextmanager
async def lab(*servers: tuple[str, int, EchoServer]) -> AsyncIterator[Lab]:
    """A lab with these servers at (host, port): those on 443 and above 8000 speak TLS."""
    made = Lab()
    async with AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(anyio.create_task_group())
        for host, port, server in servers:
            tls = made.authority.server_context(host) if port == 443 else None
            if not server.port:
                await tasks.start(server.serve, tls)
            made.web[host, port] = server.port
        made.path = await stack.enter_async_context(open_egress_socket(made, Slots()))
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        connection = stack.enter_context(socket.socket(socket.AF_UNIX))
        connection.connect(made.path)
        socket.send_fds(connection, [b"L"], [listener.fileno()])
        made.relay = listener.getsockname()[1]
        listener.close()
        yield made
        tasks.cancel_scope.cancel()


_: type[EgressPolicy] = Lab
