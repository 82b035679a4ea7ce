"""Reading an OpenAI Chat Completions stream, and everything that other providers make of it."""

from __future__ import annotations

from typing import Any

import msgspec

from ..types.events import Finish
from ..types.messages import Message, Part, Text, Thinking, ToolCall, Usage, clean_text
from . import faults
from .answer_cleaner import Echoes
from .base import Reply, Request, TextDelta, ThinkingDelta
from .decode import TextCleaner, encode_object, make_calls, make_event_decoder, normalize_arguments
from .faults import FailedCall
from .think import Piece, ThinkTags


class _Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _Fragment(msgspec.Struct, gc=False):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None
    extra_content: dict[str, Any] | None = None


class _Delta(msgspec.Struct, gc=False):
    content: str | list[dict[str, Any]] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_Fragment] | None = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None


class _Details(msgspec.Struct, gc=False):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    prompt_cache_hit_tokens: int | None = None

    def to_usage(self) -> Usage:
        details = self.prompt_tokens_details
        cached = (details.cached_tokens if details else None) or self.prompt_cache_hit_tokens or 0
        return Usage(
            max(0, self.prompt_tokens or 0), max(0, self.completion_tokens or 0), max(0, cached)
        )


class _Chunk(msgspec.Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None


_decode = make_event_decoder(_Chunk)

_FINISH: dict[str, Finish] = {
    "stop": "stop",
    "end_turn": "stop",
    "eos": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_calls": "calls",
    "function_call": "calls",
    "content_filter": "filtered",
    "safety": "filtered",
    "sensitive": "filtered",
}


class _Building:
    """A tool call that is still being written."""

    __slots__ = ("arguments", "id", "name", "signature", "whole")

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.signature = ""
        self.arguments: list[str] = []
        self.whole: dict[str, Any] | None = None

    def raw_arguments(self) -> msgspec.Raw:
        if self.whole is not None:
            return normalize_arguments(encode_object(self.whole))
        return normalize_arguments("".join(self.arguments))

    def is_complete(self) -> bool:
        """Whether the arguments are a whole object. Only one that may be is parsed: this is asked
        at every piece."""
        if self.whole is not None:
            return True
        ended = bool(self.arguments) and self.arguments[-1].rstrip().endswith("}")
        return ended and bytes(self.raw_arguments()).startswith(b"{")


class OpenAiReply:
    """A reply in the making: feed it payloads, then take the reply."""

    def __init__(self, call: FailedCall, request: Request) -> None:
        self._call = call
        self._request = request
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._text_cleaner = TextCleaner()
        self._thinking_cleaner = TextCleaner()
        self._tags = ThinkTags()
        self._echoes = Echoes()
        self._calls: list[_Building] = []
        self._by_index: dict[int, _Building] = {}
        self._finish: str | None = None
        self._ended = False
        self._usage = Usage()

    def feed(self, payload: bytes) -> list[TextDelta | ThinkingDelta]:
        """What this payload adds. Raises ModelError for an error inside the stream and for what is
        no chunk."""
        if payload == b"[DONE]":
            self._ended = True
            return []
        if not payload:
            return []
        try:
            chunk = _decode(payload)
        except ValueError as error:
            raise faults.make_malformed_reply(self._call, str(error), payload) from error
        if chunk.error is not None:
            raise faults.make_stream_error(self._call, chunk.error)
        if chunk.usage is not None:
            self._usage = chunk.usage.to_usage()
        if not chunk.choices:
            if chunk.choices is None and chunk.usage is None:
                raise faults.make_malformed_reply(
                    self._call, "this is not a chat completion", payload
                )
            return []
        choice = chunk.choices[0]
        if choice.finish_reason:
            self._finish = choice.finish_reason.lower()
        delta = choice.delta or choice.message
        return [] if delta is None else self._add_delta(delta)

    def _add_delta(self, delta: _Delta) -> list[TextDelta | ThinkingDelta]:
        found: list[TextDelta | ThinkingDelta] = []
        content = delta.content
        thought = delta.reasoning_content or delta.reasoning
        if isinstance(content, list):
            content, inner = _split_blocks(content)
            thought = (thought or "") + inner
        if thought and (piece := self._thinking_cleaner.feed(thought)):
            self._thinking.append(piece)
            found.append(ThinkingDelta(piece))
        said = content or delta.refusal
        if said and (piece := self._text_cleaner.feed(said)):
            # Nearly always it is, and this is the path of every piece of every answer.
            if self._tags.is_over:
                if told := self._echoes.feed(piece):
                    self._text.append(told)
                    found.append(TextDelta(told))
            else:
                found += self._add_pieces(self._tags.feed(piece))
        for fragment in delta.tool_calls or ():
            self._add_fragment(fragment)
        return found

    def _add_pieces(self, pieces: list[Piece]) -> list[TextDelta | ThinkingDelta]:
        found: list[TextDelta | ThinkingDelta] = []
        for kind, piece in pieces:
            text = self._echoes.feed(piece) if kind == "text" else piece
            if not text:
                continue
            if kind == "text":
                self._text.append(text)
                found.append(TextDelta(text))
            else:
                self._thinking.append(text)
                found.append(ThinkingDelta(text))
        return found

    def _add_fragment(self, fragment: _Fragment) -> None:
        function = fragment.function or _Function()
        given = fragment.id or ""
        name = function.name or ""
        building = self._find_or_begin_call(fragment.index, given, name)
        building.id = building.id or given
        building.name = building.name or name
        google = (fragment.extra_content or {}).get("google")
        if isinstance(google, dict) and isinstance(google.get("thought_signature"), str):
            building.signature = clean_text(google["thought_signature"])
        if isinstance(function.arguments, dict):
            building.whole = function.arguments
        elif function.arguments:
            building.arguments.append(function.arguments)

    def _find_or_begin_call(self, index: int | None, given: str, name: str) -> _Building:
        """The call that a fragment belongs to.

        The index should say. Some providers send whole calls without one, or all with index 0: then
        another id, or a name after a call that is complete, begins a new call.
        """
        known = self._calls[-1] if self._calls else None
        if index is not None:
            known = self._by_index.get(index)
        if known is not None and not _begins_another(known, index, given, name):
            return known
        building = _Building()
        self._calls.append(building)
        if index is not None:
            self._by_index[index] = building
        return building

    def close(self) -> list[TextDelta | ThinkingDelta | Reply]:
        """The last deltas and the reply. Raises ModelUnavailable where the stream ended before the
        reply did."""
        if self._finish is None and not self._ended:
            raise faults.make_broken_reply(self._call, "the stream ended without a finish reason")
        if self._finish in ("error", "network_error"):
            raise faults.make_broken_reply(self._call, "the provider reports an error")
        found: list[TextDelta | ThinkingDelta | Reply] = []
        if thought := self._thinking_cleaner.close():
            self._thinking.append(thought)
            found.append(ThinkingDelta(thought))
        if text := self._text_cleaner.close():
            found += self._add_pieces(self._tags.feed(text))
        found += self._add_pieces(self._tags.close())
        if rest := self._echoes.close():
            self._text.append(rest)
            found.append(TextDelta(rest))
        calls = self._make_calls()
        finish = _FINISH.get(self._finish or "", "stop")
        if calls and finish == "stop":
            finish = "calls"
        elif not calls and finish == "calls":
            finish = "stop"
        found.append(
            Reply(Message("assistant", tuple(self._make_parts(calls))), finish, self._usage)
        )
        return found

    def _make_calls(self) -> list[ToolCall]:
        if not self._calls:
            return []
        found = [(each.id, each.name, each.raw_arguments()) for each in self._calls]
        return make_calls(found, self._request)

    def _make_parts(self, calls: list[ToolCall]) -> list[Part]:
        parts: list[Part] = []
        if self._thinking:
            parts.append(Thinking("".join(self._thinking), "openai"))
        if self._text:
            parts.append(Text("".join(self._text)))
        for building, call in zip(self._calls, calls, strict=True):
            if building.signature:
                parts.append(Thinking("", "openai", signature=building.signature))
            parts.append(call)
        return parts


def _begins_another(known: _Building, index: int | None, given: str, name: str) -> bool:
    """Whether a fragment with this index, id and name is not of the call that is known."""
    if given and known.id and given != known.id:
        return True
    if not (name and known.name):
        return False
    if index is None and not given:
        return True
    is_same = bool(given) and given == known.id
    return not is_same and known.is_complete()


def _split_blocks(blocks: list[dict[str, Any]]) -> tuple[str, str]:
    """Text and reasoning from content that is a list of blocks (Mistral's reasoning models)."""
    text = ""
    thought = ""
    for block in blocks:
        inner = block.get("thinking")
        if isinstance(inner, list):
            pieces = [piece for piece in inner if isinstance(piece, dict)]
            thought += "".join(str(piece.get("text", "")) for piece in pieces)
        elif isinstance(inner, str):
            thought += inner
        elif isinstance(block.get("text"), str):
            text += block["text"]
    return text, thought
