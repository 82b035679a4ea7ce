"""The proxy between a sandboxed command and the network: plain requests and tunnels to allowed
hosts."""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import Protocol

import anyio
import h11
import msgspec
from anyio.abc import ByteStream
from anyio.streams.tls import TLSStream

from ..types.errors import AddressRefused, NetError
from .egress import HELLO_BYTES, is_ip_address, parse_authority, parse_server_name
from .egress_http import (
    CONNECTION_ERRORS,
    HEAD_S,
    KEEP_ALIVE_S,
    PIECE_BYTES,
    ByteCounts,
    Malformed,
    Peer,
    read_request,
    relay_exchange,
    send_refusal,
    strip_hop_headers,
)
from .egress_secrets import SecretBroker, Withheld, reject_handles
from .url import Url, parse_host, parse_url

TUNNEL_IDLE_S = 300.0
_TLS_PORT = 443


class Use(msgspec.Struct, frozen=True):
    """What one request or tunnel came to. `refused` is why it was not let through; `up` and `down`
    are bytes."""

    host: str
    port: int
    refused: str = ""
    up: int = 0
    down: int = 0


class EgressPolicy(Protocol):
    """What the proxy asks about the connections of one command."""

    async def find_refusal(self, host: str, port: int) -> str:
        """Why this host may not be reached, as a sentence; '' if it may."""
        ...

    async def get_label(self) -> object:
        """What the command has read until now. When it changes, the proxy calls `find_refusal`
        again before it sends more."""
        ...

    async def connect(self, host: str, port: int) -> ByteStream:
        """A connection to this host. Raises NetError."""
        ...

    def secrets_for(self, host: str, port: int) -> SecretBroker | None:
        """What puts secrets into requests to this host, or None if there are none for it."""
        ...

    def client_context(self) -> ssl.SSLContext:
        """How the certificates of servers are verified."""
        ...

    def server_context(self, host: str) -> ssl.SSLContext | None:
        """The certificate with which the proxy answers the command as this host, or None if it
        cannot."""
        ...

    def record_use(self, use: Use) -> None:
        """Called once for each request and tunnel, when it has ended or was refused."""
        ...


class Unreachable(Exception):
    """The request ends here with this status and sentence."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class NotAnyMore(ConnectionError):
    """The host was allowed, and is not since the command has read something else."""


class ProxyRequest(ByteStream):
    """A connection to a host that asks again before it sends, when the command has read something
    since."""

    def __init__(
        self, stream: ByteStream, policy: EgressPolicy, to: tuple[str, int], read: object
    ) -> None:
        self._stream = stream
        self._policy = policy
        self._to = to
        self._read = read

    async def send(self, item: bytes) -> None:
        read = await self._policy.get_label()
        if read != self._read:
            if refused := await self._policy.find_refusal(*self._to):
                raise NotAnyMore(refused)
            self._read = read
        await self._stream.send(item)

    async def receive(self, max_bytes: int = PIECE_BYTES) -> bytes:
        return await self._stream.receive(max_bytes)

    async def send_eof(self) -> None:
        await self._stream.send_eof()

    async def aclose(self) -> None:
        await self._stream.aclose()


async def serve_connection(stream: ByteStream, policy: EgressPolicy) -> None:
    """Everything that comes over one connection of a command."""
    try:
        await _serve_requests(Peer.client(stream), policy, "")
    finally:
        await anyio.aclose_forcefully(stream)


async def _serve_requests(client: Peer, policy: EgressPolicy, within: str) -> None:
    """Requests one after the other. `within`: the origin whose TLS ends here; '': any, over plain
    HTTP."""
    patience_s = HEAD_S
    try:
        while (request := await read_request(client, patience_s)) is not None:
            patience_s = KEEP_ALIVE_S
            try:
                await _handle_request(client, request, policy, within)
            except Unreachable as error:
                await send_refusal(client, error.status, f"Deskhand: {error.text}")
                return
            if client.http.our_state is not h11.DONE or client.http.their_state is not h11.DONE:
                return
            client.http.start_next_cycle()
    except Malformed as error:
        await send_refusal(client, 400, f"Deskhand: {error}.")
    except CONNECTION_ERRORS:
        return  # whoever is on the other side of it notices by itself


async def _handle_request(
    client: Peer, request: h11.Request, policy: EgressPolicy, within: str
) -> None:
    if request.method == b"CONNECT":
        if within:
            raise Unreachable(400, "a tunnel inside a tunnel is not supported.")
        await _serve_tunnel(client, request, policy)
        return
    if within:
        url = _parse_target_within(request, within)
        read = await _require_permission(policy, url.host, url.port)
    else:
        url = _parse_absolute_target(request)
        read = await _require_permission(policy, url.host, url.port)
        url = _secure_url(url, policy)
    await _forward_request(client, request, policy, url, read)


def _secure_url(url: Url, policy: EgressPolicy) -> Url:
    """The same address over TLS, where there are secrets for its host: they are sent in no other
    way."""
    port = _TLS_PORT if url.port == 80 else url.port
    if policy.secrets_for(url.host, port) is None:
        return url
    return msgspec.structs.replace(url, scheme="https", port=port)


async def _forward_request(
    client: Peer, request: h11.Request, policy: EgressPolicy, url: Url, read: object
) -> None:
    """Send the request to where `url` says, and the answer back. `read` is what was read when it
    was let through."""
    sent = ByteCounts()
    refused = ""
    secure = url.scheme == "https"
    broker = policy.secrets_for(url.host, url.port) if secure else None
    scrub = broker.make_scrubber if broker else None
    try:
        onward = _make_onward_request(request, url, broker)
        stream = await _connect(policy, url.host, url.port, secure=secure)
        try:
            upstream = Peer.upstream(ProxyRequest(stream, policy, (url.host, url.port), read))
            await relay_exchange(client, upstream, onward, sent, scrub)
        finally:
            await anyio.aclose_forcefully(stream)
    except Unreachable as error:
        refused = error.text
        raise
    except (Withheld, Malformed, NotAnyMore) as error:
        refused = str(error)
        status = 502 if isinstance(error, Malformed) else 403
        raise Unreachable(status, f"{error}.") from error
    except CONNECTION_ERRORS as error:
        raise Unreachable(
            502, f"{url.host} closed the connection, or did not answer with valid HTTP."
        ) from error
    finally:
        policy.record_use(Use(url.host, url.port, refused.rstrip("."), sent.up, sent.down))


def _parse_absolute_target(request: h11.Request) -> Url:
    target = request.target.decode("ascii", "replace")
    try:
        if target[:7].lower() != "http://":
            raise Unreachable(
                400, "this is a proxy: it accepts http://HOST/… and CONNECT HOST:443."
            )
        url = parse_url(target)
        _check_host_header(request, url.host)
    except AddressRefused as error:
        raise Unreachable(400, str(error)) from error
    return url


def _check_host_header(request: h11.Request, host: str) -> None:
    """Its `Host` says the same as its target: who reads only the one must not be led elsewhere.
    Raises AddressRefused, Unreachable."""
    for name, value in request.headers:
        if name != b"host":
            continue
        named = parse_url(f"http://{value.decode('ascii', 'replace')}/")
        if named.host != host:
            raise Unreachable(
                400, f"the request is for {host}, but its Host header names another host."
            )


def _parse_target_within(request: h11.Request, origin: str) -> Url:
    """The address of a request in a connection to `origin`, whose `Host` must be the same."""
    target = request.target.decode("ascii", "replace")
    try:
        url = parse_url(origin + target) if target.startswith("/") else parse_url(target)
        hosts = (value for name, value in request.headers if name == b"host")
        named = parse_url(f"https://{next(hosts).decode('ascii', 'replace')}/")
    except (AddressRefused, StopIteration) as error:
        raise Unreachable(400, "the host of the request is ambiguous.") from error
    if url.origin != origin or named.origin != origin:
        raise Unreachable(421, f"this connection leads only to {origin}.")
    return url


async def _require_permission(policy: EgressPolicy, host: str, port: int) -> object:
    """Let it through; returns what the command had read by then. Raises Unreachable."""
    read = await policy.get_label()
    if refused := await policy.find_refusal(host, port):
        policy.record_use(Use(host, port, refused))
        raise Unreachable(403, refused)
    return read


def _make_onward_request(
    request: h11.Request, url: Url, broker: SecretBroker | None
) -> h11.Request:
    """The request as the server gets it. Raises Withheld."""
    headers = strip_hop_headers(request.headers.raw_items())
    headers = [pair for pair in headers if pair[0].lower() != b"host"]
    if any(name == b"transfer-encoding" for name, _ in request.headers):
        headers.append((b"Transfer-Encoding", b"chunked"))
    if broker is None:
        reject_handles(headers, url.host)
    else:
        # Compressed, or asked for in pieces, a secret that comes back would not be seen.
        unseen = (b"accept-encoding", b"range", b"if-range")
        headers = [pair for pair in headers if pair[0].lower() not in unseen]
        headers = broker.inject_headers(request.method.decode(), url.target, headers)
        headers.append((b"Accept-Encoding", b"identity"))
    headers = [(b"Host", url.authority.encode()), *headers, (b"Connection", b"close")]
    return h11.Request(method=request.method, target=url.target.encode(), headers=headers)


async def _connect(policy: EgressPolicy, host: str, port: int, *, secure: bool) -> ByteStream:
    try:
        stream = await policy.connect(host, port)
    except NetError as error:
        status = 403 if isinstance(error, AddressRefused) else 502
        raise Unreachable(status, str(error)) from error
    if not secure:
        return stream
    try:
        with anyio.fail_after(HEAD_S):
            return await TLSStream.wrap(
                stream,
                server_side=False,
                hostname=host,
                ssl_context=policy.client_context(),
                standard_compatible=False,
            )
    except CONNECTION_ERRORS as error:
        await anyio.aclose_forcefully(stream)
        raise Unreachable(
            502, f"{host} could not be reached over TLS: {_describe_tls_error(error)}."
        ) from error


def _describe_tls_error(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return "its certificate is not valid, so its identity cannot be verified"
    return "no encrypted connection could be established"


async def _serve_tunnel(client: Peer, request: h11.Request, policy: EgressPolicy) -> None:
    try:
        host, port = parse_authority(request.target.decode("ascii", "replace"))
        _check_host_header(request, host)
    except AddressRefused as error:
        raise Unreachable(400, str(error)) from error
    if not isinstance(await client.next_event(), h11.EndOfMessage):
        raise Unreachable(400, "a request for a tunnel must not have a body.")
    read = await _require_permission(policy, host, port)
    if policy.secrets_for(host, port) is not None:
        await _terminate_tls(client, host, port, policy)
        return
    await _open_tunnel(client, policy, host, port, read)


async def _open_tunnel(
    client: Peer, policy: EgressPolicy, host: str, port: int, read: object
) -> None:
    """Connect the command to the host. `read` is what was read when it was let through."""
    try:
        upstream = await _connect(policy, host, port, secure=False)
    except Unreachable as error:
        policy.record_use(Use(host, port, error.text.rstrip(".")))
        raise
    sent = ByteCounts()
    refused = ""
    try:
        await client.send(h11.Response(status_code=200, headers=[], reason=b"Connected"))
        first, _ = client.http.trailing_data
        onward = ProxyRequest(upstream, policy, (host, port), read)
        refused = await _relay_bytes(client.stream, onward, bytes(first), (host, port), sent)
    finally:  # told first: where the command is over, nothing can be waited for any more
        policy.record_use(Use(host, port, refused, sent.up, sent.down))
        await anyio.aclose_forcefully(upstream)


async def _terminate_tls(client: Peer, host: str, port: int, policy: EgressPolicy) -> None:
    """Speak to the command as `host`, so that what it asks can be given its secrets."""
    certificate = policy.server_context(host)
    if certificate is None:
        why = (
            "to add a secret to https requests, Deskhand needs its extra `secrets` (pip install "
            f"'deskhand[secrets]'); until then, use http://{host}/…, which is sent as https"
        )
        policy.record_use(Use(host, port, why))
        raise Unreachable(403, f"{why}.")
    await client.send(h11.Response(status_code=200, headers=[], reason=b"Connected"))
    if client.http.trailing_data[0]:
        return  # it greets before it was let through: nobody does
    try:
        with anyio.fail_after(HEAD_S):
            stream = await TLSStream.wrap(
                client.stream, server_side=True, ssl_context=certificate, standard_compatible=False
            )
    except CONNECTION_ERRORS as error:
        why = (
            "the command did not trust the certificate of the proxy: its program uses its own "
            "list of certificates"
        )
        if isinstance(error, ssl.SSLError):
            why = f"{why} ({_describe_tls_error(error)})"
        policy.record_use(Use(host, port, why))
        return
    origin = f"https://{host}"
    if port != _TLS_PORT:
        origin = f"{origin}:{port}"
    await _serve_requests(Peer.client(stream), policy, origin)


async def _relay_bytes(
    client: ByteStream, upstream: ByteStream, first: bytes, to: tuple[str, int], sent: ByteCounts
) -> str:
    """Carry bytes both ways, until one side has ended and the other falls silent. Why nothing was
    carried; '' if it was."""
    refused: list[str] = []

    async def send_up() -> None:
        try:
            data, why = await _read_client_hello(client, first, to)
            if why:
                refused.append(why)
                tasks.cancel_scope.cancel()
                return
            while data:
                await upstream.send(data)
                sent.up += len(data)
                reset_idle()
                data = await client.receive(PIECE_BYTES)
        except anyio.EndOfStream:
            await _send_eof(upstream)
        except CONNECTION_ERRORS as error:
            if isinstance(error, NotAnyMore):
                refused.append(str(error))
            tasks.cancel_scope.cancel()

    async def send_down() -> None:
        try:
            while True:
                data = await upstream.receive(PIECE_BYTES)
                await client.send(data)
                sent.down += len(data)
                reset_idle()
        except anyio.EndOfStream:
            await _send_eof(client)
        except CONNECTION_ERRORS:
            tasks.cancel_scope.cancel()

    def reset_idle() -> None:
        idle.deadline = anyio.current_time() + TUNNEL_IDLE_S

    with anyio.move_on_after(TUNNEL_IDLE_S) as idle:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send_up)
            tasks.start_soon(send_down)
    return refused[0] if refused else ""


async def _send_eof(stream: ByteStream) -> None:
    with suppress(*CONNECTION_ERRORS):
        await stream.send_eof()


async def _read_client_hello(
    client: ByteStream, first: bytes, to: tuple[str, int]
) -> tuple[bytes, str]:
    """The first bytes of the client, and why they are not let through: TLS must name the host that
    was allowed, as the same address may serve others; and on the port of the web nothing but TLS is
    spoken."""
    host, port = to
    data = first
    with anyio.move_on_after(HEAD_S if port == _TLS_PORT else None):
        while True:
            try:
                name = parse_server_name(data) if data else None
            except ValueError as error:
                if port != _TLS_PORT and data[:1] != b"\x16":
                    return data, ""
                return b"", f"the data for {host} is not TLS with this host name: {error}"
            if name is None:
                data += await client.receive(HELLO_BYTES)
                continue
            if _is_same_host(name, host):
                return data, ""
            named = repr(name or "no name")
            return data, f"the TLS connection to {host} names {named} instead"
    return b"", f"nothing was sent to {host} in {HEAD_S:.0f} s"


def _is_same_host(name: str, host: str) -> bool:
    if is_ip_address(host):
        return not name  # RFC 6066: an address is no name
    try:
        return parse_host(name) == host
    except AddressRefused:
        return False
