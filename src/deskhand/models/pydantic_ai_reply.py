"""What pydantic-ai streams, as our deltas, reply and errors."""

from __future__ import annotations

import json
from typing import Any

from pydantic_ai import exceptions
from pydantic_ai import messages as theirs

from ..types.errors import ModelError
from ..types.events import Finish
from ..types.messages import Message, Part, Text, Thinking, ToolCall, Usage, clean_text
from . import faults
from .answer_cleaner import AnswerCleaner
from .base import Reply, Request, TextDelta, ThinkingDelta
from .decode import TextCleaner, encode_object, make_calls, normalize_arguments
from .faults import FailedCall

Delta = TextDelta | ThinkingDelta

_FINISH: dict[str, Finish] = {"length": "length", "content_filter": "filtered"}

# The status that each of its categories stands for; the words decide further, as for every
# provider. https://pydantic.dev/docs/ai/api/pydantic_ai/exceptions
_STATUS_BY_ERROR: tuple[tuple[type[Exception], int], ...] = (
    (exceptions.ModelContextWindowExceededError, 413),
    (exceptions.ModelQuotaExceededError, 402),
    (exceptions.ModelRateLimitError, 429),
    (exceptions.ModelOverloadedError, 529),
    (exceptions.ModelAuthenticationError, 401),
    (exceptions.ModelNotFoundError, 404),
)
_SEAL_FIELDS = ("id", "provider_name", "provider_details")


class PydanticAiReply:
    """A reply in the making: feed it events, then close it with the whole response."""

    def __init__(self, call: FailedCall, request: Request) -> None:
        self._call = call
        self._request = request
        self._pieces: dict[int, list[str]] = {}
        self._cleaners: dict[int, TextCleaner] = {}
        self._thinks: set[int] = set()
        self.has_begun = False

    @property
    def wire(self) -> str:
        """What the reasoning of this model is filed under."""
        return f"pydantic-ai:{self._call.full_name}"

    def feed(self, event: object) -> list[Delta]:
        """What this event adds."""
        self.has_begun = True
        match event:
            case theirs.PartStartEvent(index=index, part=theirs.TextPart(content=text)):
                return self._add_text(index, text)
            case theirs.PartStartEvent(index=index, part=theirs.ThinkingPart(content=text)):
                self._thinks.add(index)
                return self._add_text(index, text)
            case theirs.PartDeltaEvent(index=index, delta=theirs.TextPartDelta(content_delta=text)):
                return self._add_text(index, text)
            case theirs.PartDeltaEvent(
                index=index, delta=theirs.ThinkingPartDelta(content_delta=text)
            ):
                self._thinks.add(index)
                return self._add_text(index, text or "")
        return []

    def _add_text(self, index: int, text: str) -> list[Delta]:
        pieces = self._pieces.setdefault(index, [])
        if index not in self._cleaners:
            self._cleaners[index] = TextCleaner() if index in self._thinks else AnswerCleaner()
        piece = self._cleaners[index].feed(text)
        return self._add_piece(index, pieces, piece)

    def _add_piece(self, index: int, pieces: list[str], piece: str) -> list[Delta]:
        if not piece:
            return []
        pieces.append(piece)
        return [ThinkingDelta(piece) if index in self._thinks else TextDelta(piece)]

    def close(self, whole: theirs.ModelResponse) -> list[Delta | Reply]:
        """The last deltas and the reply. Raises ModelError where the response broke off."""
        if whole.finish_reason is None:
            why = "the stream ended without a finish reason"
            raise faults.make_broken_reply(self._call, why)
        if whole.finish_reason == "error":
            raise faults.make_broken_reply(self._call, "the provider reports an error")
        found: list[Delta | Reply] = []
        for index, pieces in self._pieces.items():
            found += self._add_piece(index, pieces, self._cleaners[index].close())
        parts = self._make_parts(whole)
        called = any(isinstance(part, ToolCall) for part in parts)
        finish = _FINISH.get(whole.finish_reason or "", "calls" if called else "stop")
        used = whole.usage
        usage = Usage(
            max(0, used.input_tokens),
            max(0, used.output_tokens),
            max(0, used.cache_read_tokens),
            max(0, used.cache_write_tokens),
        )
        found.append(Reply(Message("assistant", tuple(parts)), finish, usage))
        return found

    def _make_parts(self, whole: theirs.ModelResponse) -> list[Part]:
        called = [part for part in whole.parts if isinstance(part, theirs.ToolCallPart)]
        calls = iter(self._make_calls(called))
        whole_texts = [(index, "".join(self._pieces[index])) for index in sorted(self._pieces)]
        texts = iter([text for index, text in whole_texts if index not in self._thinks])
        thoughts = iter([text for index, text in whole_texts if index in self._thinks])
        found: list[Part] = []
        for part in whole.parts:
            match part:
                case theirs.ThinkingPart():
                    names = ("content", "signature", *_SEAL_FIELDS)
                    fields = {name: getattr(part, name) for name in names}
                    sealed = clean_text(encode_object(fields))
                    found.append(Thinking(next(thoughts, ""), self.wire, "part", sealed))
                case theirs.TextPart():
                    found += [*self._make_seal(part), Text(next(texts, ""))]
                case theirs.ToolCallPart():
                    found += [*self._make_seal(part), next(calls)]
                case _:
                    pass
        return [part for part in found if not (isinstance(part, Text) and not part.text)]

    def _make_seal(self, part: theirs.TextPart | theirs.ToolCallPart) -> list[Part]:
        """What the provider wants to see again with this part, as a part of its own before it."""
        if not part.provider_details:
            return []
        fields = {name: value for name in _SEAL_FIELDS if (value := getattr(part, name))}
        return [Thinking("", self.wire, redacted=clean_text(encode_object(fields)))]

    def _make_calls(self, found: list[theirs.ToolCallPart]) -> list[ToolCall]:
        if not found:
            return []
        calls = [(part.tool_call_id, part.tool_name, _arguments(part)) for part in found]
        return make_calls(calls, self._request)


def _arguments(part: theirs.ToolCallPart) -> Any:
    if isinstance(part.args, dict):
        return normalize_arguments(encode_object(part.args))
    return normalize_arguments(part.args or "")


def make_model_error(
    call: FailedCall, error: exceptions.AgentRunError | exceptions.UserError
) -> ModelError:
    """The error of our tree for one of theirs."""
    if isinstance(error, exceptions.ModelTimeoutError | exceptions.ModelConnectionError):
        return faults.make_unreachable(call, str(error))
    if not isinstance(error, exceptions.ModelAPIError):
        return faults.make_malformed_reply(call, str(error))
    asked = {} if error.retry_after is None else {"retry-after": f"{error.retry_after:g}"}
    named = next((status for kind, status in _STATUS_BY_ERROR if isinstance(error, kind)), 0)
    rejected = isinstance(error, exceptions.ModelRequestRejectedError)
    status = named or getattr(error, "status_code", 0) or (400 if rejected else 500)
    words = str(error) if error.body is None else json.dumps(error.body, default=str)
    return faults.make_http_error(call, status, asked, words.encode("utf-8", "replace"))
