"""The last look at what leaves over HTTP and WebSockets: no secret is in it, whichever endpoint
made it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import Message, Send

Redact = Callable[[str], str]

STREAM_TYPE = "text/event-stream"
MAX_BUFFER_BYTES = 32 * 2**20
"""A longer answer is no JSON of ours."""


class Redacted:
    """Sends on what one connection sends. JSON, streams of events, plain text and the messages of
    WebSockets are searched; files are what somebody has put there, and leave as they are."""

    def __init__(self, send: Send, redact: Redact) -> None:
        self._send = send
        self._redact = redact
        self._start: Message | None = None
        self._kind = ""
        self._body = b""

    async def __call__(self, message: Message) -> None:
        match message["type"]:
            case "websocket.send" if message.get("text"):
                await self._send({**message, "text": redact_json(message["text"], self._redact)})
            case "http.response.start" if kind := _body_kind(Headers(raw=message["headers"])):
                self._kind = kind
                if kind == STREAM_TYPE:
                    await self._send(message)
                else:
                    self._start = message  # its length may become another one
            case "http.response.body" if self._kind == STREAM_TYPE:
                await self._send({**message, "body": self._redact_stream(message.get("body", b""))})
            case "http.response.body" if self._start is not None:
                await self._send_whole(message)
            case _:
                await self._send(message)

    def _redact_stream(self, body: bytes) -> bytes:
        """Events leave whole, a line for each field."""
        text = body.decode(errors="replace")
        if self._redact(text) == text:
            return body
        return "\n".join(self._redact_line(line) for line in text.split("\n")).encode()

    def _redact_line(self, line: str) -> str:
        field, colon, value = line.partition(": ")
        return f"{field}{colon}{redact_json(value, self._redact)}" if colon else self._redact(line)

    async def _send_whole(self, message: Message) -> None:
        self._body += message.get("body", b"")
        if message.get("more_body") and len(self._body) < MAX_BUFFER_BYTES:
            return
        start = self._start
        self._start = None
        assert start is not None
        text = self._body.decode(errors="replace")
        if self._redact(text) != text:
            kept = redact_json(text, self._redact) if self._kind == "json" else self._redact(text)
            self._body = kept.encode()
            headers = MutableHeaders(scope=start)
            if "content-length" in headers:
                headers["content-length"] = str(len(self._body))
        await self._send(start)
        await self._send({**message, "body": self._body})


def _body_kind(headers: Headers) -> str:
    """Whether an answer with these headers is searched: `json`, `text`, or STREAM; '' where it is
    not."""
    media = headers.get("content-type", "").partition(";")[0].strip().lower()
    if "content-disposition" in headers or "content-encoding" in headers:
        return ""
    if media == STREAM_TYPE:
        return STREAM_TYPE
    if media == "application/json" or media.endswith("+json"):
        return "json"
    return "text" if media == "text/plain" else ""


def redact_json(text: str, redact: Redact) -> str:
    """The same value without secrets in its strings and names; a text that is no JSON without
    any."""
    if (kept := redact(text)) == text:
        return text
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return kept
    return msgspec.json.encode(_redact_value(value, redact)).decode()


def _redact_value(value: Any, redact: Redact) -> Any:
    match value:
        case str():
            return redact(value)
        case dict():
            return {redact(str(name)): _redact_value(each, redact) for name, each in value.items()}
        case list():
            return [_redact_value(each, redact) for each in value]
        case _:
            return value
