"""What pydantic-ai streams, as our deltas, reply and errors."""

from __future__ import annotations

import json
from typing import Any

from pydantic_ai import exceptions
from pydantic_ai import messages as theirs

from ..types.errors import ModelError
from ..types.events import Finish
from ..types.messages import Message, Part, Text, Thinking, ToolCall, Usage, clean
from . import faults
from .base import Reply, Request, TextDelta, ThinkingDelta
from .decode import TextCleaner, exact_arguments, make_calls, object_text
from .echo import AnswerCleaner
from .faults import FailedCall

Delta = TextDelta | ThinkingDelta

_FINISH: dict[str, Finish] = {"length": "length", "content_filter": "filtered"}

# The status that each of its categories stands for; the words decide further, as for every
# provider. https://pydantic.dev/docs/ai/api/pydantic_ai/exceptions
_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (exceptions.ModelContextWindowExceededError, 413),
    (exceptions.ModelQuotaExceededError, 402),
    (exceptions.ModelRateLimitError, 429),
    (exceptions.ModelOverloadedError, 529),
    (exceptions.ModelAuthenticationError, 401),
    (exceptions.ModelNotFoundError, 404),
)
_SEAL = ("id", "provider_name", "provider_details")


class PydanticAiReply:
    """A reply in the making: feed it events, then close it with the whole response."""

    def __init__(self, call: FailedCall, request: Request) -> None:
        self._call = call
        self._request = request
        self._pieces: dict[int, list[str]] = {}
        self._cleaners: dict[int, TextCleaner] = {}
        self._thinks: set[int] = set()
        self.begun = False

    @property
    def wire(self) -> str:
        """What the reasoning of this model is filed under."""
        return f"pydantic-ai:{self._call.whom}"

    def feed(self, event: object) -> list[Delta]:
        """What this event adds."""
        self.begun = True
        match event:
            case theirs.PartStartEvent(index=index, part=theirs.TextPart(content=text)):
                return self._piece(index, text)
            case theirs.PartStartEvent(index=index, part=theirs.ThinkingPart(content=text)):
                self._thinks.add(index)
                return self._piece(index, text)
            case theirs.PartDeltaEvent(index=index, delta=theirs.TextPartDelta(content_delta=text)):
                return self._piece(index, text)
            case theirs.PartDeltaEvent(
                index=index, delta=theirs.ThinkingPartDelta(content_delta=text)
            ):
                self._thinks.add(index)
                return self._piece(index, text or "")
        return []

    def _piece(self, index: int, text: str) -> list[Delta]:
        pieces = self._pieces.setdefault(index, [])
        if index not in self._cleaners:
            self._cleaners[index] = TextCleaner() if index in self._thinks else AnswerCleaner()
        piece = self._cleaners[index].feed(text)
        return self._told(index, pieces, piece)

    def _told(self, index: int, pieces: list[str], piece: str) -> list[Delta]:
        if not piece:
            return []
        pieces.append(piece)
        return [ThinkingDelta(piece) if index in self._thinks else TextDelta(piece)]

    def close(self, whole: theirs.ModelResponse) -> list[Delta | Reply]:
        """The last deltas and the reply. Raises ModelError where the response broke off."""
        if whole.finish_reason in (None, "error"):
            why = (
                "the provider reports an error"
                if whole.finish_reason
                else "the stream ended without a finish reason"
            )
            raise faults.broken(self._call, why)
        found: list[Delta | Reply] = []
        for index, pieces in self._pieces.items():
            found += self._told(index, pieces, self._cleaners[index].close())
        parts = self._parts(whole)
        called = any(isinstance(part, ToolCall) for part in parts)
        finish = _FINISH.get(whole.finish_reason or "", "calls" if called else "stop")
        used = whole.usage
        counts = (
            used.input_tokens,
            used.output_tokens,
            used.cache_read_tokens,
            used.cache_write_tokens,
        )
        found.append(
            Reply(
                Message("assistant", tuple(parts)),
                finish,
                Usage(*(max(0, count) for count in counts)),
            )
        )
        return found

    def _parts(self, whole: theirs.ModelResponse) -> list[Part]:
        calls = iter(
            self._made_calls([p for p in whole.parts if isinstance(p, theirs.ToolCallPart)])
        )
        texts = iter(
            ["".join(self._pieces[i]) for i in sorted(self._pieces) if i not in self._thinks]
        )
        thoughts = iter(
            ["".join(self._pieces[i]) for i in sorted(self._pieces) if i in self._thinks]
        )
        found: list[Part] = []
        for part in whole.parts:
            match part:
                case theirs.ThinkingPart():
                    fields = {
                        name: getattr(part, name) for name in ("content", "signature", *_SEAL)
                    }
                    found.append(
                        Thinking(next(thoughts, ""), self.wire, "part", clean(object_text(fields)))
                    )
                case theirs.TextPart():
                    found += [*self._seal(part), Text(next(texts, ""))]
                case theirs.ToolCallPart():
                    found += [*self._seal(part), next(calls)]
                case _:
                    pass
        return [part for part in found if not (isinstance(part, Text) and not part.text)]

    def _seal(self, part: theirs.TextPart | theirs.ToolCallPart) -> list[Part]:
        """What the provider wants to see again with this part, as a part of its own before it."""
        fields = {name: value for name in _SEAL if (value := getattr(part, name))}
        return (
            [Thinking("", self.wire, redacted=clean(object_text(fields)))]
            if part.provider_details
            else []
        )

    def _made_calls(self, found: list[theirs.ToolCallPart]) -> list[ToolCall]:
        if not found:
            return []
        return make_calls(
            [(part.tool_call_id, part.tool_name, _arguments(part)) for part in found], self._request
        )


def _arguments(part: theirs.ToolCallPart) -> Any:
    return exact_arguments(
        part.args or "" if not isinstance(part.args, dict) else object_text(part.args)
    )


def failure(call: FailedCall, error: exceptions.AgentRunError | exceptions.UserError) -> ModelError:
    """The error of our tree for one of theirs."""
    if isinstance(error, exceptions.ModelTimeoutError | exceptions.ModelConnectionError):
        return faults.unreachable(call, str(error))
    if not isinstance(error, exceptions.ModelAPIError):
        return faults.malformed(call, str(error))
    asked = {} if error.retry_after is None else {"retry-after": f"{error.retry_after:g}"}
    named = next((status for kind, status in _STATUS if isinstance(error, kind)), 0)
    rejected = isinstance(error, exceptions.ModelRequestRejectedError)
    status = named or getattr(error, "status_code", 0) or (400 if rejected else 500)
    words = str(error) if error.body is None else json.dumps(error.body, default=str)
    return faults.refused(call, status, asked, words.encode("utf-8", "replace"))
