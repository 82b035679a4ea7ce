"""The third language of a fake language model: OpenAI responses, streamed or whole.

The forms are those of
https://developers.openai.com/api/reference/resources/responses/streaming-events; a test has the
provider's own client read them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from .llm_script import Behaviour, FakeCall, cut

_json = msgspec.json.Encoder().encode
_CREATED = 1_700_000_000


def whole(told: Behaviour, model: str, number: int) -> dict[str, Any]:
    """The body of an answer that is not streamed."""
    return _response(told, model, number, _items(told, number))


def events(told: Behaviour, model: str, number: int) -> list[bytes]:
    """The server-sent events of a streamed answer."""
    begun = _response(told, model, number, []) | {
        "status": "in_progress",
        "usage": None,
        "incomplete_details": None,
    }
    found: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    items = _items(told, number)
    for index, item in enumerate(items):
        place = {"output_index": index}
        found.append({"type": "response.output_item.added", **place, "item": _empty(item)})
        found += [{**event, **place, "item_id": item["id"]} for event in _written(told, item)]
        found.append({"type": "response.output_item.done", **place, "item": item})
    done = _response(told, model, number, items)
    found.append({"type": f"response.{done['status']}", "response": done})
    return [_event({**event, "sequence_number": n}) for n, event in enumerate(found)]


def error_event() -> bytes:
    """An error in the middle of a stream."""
    error = {"code": "rate_limit_exceeded", "message": "Rate limit reached", "param": None}
    return _event({"type": "error", **error, "sequence_number": 9})


def _event(fields: dict[str, Any]) -> bytes:
    return b"event: " + str(fields["type"]).encode() + b"\ndata: " + _json(fields) + b"\n\n"


def _response(
    told: Behaviour, model: str, number: int, output: list[dict[str, Any]]
) -> dict[str, Any]:
    reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(told.finish)
    usage = {
        "input_tokens": told.input_tokens,
        "input_tokens_details": {"cached_tokens": told.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": told.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": told.input_tokens + told.output_tokens,
    }
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": _CREATED,
        "status": "incomplete" if reason else "completed",
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "instructions": None,
        "metadata": {},
        "model": model,
        "output": output,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": usage,
    }


def _items(told: Behaviour, number: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if told.thinking or told.redacted:
        summary = [{"type": "summary_text", "text": told.thinking}] if told.thinking else []
        sealed = told.redacted or told.signature
        found.append(
            {
                "id": f"rs_{number}",
                "type": "reasoning",
                "summary": summary,
                "encrypted_content": sealed,
            }
        )
    if not told.calls:
        text = {"type": "output_text", "text": told.text, "annotations": [], "logprobs": []}
        message = {
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "phase": "final_answer",
        }
        found.append({"id": f"msg_{number}", **message, "content": [text]})
    return found + [_call(call, number, n) for n, call in enumerate(told.calls)]


def _call(call: FakeCall, number: int, n: int) -> dict[str, Any]:
    given = call.id if call.id is not None else f"call_{number}_{n}"
    fields = {
        "call_id": given,
        "name": call.name,
        "arguments": call.arguments,
        "status": "completed",
    }
    return {"id": f"fc_{number}_{n}", "type": "function_call", **fields}


def _empty(item: dict[str, Any]) -> dict[str, Any]:
    """The item as it begins."""
    begun = {
        "content": [],
        "summary": [],
        "arguments": "",
        "encrypted_content": "",
        "status": "in_progress",
    }
    return {key: begun.get(key, value) for key, value in item.items()}


def _written(told: Behaviour, item: dict[str, Any]) -> list[dict[str, Any]]:
    """The pieces in which an item is written."""
    part: dict[str, Any]
    extra: dict[str, Any] = {}
    match item["type"]:
        case "reasoning":
            kind = "response.reasoning_summary_text"
            at = {"summary_index": 0}
            text = told.thinking
            begin = "response.reasoning_summary_part.added"
            part = {"type": "summary_text", "text": ""}
        case "message":
            kind = "response.output_text"
            at = {"content_index": 0}
            text = told.text
            begin = "response.content_part.added"
            extra = {"logprobs": []}
            part = {"type": "output_text", "text": "", "annotations": [], **extra}
        case _:
            pieces = cut(item["arguments"], 4)
            kind = "response.function_call_arguments"
            end = {"type": f"{kind}.done", "arguments": item["arguments"], "name": item["name"]}
            return [*({"type": f"{kind}.delta", "delta": piece} for piece in pieces), end]
    if not text:
        return []
    deltas = [
        {"type": f"{kind}.delta", **at, "delta": piece, **extra} for piece in cut(text, told.chunks)
    ]
    return [
        {"type": begin, **at, "part": part},
        *deltas,
        {"type": f"{kind}.done", **at, "text": text, **extra},
    ]
