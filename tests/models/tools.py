"""Short ways to a model under test."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from deskhand.models.anthropic import AnthropicModel
from deskhand.models.base import ContextMessage, Item, Model, Reply, Request
from deskhand.models.openai import OpenAIModel
from deskhand.models.responses import ResponsesModel
from deskhand.models.settings import Facts, ModelSpec, Quirks
from deskhand.models.transport import Transport
from deskhand.types.messages import Message, Part, Text, ToolCall, ToolResult

KEY = "sk-a-very-secret-key-0123456789"
WIRES = ("openai", "anthropic", "responses")
FACTS = Facts(window=200_000, max_output=8192, vision=True)


def open_wire(
    wire: str,
    transport: Transport,
    url: str,
    *,
    quirks: Quirks | None = None,
    facts: Facts = FACTS,
    name: str = "m",
) -> OpenAIModel | AnthropicModel | ResponsesModel:
    if wire == "openai":
        return OpenAIModel(transport, ModelSpec("fake", name, url, facts, quirks or Quirks(), KEY))
    if wire == "responses":
        return ResponsesModel(
            transport, ModelSpec("fake", name, url, facts, quirks or Quirks(), KEY)
        )
    return AnthropicModel(
        transport, ModelSpec("fake", name, url, facts, quirks or Quirks(auth="x-api-key"), KEY)
    )


def ask(*messages: Message, **fields: object) -> Request:
    shown = tuple(
        ContextMessage(key, message) for key, message in enumerate(messages or (user("Hello"),), 1)
    )
    return msgspec.structs.replace(Request("m", ("Be brief.",), shown), **fields)


def user(*parts: str | Part) -> Message:
    return Message("user", tuple(Text(part) if isinstance(part, str) else part for part in parts))


def assistant(*parts: str | Part) -> Message:
    return Message(
        "assistant", tuple(Text(part) if isinstance(part, str) else part for part in parts)
    )


def called(given: str, arguments: str = "{}", name: str = "read_file") -> ToolCall:
    return ToolCall(given, name, msgspec.Raw(arguments.encode()))


def result(given: str, text: str) -> Message:
    return Message("tool", (ToolResult(given, (Text(text),)),))


async def blob(name: str) -> bytes:
    return b"\x89PNG " + name.encode()


BLOB: Callable[[str], Awaitable[bytes]] = blob


async def items_of(model: Model, request: Request | None = None) -> list[Item]:
    return [item async for item in model.reply(request or ask())]


async def reply_of(model: Model, request: Request | None = None) -> Reply:
    last = (await items_of(model, request))[-1]
    assert isinstance(last, Reply)
    return last
