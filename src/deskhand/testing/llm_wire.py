"""The languages of a fake language model: OpenAI chat completions and Anthropic messages, streamed
or whole; OpenAI responses are in a file of their own.

The forms are those of https://platform.openai.com/docs/api-reference/chat-streaming and
https://docs.anthropic.com/en/docs/build-with-claude/streaming; a test has the providers' own
clients read them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from . import llm_responses
from .llm_script import Behaviour, FakeCall, cut

_json = msgspec.json.Encoder().encode
_CREATED = 1_700_000_000


def events(wire: str, told: Behaviour, model: str, number: int) -> list[bytes]:
    """The server-sent events of a streamed answer."""
    written = {"openai": _openai, "anthropic": _anthropic, "responses": llm_responses.events}
    return written[wire](told, model, number)


def whole(wire: str, told: Behaviour, model: str, number: int) -> bytes:
    """The body of an answer that is not streamed."""
    written = {
        "openai": _openai_whole,
        "anthropic": _anthropic_whole,
        "responses": llm_responses.whole,
    }
    return _json(written[wire](told, model, number))


def error_event(wire: str) -> bytes:
    """An error in the middle of a stream."""
    if wire == "responses":
        return llm_responses.error_event()
    error = {"type": "overloaded_error", "message": "Overloaded"}
    if wire == "anthropic":
        return b"event: error\ndata: " + _json({"type": "error", "error": error}) + b"\n\n"
    return b"data: " + _json({"error": {**error, "code": 529}}) + b"\n\n"


def _openai(told: Behaviour, model: str, number: int) -> list[bytes]:
    base = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion.chunk",
        "created": _CREATED,
        "model": model,
    }

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return b"data: " + _json({**base, "choices": [choice]}) + b"\n\n"

    found = [chunk({"role": "assistant", "content": ""})]
    found += [chunk({"reasoning_content": piece}) for piece in cut(told.thinking, told.chunks)]
    if not told.calls:
        found += [chunk({"content": piece}) for piece in cut(told.text, told.chunks)]
    for index, call in enumerate(told.calls):
        found += [chunk({"tool_calls": [piece]}) for piece in _fragments(told, call, index, number)]
    found.append(chunk({}, told.finish or ("tool_calls" if told.calls else "stop")))
    found.append(b"data: " + _json({**base, "choices": [], "usage": _openai_usage(told)}) + b"\n\n")
    found.append(b"data: [DONE]\n\n")
    return found


def _fragments(told: Behaviour, call: FakeCall, index: int, number: int) -> list[dict[str, Any]]:
    given = call.id if call.id is not None else f"call_{number}_{index}"
    head: dict[str, Any] = {"index": index, "id": given, "type": "function"}
    everything = {**head, "function": {"name": call.name, "arguments": call.arguments}}
    match told.call_style:
        case "whole":
            return [everything]
        case "same_index":
            return [{**everything, "index": 0}]
        case "no_index":
            del everything["index"]
            return [everything]
        case "no_id":
            del everything["id"]
            return [everything]
        case "object":
            return [
                {
                    **everything,
                    "function": {
                        "name": call.name,
                        "arguments": msgspec.json.decode(call.arguments),
                    },
                }
            ]
        case "repeat_name":
            pieces = cut(call.arguments, 4)
            return [
                {**head, "function": {"name": call.name, "arguments": piece}} for piece in pieces
            ]
    pieces = cut(call.arguments, 4)
    first = {**head, "function": {"name": call.name, "arguments": ""}}
    return [first, *({"index": index, "function": {"arguments": piece}} for piece in pieces)]


def _openai_usage(told: Behaviour) -> dict[str, Any]:
    return {
        "prompt_tokens": told.input_tokens,
        "completion_tokens": told.output_tokens,
        "total_tokens": told.input_tokens + told.output_tokens,
        "prompt_tokens_details": {"cached_tokens": told.cached_tokens},
    }


def _openai_whole(told: Behaviour, model: str, number: int) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": None if told.calls else told.text,
        "refusal": None,
    }
    if told.thinking:
        message["reasoning_content"] = told.thinking
    if told.calls:
        message["tool_calls"] = [
            {"id": call.id or f"call_{number}_{n}", "type": "function", "function": _function(call)}
            for n, call in enumerate(told.calls)
        ]
    finish = told.finish or ("tool_calls" if told.calls else "stop")
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": _CREATED,
        "model": model,
        "choices": [choice],
        "usage": _openai_usage(told),
    }


def _function(call: FakeCall) -> dict[str, Any]:
    return {"name": call.name, "arguments": call.arguments}


def _anthropic_usage(told: Behaviour) -> dict[str, Any]:
    return {
        "input_tokens": told.input_tokens - told.cached_tokens,
        "output_tokens": told.output_tokens,
        "cache_read_input_tokens": told.cached_tokens,
        "cache_creation_input_tokens": 0,
    }


def _stop(told: Behaviour) -> str:
    return {"": "tool_use" if told.calls else "end_turn", "length": "max_tokens"}.get(
        told.finish, told.finish
    )


def _anthropic_whole(told: Behaviour, model: str, number: int) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if told.thinking:
        content.append({"type": "thinking", "thinking": told.thinking, "signature": told.signature})
    if told.redacted:
        content.append({"type": "redacted_thinking", "data": told.redacted})
    if told.text and not told.calls:
        content.append({"type": "text", "text": told.text})
    for n, call in enumerate(told.calls):
        given = call.id or f"toolu_{number}_{n}"
        content.append(
            {
                "type": "tool_use",
                "id": given,
                "name": call.name,
                "input": msgspec.json.decode(call.arguments),
            }
        )
    return {**_message(told, model, number), "content": content, "stop_reason": _stop(told)}


def _message(told: Behaviour, model: str, number: int) -> dict[str, Any]:
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _anthropic_usage(told),
    }


def _anthropic(told: Behaviour, model: str, number: int) -> list[bytes]:
    found = [_event("message_start", message=_message(told, model, number)), _event("ping")]
    index = 0

    def block(start: dict[str, Any], deltas: list[dict[str, Any]]) -> None:
        nonlocal index
        found.append(_event("content_block_start", index=index, content_block=start))
        found.extend(_event("content_block_delta", index=index, delta=delta) for delta in deltas)
        found.append(_event("content_block_stop", index=index))
        index += 1

    if told.thinking:
        deltas = [
            {"type": "thinking_delta", "thinking": piece}
            for piece in cut(told.thinking, told.chunks)
        ]
        deltas.append({"type": "signature_delta", "signature": told.signature})
        block({"type": "thinking", "thinking": "", "signature": ""}, deltas)
    if told.redacted:
        block({"type": "redacted_thinking", "data": told.redacted}, [])
    if told.text and not told.calls:
        pieces = cut(told.text, told.chunks)
        block(
            {"type": "text", "text": ""},
            [{"type": "text_delta", "text": piece} for piece in pieces],
        )
    for n, call in enumerate(told.calls):
        given = call.id or f"toolu_{number}_{n}"
        start = {"type": "tool_use", "id": given, "name": call.name, "input": {}}
        written = ["", *cut(call.arguments, 4)]
        block(start, [{"type": "input_json_delta", "partial_json": piece} for piece in written])
    usage = {"output_tokens": told.output_tokens}
    found.append(
        _event(
            "message_delta", delta={"stop_reason": _stop(told), "stop_sequence": None}, usage=usage
        )
    )
    found.append(_event("message_stop"))
    return found


def _event(kind: str, **fields: Any) -> bytes:
    return b"event: " + kind.encode() + b"\ndata: " + _json({"type": kind, **fields}) + b"\n\n"
