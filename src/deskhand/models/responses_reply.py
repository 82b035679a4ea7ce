"""Reading an OpenAI Responses stream:
https://developers.openai.com/api/reference/resources/responses/streaming-events"""

from __future__ import annotations

from typing import Any

import msgspec

from ..types.errors import ModelError
from ..types.events import Finish
from ..types.messages import Message, Part, Text, Thinking, ToolCall, Usage, clean_text
from . import faults
from .answer_cleaner import AnswerCleaner
from .base import Reply, Request, TextDelta, ThinkingDelta
from .decode import TextCleaner, encode_object, make_calls, make_event_decoder, normalize_arguments
from .faults import FailedCall

Delta = TextDelta | ThinkingDelta
_KINDS = ("message", "reasoning", "function_call")
_PARAGRAPH = "\n\n"


class _Details(msgspec.Struct, gc=False):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _Usage(msgspec.Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _Details | None = None

    def to_usage(self) -> Usage:
        details = self.input_tokens_details or _Details()
        counts = (
            self.input_tokens,
            self.output_tokens,
            details.cached_tokens,
            details.cache_write_tokens,
        )
        return Usage(*(max(0, count or 0) for count in counts))


class _Piece(msgspec.Struct, gc=False):
    text: str | None = None
    refusal: str | None = None


class _Item(msgspec.Struct, gc=False):
    type: str = ""
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    phase: str | None = None
    content: list[_Piece] | None = None
    summary: list[_Piece] | None = None
    encrypted_content: str | None = None


class _Incomplete(msgspec.Struct, gc=False):
    reason: str | None = None


class _Response(msgspec.Struct, gc=False):
    object: str = ""
    status: str | None = None
    output: list[dict[str, Any]] | None = None
    usage: _Usage | None = None
    incomplete_details: _Incomplete | None = None
    error: Any = None


class _Event(_Response, gc=False):
    """An event of a stream, or the whole response of a server that does not stream."""

    type: str = ""
    output_index: int = 0
    summary_index: int = 0
    delta: Any = None
    item: dict[str, Any] | None = None
    response: _Response | None = None
    code: Any = None
    message: Any = None


_decode = make_event_decoder(_Event)

# What a failed response says about the request itself; everything else is the provider's own
# trouble. https://developers.openai.com/api/reference/resources/responses/object: `error.code`
_REQUEST_ERRORS = (
    "invalid_",
    "image_",
    "unsupported_",
    "empty_image",
    "failed_to_download",
    "data_residency",
)
_POLICY_SUFFIXES = ("_policy", "_policy_violation")


def reasoning_wire(call: FailedCall) -> str:
    """What the reasoning of a model is filed under: no other model, and no other provider, can read
    it."""
    return f"responses:{call.full_name}"


class _Building:
    """An output item that is still being written."""

    __slots__ = ("begun", "call_id", "cleaner", "item", "kind", "name", "phase", "pieces", "whole")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.call_id = self.name = self.phase = ""
        self.pieces: list[str] = []
        self.begun = False
        self.whole: str | None = None
        self.item = ""
        self.cleaner = AnswerCleaner() if kind == "message" else TextCleaner()

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def arguments(self) -> msgspec.Raw:
        return normalize_arguments(self.text if self.whole is None else self.whole)


class ResponsesReply:
    """A reply in the making: feed it payloads, then take the reply."""

    def __init__(self, call: FailedCall, request: Request) -> None:
        self._call = call
        self._request = request
        self._wire = reasoning_wire(call)
        self._items: dict[int, _Building] = {}
        self._refused = False
        self._end: _Response | None = None

    def feed(self, payload: bytes) -> list[Delta]:
        """What this payload adds. Raises ModelError for an error inside the stream and for what is
        no event."""
        if not payload or payload == b"[DONE]":
            return []
        try:
            event = _decode(payload)
        except ValueError as error:
            raise faults.make_malformed_reply(self._call, str(error), payload) from error
        match event.type:
            case "response.output_text.delta":
                return self._add_text(event.output_index, "message", event.delta)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                return self._add_text(event.output_index, "reasoning", event.delta)
            case "response.reasoning_summary_part.added" if event.summary_index > 0:
                return self._add_text(event.output_index, "reasoning", _PARAGRAPH)
            case "response.refusal.delta":
                self._refused = True
                return self._add_text(event.output_index, "message", event.delta)
            case "response.function_call_arguments.delta" if isinstance(event.delta, str):
                building = self._find_or_begin_item(event.output_index, "function_call")
                building.pieces.append(event.delta)
            case "response.output_item.added" | "response.output_item.done" if (
                event.item is not None
            ):
                done = event.type.endswith("done")
                return self._add_item(event.output_index, event.item, done=done)
            case "response.completed" | "response.incomplete" | "response.failed":
                status = event.type.rpartition(".")[2]
                return self._finish(event.response or _Response(status=status))
            case "error":
                said = event.error or {"code": event.code, "message": event.message}
                raise self._make_error(said)
            case "":
                return self._add_untyped(event, payload)
        # Everything else tells what is known anyway, or is news that this version does not know.
        return []

    def _add_untyped(self, event: _Event, payload: bytes) -> list[Delta]:
        """A server that does not stream, or one that fails in a form of its own."""
        if event.object == "response":
            return self._finish(event)
        if event.error is not None:
            raise self._make_error(event.error)
        raise faults.make_malformed_reply(self._call, "this is not an event of a response", payload)

    def _make_error(self, error: object) -> ModelError:
        code = error.get("code") if isinstance(error, dict) else None
        if not isinstance(error, dict) or not isinstance(code, str):
            return faults.make_stream_error(self._call, error)
        if code.startswith(_REQUEST_ERRORS) or code.endswith(_POLICY_SUFFIXES):
            error = {"code": 400, "message": f"{code}: {error.get('message')}"}
        return faults.make_stream_error(self._call, error)

    def _finish(self, response: _Response) -> list[Delta]:
        if response.status == "failed" or (response.error and response.status != "completed"):
            raise self._make_error(response.error or {"message": "the response failed"})
        self._end = response
        found: list[Delta] = []
        for index, item in enumerate(response.output or ()):
            if index not in self._items:
                found += self._add_item(index, item, done=True)
        return found

    def _find_or_begin_item(self, index: int, kind: str) -> _Building:
        if index not in self._items:
            self._items[index] = _Building(kind)
        return self._items[index]

    def _add_text(self, index: int, kind: str, text: object) -> list[Delta]:
        """A piece of text or of reasoning; what the item is decides which."""
        building = self._find_or_begin_item(index, kind)
        building.begun = building.begun or bool(text)
        if not isinstance(text, str) or not text:
            return []
        piece = building.cleaner.feed(text)
        if not piece:
            return []
        is_first = not building.pieces
        building.pieces.append(piece)
        if building.kind == "reasoning":
            return [ThinkingDelta(piece)]
        # A second message of one reply is a paragraph of its own.
        if is_first and self._has_message_before(index):
            return [TextDelta(_PARAGRAPH), TextDelta(piece)]
        return [TextDelta(piece)]

    def _has_message_before(self, index: int) -> bool:
        return any(
            at < index and item.kind == "message" and item.pieces
            for at, item in self._items.items()
        )

    def _add_item(self, index: int, fields: dict[str, Any], *, done: bool) -> list[Delta]:
        """An item as it begins or as it has become."""
        kind = str(fields.get("type"))
        if kind not in _KINDS:
            self._find_or_begin_item(index, kind)
            return []
        try:
            item = msgspec.convert(fields, _Item, strict=False)
        except ValueError as error:
            raise faults.make_malformed_reply(
                self._call, str(error), encode_object(fields)
            ) from error
        building = self._find_or_begin_item(index, item.type)
        building.kind = item.type
        building.call_id = item.call_id or building.call_id
        building.name = item.name or building.name
        building.phase = item.phase or building.phase
        if not done:
            return []
        if item.type == "function_call":
            building.whole = item.arguments if item.arguments is not None else building.whole
            return []
        pieces = [*(item.summary or ()), *(item.content or ())]
        self._refused = self._refused or any(piece.refusal for piece in pieces)
        if item.type == "reasoning" and (item.encrypted_content or item.content):
            kept = {key: value for key, value in fields.items() if key != "status"}
            building.item = clean_text(encode_object(kept))
        found: list[Delta] = []
        if not building.begun and item.type in ("message", "reasoning"):
            joint = _PARAGRAPH if item.type == "reasoning" else ""
            text = joint.join(piece.text or piece.refusal or "" for piece in pieces)
            found = self._add_text(index, item.type, text)
        return found + _flush_cleaner(building)

    def close(self) -> list[Delta | Reply]:
        """The last deltas and the reply. Raises ModelUnavailable where the stream ended before the
        reply did."""
        end = self._end
        if end is None:
            raise faults.make_broken_reply(
                self._call, "the stream ended before the response was complete"
            )
        found: list[Delta | Reply] = []
        for building in self._items.values():
            found += _flush_cleaner(building)
        parts = self._make_parts()
        called = any(isinstance(part, ToolCall) for part in parts)
        message = Message("assistant", tuple(parts))
        usage = (end.usage or _Usage()).to_usage()
        found.append(Reply(message, self._choose_finish(end, called=called), usage))
        return found

    def _choose_finish(self, end: _Response, *, called: bool) -> Finish:
        if end.status == "incomplete":
            reason = end.incomplete_details.reason if end.incomplete_details else ""
            return "filtered" if reason == "content_filter" else "length"
        if called:
            return "calls"
        return "filtered" if self._refused else "stop"

    def _make_parts(self) -> list[Part]:
        items = [self._items[index] for index in sorted(self._items)]
        calls = iter(self._make_calls([each for each in items if each.kind == "function_call"]))
        parts: list[Part] = []
        said = False
        for item in items:
            if item.kind == "reasoning" and (item.text or item.item):
                parts.append(Thinking(item.text, self._wire, redacted=item.item))
            elif item.kind == "function_call":
                parts.append(next(calls))
            elif item.kind == "message" and item.text:
                if said:
                    parts.append(Text(_PARAGRAPH))
                if item.phase:
                    parts.append(Thinking("", self._wire, signature=clean_text(item.phase)))
                parts.append(Text(item.text))
                said = True
        return parts

    def _make_calls(self, building: list[_Building]) -> list[ToolCall]:
        if not building:
            return []
        found = [(each.call_id, each.name, each.arguments()) for each in building]
        return make_calls(found, self._request)


def _flush_cleaner(building: _Building) -> list[Delta]:
    """What the cleaner of an item still holds back, at its end."""
    rest = building.cleaner.close()
    if not rest:
        return []
    building.pieces.append(rest)
    return [ThinkingDelta(rest) if building.kind == "reasoning" else TextDelta(rest)]
