"""A chat completion in chunks, as server-sent events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Any

import msgspec

from ...types.errors import DeskhandError
from ..errors import HttpProblem, to_sentence
from ..routing import Call
from .schema import ToolCallItem
from .turn_answer import End, TurnAnswer, to_usage_view
from .turns import Opened, follow_turn


class Head(msgspec.Struct, frozen=True):
    """What every answer to one request begins with."""

    id: str
    created: int
    model: str


class Streaming(msgspec.Struct, frozen=True, kw_only=True):
    """How it is sent: `whole` once all of it is known, as JSON without a fence, with a last chunk
    that has the `usage`."""

    whole: bool
    is_json: bool
    usage: bool


async def stream_chunks(
    call: Call, turn: Opened, head: Head, how: Streaming
) -> AsyncGenerator[bytes]:
    """The chunks of the answer, and an error in OpenAI's shape where it breaks off."""
    answer = TurnAnswer(turn.inbox_id, call.web.redact, is_json=how.is_json)
    yield _chunk(head, {"role": "assistant", "content": ""})
    try:
        async with aclosing(follow_turn(call, turn, answer)) as pieces:
            async for piece in pieces:
                if isinstance(piece, End):
                    for data in _final_chunks(head, how, answer, piece):
                        yield data
                elif not how.whole:
                    yield _chunk(head, {"content": piece})
    except HttpProblem as problem:
        yield _error_event(problem.code, problem.message, problem.param)
    except DeskhandError as error:
        yield _error_event("failed", to_sentence(str(error)))


def _final_chunks(head: Head, how: Streaming, answer: TurnAnswer, end: End) -> Iterable[bytes]:
    if how.whole and (text := answer.text()):
        yield _chunk(head, {"content": text})
    if end.calls:
        yield _chunk(head, {"tool_calls": [_fragment(i, item) for i, item in enumerate(end.calls)]})
    yield _chunk(head, {}, end.finish)
    if how.usage:
        yield _event({**_base_chunk(head), "choices": [], "usage": to_usage_view(answer.usage)})
    yield b"data: [DONE]\n\n"


def _fragment(index: int, item: ToolCallItem) -> dict[str, Any]:
    function = {"name": item.function.name, "arguments": item.function.arguments}
    return {"index": index, "id": item.id, "type": "function", "function": function}


def _chunk(head: Head, delta: dict[str, Any], finish: str | None = None) -> bytes:
    choices = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
    return _event({**_base_chunk(head), "choices": choices})


def _base_chunk(head: Head) -> dict[str, Any]:
    return {
        "id": head.id,
        "object": "chat.completion.chunk",
        "created": head.created,
        "model": head.model,
    }


def _error_event(code: str, message: str, param: str = "") -> bytes:
    return _event(
        {
            "error": {
                "code": code,
                "message": message,
                "type": "server_error",
                "param": param or None,
            }
        }
    )


def _event(value: dict[str, Any]) -> bytes:
    return b"data: %b\n\n" % msgspec.json.encode(value)
