"""A fake language model behind HTTP, for tests and benchmarks: `python -m deskhand.testing.llm
--port 0` prints its port.

It answers POST …/chat/completions, …/responses and …/messages. What it does is decided by a script
of `Behaviour`s: the first that fits and is not used up. Without a script it follows the last user
text: `TOOLS:n` asks for n tool calls, one after the other, `CHUNKS:k` cuts the answer in k pieces,
`FAULT:name` plays a named fault. POST /script takes a JSON list of behaviours and forgets what was,
GET /requests gives what was asked, GET /stats how many streams are open and aborted.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from email.utils import formatdate
from typing import Any

import msgspec

from . import llm_wire
from .llm_script import NAMED, NOW, Behaviour, FakeCall, resolve

_json = msgspec.json.Encoder().encode
_DIRECTIVE = re.compile(r"\b(TOOLS|CHUNKS|FAULT):(\w+)")
_WIRES = {"/chat/completions": "openai", "/messages": "anthropic", "/responses": "responses"}
_TEXTS = ("text", "input_text")
_FOREVER_S = 3600.0
_END = b"0\r\n\r\n"
_NOW = NOW.encode()
_STREAM = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)


class Asked(msgspec.Struct, frozen=True):
    """A request as it came in; header names are in lower case."""

    path: str
    headers: dict[str, str]
    body: msgspec.Raw

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class _Rule(msgspec.Struct):
    behaviour: Behaviour
    used: int = 0


class FakeLLM:
    """The server. Enter it to listen on loopback; `url` is the base URL of all wires."""

    def __init__(self, port: int = 0) -> None:
        self.port = port
        self.requests: list[Asked] = []
        self.open = 0
        self.aborted = 0
        self.connections = 0
        self._rules: list[_Rule] = []
        self._number = 0
        self._server: asyncio.Server | None = None
        self._alive: set[_Connection] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def __aenter__(self) -> FakeLLM:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Connection(self), "127.0.0.1", self.port, backlog=1024
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for connection in list(self._alive):
            connection.abort()
        await asyncio.sleep(0)

    def script(self, *behaviours: Behaviour) -> None:
        """Do this from now on, and forget what was asked before."""
        for behaviour in behaviours:
            resolve(behaviour)
        self._rules = [_Rule(behaviour) for behaviour in behaviours]
        self.requests.clear()
        self.aborted = 0

    def decide(self, asked: Any) -> Behaviour:
        """What to do for this body."""
        text, results = _last_user(asked.get("messages") or asked.get("input") or [])
        for rule in self._rules:
            wanted = rule.behaviour
            fits = wanted.match in text and wanted.model in ("", asked.get("model"))
            if fits and not (wanted.times and rule.used >= wanted.times):
                rule.used += 1
                return resolve(wanted)
        told = dict(_DIRECTIVE.findall(text))
        if told.get("FAULT") in NAMED:
            return NAMED[told["FAULT"]]
        calls = (
            (FakeCall("list_dir", '{"path": "."}'),) if results < int(told.get("TOOLS", 0)) else ()
        )
        return Behaviour(calls=calls, chunks=int(told.get("CHUNKS", 8)))

    def answer(
        self, path: str, headers: dict[str, str], body: bytes
    ) -> Iterable[tuple[float, bytes | None]]:
        """(seconds to wait, bytes to send) in turn; None breaks the connection off."""
        if path == "/script":
            self.script(*msgspec.json.decode(body, type=list[Behaviour]))
            return [(0, _plain(200, b"{}"))]
        if path == "/requests":
            return [(0, _plain(200, _json(self.requests)))]
        if path == "/stats":
            return [
                (
                    0,
                    _plain(
                        200,
                        _json(
                            {
                                "open": self.open,
                                "aborted": self.aborted,
                                "asked": len(self.requests),
                            }
                        ),
                    ),
                )
            ]
        wire = next((wire for ending, wire in _WIRES.items() if path.endswith(ending)), "")
        if not wire:
            return [(0, _plain(404, b'{"error": {"message": "there is nothing here"}}'))]
        asked = msgspec.json.decode(body)
        self.requests.append(Asked(path, headers, msgspec.Raw(body)))
        self._number += 1
        told = self.decide(asked)
        model = str(asked.get("model"))
        if told.status != 200:
            key = headers.get("x-api-key") or headers.get("authorization", "").removeprefix(
                "Bearer "
            )
            return [
                (
                    told.latency_s,
                    _plain(told.status, told.error.replace("{key}", key).encode(), told.headers),
                )
            ]
        if told.fault in ("reset", "hang"):
            return [(0, None)] if told.fault == "reset" else [(_FOREVER_S, None)]
        if told.fault == "html":
            return [
                (
                    0,
                    _plain(
                        200, b"<html><title>Sign in</title></html>", {"content-type": "text/html"}
                    ),
                )
            ]
        if told.raw:
            return [(0, _plain(200, told.raw.encode(), {"content-type": told.raw_type}))]
        if not asked.get("stream"):
            return [(told.latency_s, _plain(200, llm_wire.whole(wire, told, model, self._number)))]
        return _streamed(wire, told, llm_wire.events(wire, told, model, self._number))


def _streamed(
    wire: str, told: Behaviour, events: list[bytes]
) -> Iterator[tuple[float, bytes | None]]:
    yield told.latency_s, _STREAM
    if told.fault:
        yield from _faulty(wire, told, events)
    elif told.gap_s:
        for event in events:
            yield told.gap_s, _chunk(event)
        yield 0, _END
    else:
        yield 0, b"".join([_chunk(event) for event in events]) + _END


def _faulty(
    wire: str, told: Behaviour, events: list[bytes]
) -> Iterator[tuple[float, bytes | None]]:
    """A stream that goes wrong after its headers."""
    gap = told.gap_s
    half = b"".join(events[: len(events) // 2])
    everything = b"".join(events)
    sent = {
        "headers_only": b"",
        "hang_mid": _chunk(half),
        "linger": _chunk(everything),
        "cut": _chunk(half) + _END,
        "error_event": _chunk(half + llm_wire.error_event(wire)) + _END,
        "garbage": _chunk(events[0] + b"data: {]\xff garbage\n\n" + b"\x00\x01\x02\n\n") + _END,
    }
    match told.fault:
        case "huge_line":
            yield 0, _chunk(events[0]) + _chunk(b"data: " + b"x" * (8 << 20) + b"\n\n") + _END
        case "drip":
            for number, byte in enumerate(everything):
                yield gap if number else 0, _chunk(bytes([byte]))
            yield 0, _END
        case "comments":
            # Some providers keep a slow connection alive so: OpenRouter sends ": OPENROUTER
            # PROCESSING".
            for _ in range(8):
                yield gap, _chunk(b": still working\n\n")
            yield 0, _chunk(everything) + _END
        case fault:
            if sent[fault]:
                yield 0, sent[fault]
            if fault in ("headers_only", "hang_mid", "linger"):
                yield _FOREVER_S, None


def _last_user(messages: list[Any] | str) -> tuple[str, int]:
    """The last text of a person, and how many tool results came after it."""
    if isinstance(messages, str):
        return messages, 0
    results = 0
    for message in reversed(messages):
        content = message.get("content")
        if message.get("role") == "tool" or message.get("type") == "function_call_output":
            results += 1
        elif message.get("role") == "user":
            blocks = (
                [{"type": "text", "text": content}] if isinstance(content, str) else content or []
            )
            results += sum(block.get("type") == "tool_result" for block in blocks)
            text = " ".join(
                str(block.get("text", "")) for block in blocks if block.get("type") in _TEXTS
            )
            if text:
                return text, results
    return "", results


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _plain(status: int, body: bytes, headers: dict[str, str] | None = None) -> bytes:
    named = {"content-type": "application/json", "date": formatdate(usegmt=True)}
    named.update(headers or {})
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    return f"HTTP/1.1 {status} Fake\r\n{lines}content-length: {len(body)}\r\n\r\n".encode() + body


class _Connection(asyncio.Protocol):
    """One connection, one request after the other."""

    def __init__(self, server: FakeLLM) -> None:
        self._server = server
        self._buffer = bytearray()
        self._steps: Iterator[tuple[float, bytes | None]] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server._alive.add(self)
        self._server.connections += 1

    def connection_lost(self, exc: Exception | None) -> None:
        self._server._alive.discard(self)
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
        if self._steps is not None:
            self._server.aborted += 1
            self._finish()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._buffer[:1] == b"\x16":
            # A TLS greeting, to which a plain server has no answer.
            self.abort()
            return
        self._next()

    def _next(self) -> None:
        while self._steps is None and (found := self._request()) is not None:
            self._server.open += 1
            self._steps = iter(self._server.answer(*found))
            self._step()

    def _request(self) -> tuple[str, dict[str, str], bytes] | None:
        head, mark, _ = self._buffer.partition(b"\r\n\r\n")
        if not mark:
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
        }
        start = len(head) + 4
        end = start + int(headers.get("content-length", 0))
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[start:end])
        del self._buffer[:end]
        return first.split(" ")[1].partition("?")[0], headers, body

    def _step(self) -> None:
        """Send what is due, then come back when the next piece is."""
        while self._steps is not None and self._transport is not None:
            wait, data = next(self._steps, (0.0, b""))
            if wait:
                self._timer = asyncio.get_running_loop().call_later(
                    wait, self._send_then_step, data
                )
                return
            if not self._send(data):
                return

    def _send_then_step(self, data: bytes | None) -> None:
        if self._send(data):
            self._step()
        if self._steps is None:
            self._next()

    def _send(self, data: bytes | None) -> bool:
        """Whether there is more to come."""
        if data:
            if self._transport is not None:
                if _NOW in data:
                    data = data.replace(_NOW, b"%018.6f" % time.monotonic())
                self._transport.write(data)
            return True
        self._finish()
        if data is None:
            self.abort()
        return False

    def _finish(self) -> None:
        self._steps = None
        self._server.open -= 1


async def _serve(port: int) -> None:
    async with FakeLLM(port) as server:
        sys.stdout.write(f"{server.port}\n")
        sys.stdout.flush()
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await stop.wait()


def main() -> None:
    """Serve until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(description="A fake language model on loopback.")
    parser.add_argument("--port", type=int, default=0, help="0: any free port, which is printed")
    asyncio.run(_serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
