"""What all wires have in common: a body of bytes out, a stream of events in, a reply at the end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from itertools import groupby
from typing import Any, Protocol

from ..types.errors import ModelError
from .base import Item, Request, TextDelta, ThinkingDelta, ToolSchema
from .encode import encode_string, to_json
from .faults import FailedCall
from .settings import ModelSpec
from .transport import Transport

MAX_PROMPTS = 64
"""So many beginnings of prompts are kept as JSON: each agent has one, until its files change."""


class Reading(Protocol):
    """A reply in the making: it is fed payloads, and closed once there are no more. Both raise
    ModelError."""

    def feed(self, payload: bytes) -> Sequence[TextDelta | ThinkingDelta]: ...

    def close(self) -> Sequence[Item]: ...


class Wire(ABC):
    """One model behind an endpoint at `path`. It sends the name that it was opened with."""

    def __init__(
        self,
        transport: Transport,
        spec: ModelSpec,
        path: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._transport = transport
        self._spec = spec
        sent = dict(headers or {})
        if spec.key and spec.quirks.auth == "bearer":
            sent["Authorization"] = f"Bearer {spec.key}"
        elif spec.key:
            sent[spec.quirks.auth] = spec.key
        url = f"{spec.base_url.rstrip('/')}/{path}"
        self._call = FailedCall(spec.provider, spec.name, url, sent, spec.key)
        self._tools: tuple[tuple[ToolSchema, ...], bytes] = (), b""
        self._prompts: dict[str, bytes] = {}

    async def reply(self, request: Request) -> AsyncGenerator[Item, None]:
        """See Model.reply."""
        body = await self.encode_request(request)
        reading = self.make_parser(request)
        async with aclosing(self._transport.stream(self._call, body)) as stream:
            async for payloads in stream:
                for delta in _read_deltas(reading, payloads):
                    yield delta
        for item in reading.close():
            yield item

    @abstractmethod
    async def encode_request(self, request: Request) -> bytes:
        """The bytes that are posted for `request`."""

    @abstractmethod
    def make_parser(self, request: Request) -> Reading:
        """What reads the answer to `request`."""

    @abstractmethod
    def encode_tool(self, tool: ToolSchema) -> dict[str, Any]:
        """A tool in the form of this wire."""

    def encode_blocks(self, system: Sequence[str]) -> list[bytes]:
        """Those that say something, as JSON strings. All but the last stay the same for long, so
        they are kept."""
        found = []
        for block in filter(None, system[:-1]):
            if block not in self._prompts:
                if len(self._prompts) >= MAX_PROMPTS:
                    self._prompts.clear()
                self._prompts[block] = encode_string(block)
            found.append(self._prompts[block])
        return found + [encode_string(block) for block in filter(None, system[-1:])]

    def encode_prompt(self, system: Sequence[str]) -> bytes:
        """All of it as one JSON string, '' where it says nothing."""
        return b'"' + b"\\n\\n".join([block[1:-1] for block in self.encode_blocks(system)]) + b'"'

    def encode_tools(self, tools: tuple[ToolSchema, ...]) -> bytes:
        """The tools as JSON, joined; made once for as long as the same ones are offered."""
        if tools != self._tools[0]:
            self._tools = tools, b",".join([to_json(self.encode_tool(each)) for each in tools])
        return self._tools[1]


def _read_deltas(
    reading: Reading, payloads: Sequence[bytes]
) -> Iterator[TextDelta | ThinkingDelta]:
    """What came together is shown together. What came before an error is shown too."""
    deltas: list[TextDelta | ThinkingDelta] = []
    try:
        for payload in payloads:
            deltas += reading.feed(payload)
    except ModelError:
        yield from _join_deltas(deltas)
        raise
    yield from _join_deltas(deltas)


def _join_deltas(
    deltas: list[TextDelta | ThinkingDelta],
) -> Iterator[TextDelta | ThinkingDelta]:
    """One delta for those of a kind that follow each other."""
    if len(deltas) == 1:
        yield deltas[0]
        return
    for kind, alike in groupby(deltas, type):
        yield kind("".join([each.text for each in alike]))


def encode_extra(request: Request) -> list[bytes]:
    """What `extra` adds behind the fields of a body; nothing where it is empty."""
    extra = b"" if request.extra is None else bytes(request.extra).strip()
    return [b",", extra[1:-1]] if len(extra) > 2 else []
