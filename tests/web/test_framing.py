"""Whatever two readers of HTTP could read in two ways is refused, by our server and by the proxy of
commands.

`llhttp.json` has the requests with which the parser of Node.js is tested, and how it reads each:
see scripts/llhttp_cases.py (https://github.com/nodejs/llhttp at 01e105a, MIT).
"""

from __future__ import annotations

import re
from pathlib import Path

import anyio
import h11
import msgspec
import pytest

from deskhand.net.framing import CHUNK_LINE_BYTES, make_strict
from deskhand.testing.egress import EchoServer, lab

from .served import Served


class Case(msgspec.Struct):
    """`messages`: so many heads llhttp read before its error or the end; `whole`: so many with
    their body."""

    name: str
    sent: str
    error: bool
    messages: int
    whole: int


METHODS = ("MKCOLA ", "ANNOUNCE ", "PRI ")
"""Which llhttp does not know: that is no matter of framing."""
CASES = [
    case
    for case in msgspec.json.decode(
        (Path(__file__).parent / "llhttp.json").read_bytes(), type=list[Case]
    )
    if not case.sent.startswith(METHODS)
]
STATUS = re.compile(rb"HTTP/1\.1 (\d\d\d) ")


def addressed(case: Case, host: str, to: str = "") -> bytes:
    """The request as somebody sends it to `host`; `to` is put before each of its paths."""
    data = re.sub(rb"(?im)^host:[^\r\n]*\r\n", b"", case.sent.encode("latin-1", "replace"))
    data = re.sub(rb"(?m)( HTTP/1\.[01]\r\n)", rb"\1Host: " + host.encode() + rb"\r\n", data)
    return re.sub(rb"(?m)^([A-Z]+ )/", rb"\1" + to.encode() + b"/", data)


async def told(url: str, data: bytes, *, end: bool = True) -> bytes:
    """What our server answers until it hangs up; `end`: we have said all that we want to."""
    host, _, port = url.removeprefix("http://").partition(":")
    said = b""
    async with await anyio.connect_tcp(host, int(port)) as stream:
        try:
            await stream.send(data)
            if end:
                await stream.send_eof()
            with anyio.fail_after(20):
                while True:
                    said += await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return said


def agrees(case: Case, handled: int, *, refused: bool) -> bool:
    """Whether nothing was taken for a request that was none for llhttp, and nothing passed over
    without a word."""
    return handled <= case.messages and (refused or case.error or handled >= case.whole)


def goes_on(case: Case) -> bool:
    """Whether another request may follow it on the same connection."""
    closes = re.search(r"(?i)^connection: *close| HTTP/1\.0\r\n", case.sent, re.MULTILINE)
    return not case.error and case.messages == case.whole and closes is None


async def test_our_server_reads_what_llhttp_reads_or_refuses(served: Served) -> None:
    plain = 0
    wrong = list[str]()
    here = served.url.removeprefix("http://")
    for case in CASES:
        last = (
            f"GET /health HTTP/1.1\r\nHost: {here}\r\nConnection: close\r\n\r\n".encode()
            if goes_on(case)
            else b""
        )
        said = await told(served.url, addressed(case, here) + last, end=not last)
        refused = b"not a valid HTTP/1.1 request" in said
        handled = len(STATUS.findall(said)) - refused - (bool(last) and not refused)
        plain += handled == case.whole and not refused and not case.error
        if not agrees(case, handled, refused=refused):
            wrong.append(f"{case.name}: {handled} instead of {case.messages}")
    assert wrong == []
    assert plain > 40, "what is plain is answered"


async def carried(case: Case) -> tuple[int, bool]:
    """How many requests the proxy carried on, and whether it refused one."""
    server = EchoServer()
    said = b""
    async with lab(("allowed.test", 80, server)) as here:
        here.allow("allowed.test")
        async with await here.connected() as stream:
            try:
                await stream.send(addressed(case, "allowed.test", "http://allowed.test"))
                await stream.send_eof()
                with anyio.fail_after(20):
                    while True:
                        said += await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return len(server.requests), b"X-Deskhand: refused" in said


async def test_the_proxy_reads_what_llhttp_reads_or_refuses() -> None:
    plain, wrong = list[str](), list[str]()

    async def put(case: Case) -> None:
        handled, refused = await carried(case)
        if handled == case.whole and not refused and not case.error:
            plain.append(case.name)
        if not agrees(case, handled, refused=refused):
            wrong.append(f"{case.name}: {handled} instead of {case.messages}")

    for start in range(0, len(CASES), 20):
        async with anyio.create_task_group() as tasks:
            for case in CASES[start : start + 20]:
                tasks.start_soon(put, case)
    assert wrong == []
    assert len(plain) > 30, "what is plain is carried"


GET = b"GET /health HTTP/1.1\r\nHost: HERE\r\n"
POST = b"POST /health HTTP/1.1\r\nHost: HERE\r\n"
TWO_WAYS = {
    "two hosts": GET + b"Host: HERE\r\n\r\n",
    "two lengths": POST + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\nx",
    "two lengths in one": POST + b"Content-Length: 1, 1\r\n\r\nx",
    "a length with a sign": POST + b"Content-Length: +1\r\n\r\nx",
    "a length in hex": POST + b"Content-Length: 0x1\r\n\r\nx",
    "a length and chunks": POST
    + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks twice": POST
    + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks in 1.0": b"POST /health HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a signature twice": POST + b"webhook-signature: v1,a\r\nWebhook-Signature: v1,b\r\n\r\n",
    "another signature twice": POST + b"X-Any-Signature: a\r\nX-Any-Signature: b\r\n\r\n",
    "two tokens": GET + b"Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n",
    "two cookies": GET + b"Cookie: deskhand=a\r\nCookie: deskhand=b\r\n\r\n",
    "a header that goes on": GET + b"X-A: b\r\n c: d\r\n\r\n",
    "a line that ends in LF": GET + b"X-A: b\n\r\n",
    "a head that ends in LF": GET + b"\n",
    "a CR in a line": GET + b"X-A: b\rX-B: c\r\n\r\n",
    "an empty line before it": b"\r\n" + GET + b"\r\n",
    "an address": GET.replace(b"/health", b"http://evil.test/health") + b"\r\n",
    "the address of a host": b"CONNECT evil.test:443 HTTP/1.1\r\nHost: HERE\r\n\r\n",
    "another version": b"GET /health HTTP/1.2\r\nHost: HERE\r\nHost: HERE\r\n\r\n",
    "a space before the colon": GET + b"Content-Length : 1\r\n\r\nx",
    "a name with a NUL": GET + b"X\0A: 1\r\n\r\n",
}


@pytest.mark.parametrize("what", TWO_WAYS)
async def test_what_reads_in_two_ways_is_refused(served: Served, what: str) -> None:
    data = TWO_WAYS[what].replace(b"HERE", served.url.removeprefix("http://").encode())
    said = await told(served.url, data + b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
    assert STATUS.findall(said) == [b"400"], said


CHUNKED = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "body",
    [
        b"1;" + b"a" * CHUNK_LINE_BYTES + b"\r\nx\r\n0\r\n\r\n",
        b"1;" + b"a" * CHUNK_LINE_BYTES,
        b"1;a\nx\r\nx\r\n0\r\n\r\n",
        b"1\nx\r\n0\r\n\r\n",
        b"1\r\nx\n0\r\n\r\n",
        b"-1\r\nx\r\n0\r\n\r\n",
        b"0x1\r\nx\r\n0\r\n\r\n",
        b"1\r\nx\r\n0\r\nX-A: b\n\r\n",
    ],
)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_chunks_that_read_in_two_ways_are_refused(body: bytes, size: int) -> None:
    connection = make_strict(h11.Connection(h11.SERVER))
    data = CHUNKED + body
    with pytest.raises(h11.RemoteProtocolError):
        for at in range(0, len(data), size):
            connection.receive_data(data[at : at + size])
            while connection.next_event() is not h11.NEED_DATA:
                pass
        raise AssertionError("it was read")


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_what_is_plain_is_read_however_it_is_cut(size: int) -> None:
    connection = make_strict(h11.Connection(h11.SERVER), own=True)
    data = (
        b"POST /a HTTP/1.1\r\nHost: x\r\nAccept: a\r\nAccept: b\r\nTransfer-Encoding: "
        b"chunked\r\n\r\n"
    )
    data += b"3;a=b\r\nabc\r\n0\r\nX-Trailer: http://y z\r\n\r\n"
    events = list[h11.Event]()
    for at in range(0, len(data), size):
        connection.receive_data(data[at : at + size])
        while isinstance(event := connection.next_event(), h11.Event):
            events.append(event)
    assert b"".join(event.data for event in events if isinstance(event, h11.Data)) == b"abc"
    assert isinstance(events[0], h11.Request) and isinstance(events[-1], h11.EndOfMessage)
