"""Reading an Anthropic Messages stream:
https://docs.anthropic.com/en/docs/build-with-claude/streaming"""

from __future__ import annotations

from typing import Any

import msgspec

from ..types.events import Finish
from ..types.messages import Message, Part, Text, Thinking, ToolCall, Usage, clean_text
from . import faults
from .answer_cleaner import AnswerCleaner
from .base import Reply, Request, TextDelta, ThinkingDelta
from .decode import TextCleaner, encode_object, make_calls, make_event_decoder, normalize_arguments
from .faults import FailedCall


class _Block(msgspec.Struct, gc=False):
    type: str = ""
    id: str | None = None
    name: str | None = None
    input: Any = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None


class _Delta(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class _Usage(msgspec.Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Whole(msgspec.Struct, gc=False):
    content: list[_Block] | None = None
    stop_reason: str | None = None
    usage: _Usage | None = None


class _Event(msgspec.Struct, gc=False):
    type: str = ""
    index: int = 0
    delta: _Delta | None = None
    content_block: _Block | None = None
    usage: _Usage | None = None
    message: _Whole | None = None
    error: Any = None
    content: list[_Block] | None = None
    stop_reason: str | None = None


_decode = make_event_decoder(_Event)

# https://docs.anthropic.com/en/api/handling-stop-reasons. A paused turn is whole as far as it goes:
# given back as it is, the model goes on from there, which is what the agent does after `length`.
_FINISH: dict[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "length",
    "tool_use": "calls",
    "refusal": "filtered",
}


def reasoning_wire(model: str) -> str:
    """What the reasoning of `model` is filed under. The newest models refuse what another one has
    thought:
    https://platform.claude.com/docs/en/models/opus-5-5/whats-new-opus-5-5#thinking-blocks-are-tied-to-the-model-that-produced-them
    """
    return f"anthropic:{model}"


class _Building:
    """A content block that is still being written."""

    __slots__ = ("block", "cleaner", "pieces", "signature")

    def __init__(self, block: _Block) -> None:
        self.block = block
        self.pieces: list[str] = []
        self.signature = block.signature or ""
        self.cleaner = AnswerCleaner() if block.type == "text" else TextCleaner()

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def arguments(self) -> msgspec.Raw:
        if self.pieces or not self.block.input:
            return normalize_arguments(self.text)
        return normalize_arguments(encode_object(self.block.input))


class AnthropicReply:
    """A reply in the making: feed it payloads, then take the reply."""

    def __init__(self, call: FailedCall, request: Request) -> None:
        self._call = call
        self._request = request
        self._wire = reasoning_wire(call.model)
        self._blocks: dict[int, _Building] = {}
        self._stop: str | None = None
        self._ended = False
        self._usage = _Usage()

    def feed(self, payload: bytes) -> list[TextDelta | ThinkingDelta]:
        """What this payload adds. Raises ModelError for an error inside the stream and for what is
        no event."""
        if not payload or payload == b"[DONE]":
            return []
        try:
            event = _decode(payload)
        except ValueError as error:
            raise faults.make_malformed_reply(self._call, str(error), payload) from error
        match event.type:
            case "content_block_delta" if event.delta is not None:
                return self._add_delta(event.index, event.delta)
            case "content_block_start" if event.content_block is not None:
                return self._begin_block(event.index, event.content_block)
            case "content_block_stop" if event.index in self._blocks:
                return _flush_cleaner(self._blocks[event.index])
            case "message_start" if event.message is not None:
                self._update_usage(event.message.usage)
            case "message_delta":
                self._add_message_delta(event)
            case "message_stop":
                self._ended = True
            case "error":
                raise faults.make_stream_error(self._call, event.error)
            case "message":
                return self._add_message(event)
            case "":
                raise faults.make_malformed_reply(
                    self._call, "this is not an event of a message", payload
                )
        # Everything else is ping or news that this version does not know; the protocol asks to
        # ignore what is unknown.
        return []

    def _add_message_delta(self, event: _Event) -> None:
        self._update_usage(event.usage)
        if event.delta is not None and event.delta.stop_reason:
            self._stop = event.delta.stop_reason

    def _add_message(self, event: _Event) -> list[TextDelta | ThinkingDelta]:
        """A server that does not stream."""
        self._ended = True
        self._stop = event.stop_reason
        self._update_usage(event.usage)
        found: list[TextDelta | ThinkingDelta] = []
        for index, block in enumerate(event.content or ()):
            found += self._begin_block(index, block)
        return found

    def _begin_block(self, index: int, block: _Block) -> list[TextDelta | ThinkingDelta]:
        self._blocks[index] = _Building(block)
        if block.type not in ("text", "thinking"):
            return []
        delta = _Delta(f"{block.type}_delta", text=block.text, thinking=block.thinking)
        return self._add_delta(index, delta)

    def _add_delta(self, index: int, delta: _Delta) -> list[TextDelta | ThinkingDelta]:
        building = self._blocks.get(index)
        if building is None:
            raise faults.make_malformed_reply(
                self._call, f"a delta for block {index}, which was not started"
            )
        match delta.type:
            case "text_delta" if delta.text and (piece := building.cleaner.feed(delta.text)):
                building.pieces.append(piece)
                return [TextDelta(piece)]
            case "thinking_delta" if delta.thinking and (
                piece := building.cleaner.feed(delta.thinking)
            ):
                building.pieces.append(piece)
                return [ThinkingDelta(piece)]
            case "input_json_delta" if delta.partial_json:
                building.pieces.append(delta.partial_json)
            case "signature_delta" if delta.signature:
                building.signature += delta.signature
        return []

    def _update_usage(self, usage: _Usage | None) -> None:
        """Counts are cumulative: the last that is given holds."""
        if usage is not None:
            for field in usage.__struct_fields__:
                if (value := getattr(usage, field)) is not None:
                    setattr(self._usage, field, max(0, value))

    def close(self) -> list[TextDelta | ThinkingDelta | Reply]:
        """The last deltas and the reply. Raises ModelUnavailable where the stream ended before the
        reply did."""
        if self._stop is None and not self._ended:
            raise faults.make_broken_reply(self._call, "the stream ended without a stop reason")
        found: list[TextDelta | ThinkingDelta | Reply] = []
        for building in self._blocks.values():
            found += _flush_cleaner(building)
        parts = self._make_parts()
        called = any(isinstance(part, ToolCall) for part in parts)
        finish = _FINISH.get(self._stop or "", "stop")
        if finish in ("stop", "calls"):
            finish = "calls" if called else "stop"
        found.append(Reply(Message("assistant", tuple(parts)), finish, self._make_usage()))
        return found

    def _make_usage(self) -> Usage:
        usage = self._usage
        read = usage.cache_read_input_tokens or 0
        written = usage.cache_creation_input_tokens or 0
        return Usage(
            (usage.input_tokens or 0) + read + written, usage.output_tokens or 0, read, written
        )

    def _make_parts(self) -> list[Part]:
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        calls = iter(self._make_calls([each for each in blocks if each.block.type == "tool_use"]))
        parts: list[Part] = []
        for each in blocks:
            block = each.block
            match block.type:
                case "text" if each.text:
                    parts.append(Text(each.text))
                case "thinking":
                    parts.append(Thinking(each.text, self._wire, clean_text(each.signature)))
                case "redacted_thinking":
                    parts.append(Thinking("", self._wire, redacted=clean_text(block.data or "")))
                case "tool_use":
                    parts.append(next(calls))
                case _:
                    pass
        return parts

    def _make_calls(self, building: list[_Building]) -> list[ToolCall]:
        if not building:
            return []
        found = [
            (each.block.id or "", each.block.name or "", each.arguments()) for each in building
        ]
        return make_calls(found, self._request)


def _flush_cleaner(building: _Building) -> list[TextDelta | ThinkingDelta]:
    """What the cleaner of a block still holds back, at its end."""
    rest = building.cleaner.close()
    if not rest:
        return []
    building.pieces.append(rest)
    return [TextDelta(rest) if building.block.type == "text" else ThinkingDelta(rest)]
