"""What of a turn is its answer, made from the turn's events."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ...models.answer_schema import strip_fence
from ...types import events as e
from ...types.door import Progress
from ...types.messages import ToolCall, Usage
from ..errors import HttpProblem, to_sentence
from .schema import CachedTokens, FunctionCall, ResponseUsage, ToolCallItem

BLANK = "\n\n"
MAX_RETRY_WAIT_S = 20.0
"""A program is not kept waiting for a model that is to be asked again later than this."""


class End(msgspec.Struct, frozen=True):
    """How the answer ends: with a `finish_reason` of OpenAI's, and perhaps calls for the client."""

    finish: str
    calls: tuple[ToolCallItem, ...] = ()


class TurnAnswer:
    """Takes the events of the turn that message `inbox_id` began, or went on with. `add` gives what
    is new of the text, each piece once. What was sent cannot be taken back, so that after a failed
    try nothing is given until the whole text is known.

    `text` is the whole answer, as it stands in the end: where the last words were changed before
    they were said, only what they became. With `is_json` it is JSON, or else an error.
    """

    def __init__(
        self, inbox_id: int = 0, redact: Callable[[str], str] = str, *, is_json: bool = False
    ) -> None:
        self._inbox_id = inbox_id
        self._redact = redact
        self._is_json = is_json
        self._before: list[str] = []
        self._last: list[str] = []
        self._calls: dict[str, ToolCall] = {}
        self._failure: e.ModelFailed | None = None
        self._finish = ""
        self._sent = ""
        self._void = self._begun = False
        self.usage = Usage()

    def text(self) -> str:
        """All that was said. Of an answer that is JSON only that, without the fence that models put
        around it."""
        last = "".join(self._last)
        if self._is_json and last:
            return self._redact(strip_fence(last))
        return self._redact(BLANK.join(filter(None, [*self._before, last])))

    def add(self, item: e.Recorded | Progress) -> str:
        if isinstance(item, Progress):
            return self._add_progress(item)
        match item.event:
            case e.ModelReplied():
                return self._add_reply(item.event)
            case e.ModelFailed():
                self._failure = item.event
                return ""
            case e.Hinted(why="schema"):
                self._last = []
                return ""
            case e.ApprovalAsked(question=question) | e.QuestionAsked(question=question):
                return self._add_text(question)
            case e.TurnEnded(said=said, reason=reason) if said:
                if reason == "done":
                    self._last = []
                return self._add_text(said)
            case e.CommandRun(inbox_id=inbox_id, reply=said) if said and inbox_id == self._inbox_id:
                return self._add_text(said)
            case _:
                return ""

    def has_unknown_calls(self, event: e.AnyEvent) -> bool:
        """Whether this hands over calls of a reply that was given before the message: `learn` it
        then."""
        match event:
            case e.CallsHandedOver(ids=ids, to="client"):
                return not ids.keys() <= self._calls.keys()
            case _:
                return False

    def add_calls(self, reply: e.ModelReplied) -> None:
        """The calls of a reply that was given before the message, which is no part of the
        answer."""
        self._calls = {call.id: call for call in reply.message.calls}

    def find_end(self, recorded: e.Recorded) -> End | HttpProblem | None:
        """How the answer ends with this event of its turn; None where it goes on."""
        found = self._find_end(recorded)
        if (
            self._is_json
            and isinstance(found, End)
            and found.finish == "stop"
            and not is_json(self.text())
        ):
            said = f"The answer is no JSON, as `response_format` wants it: {self.text()[:300]}"
            return HttpProblem(502, "response_format", to_sentence(said), param="response_format")
        return found

    def _find_end(self, recorded: e.Recorded) -> End | HttpProblem | None:
        match recorded.event:
            case e.ModelFailed(retry_at=float() as retry_at, detail=detail) if (
                retry_at - recorded.at > MAX_RETRY_WAIT_S
            ):
                return self._failure_problem(detail)
            case e.CallsHandedOver(ids=ids, to="client"):
                return End(
                    "tool_calls",
                    tuple(self._call_item(self._calls[id_], name) for id_, name in ids.items()),
                )
            case e.ApprovalAsked() | e.QuestionAsked():
                return End("stop")  # the next message of this conversation answers it
            case e.CommandRun(inbox_id=inbox_id) if inbox_id == self._inbox_id:
                return End("stop")
            case e.TurnEnded(reason="failed" | "dead", said=said):
                return (
                    End("content_filter")
                    if self._finish == "filtered"
                    else self._failure_problem(said)
                )
            case e.TurnEnded(reason=reason):
                cut = reason in ("steps", "tokens") or self._finish == "length"
                return End("length" if cut else "stop")
            case _:
                return None

    def _add_progress(self, item: Progress) -> str:
        if item.kind == "reset":
            self._void = True
        if item.kind not in ("text", "snapshot") or self._void:
            return ""
        fresh = item.text[max(0, len(self._sent) - item.offset) :]
        piece = fresh if self._is_continuing() else self._separate(fresh)
        self._sent += fresh
        return piece

    def _is_continuing(self) -> bool:
        """Whether what comes next continues a reply that was cut."""
        return self._finish == "length" and bool(self._last)

    def _add_reply(self, event: e.ModelReplied) -> str:
        self.usage += event.usage
        text = event.message.text
        calls = event.message.calls
        self._calls = {call.id: call for call in calls}
        goes_on = self._is_continuing()
        self._failure = None
        self._finish = event.finish
        if text.startswith(self._sent):
            fresh = text[len(self._sent) :]
            fresh = fresh if goes_on else self._separate(fresh)
        else:
            fresh = f"{BLANK}{text}"
        self._begun = self._begun or bool(text)
        self._sent = ""
        self._void = False
        if calls:
            self._before += ["".join([*self._last, text])]
            self._last = []
        else:
            self._last = [*self._last, text] if goes_on else [text]
        return fresh

    def _add_text(self, text: str) -> str:
        if self._last:
            self._before.append("".join(self._last))
        self._last = [text]
        piece = self._separate(text)
        self._begun = True
        return piece

    def _separate(self, text: str) -> str:
        return f"{BLANK}{text}" if text and self._begun and not self._sent else text

    def _call_item(self, call: ToolCall, name: str) -> ToolCallItem:
        arguments = bytes(call.arguments)
        if arguments[:1] == b'"':  # what the model wrote was no JSON
            arguments = msgspec.json.decode(arguments, type=str).encode()
        return ToolCallItem(
            name, FunctionCall(call.name, self._redact(arguments.decode("utf-8", "replace")))
        )

    def _failure_problem(self, said: str) -> HttpProblem:
        message = to_sentence(said or "the model could not be asked")
        failed = self._failure
        match failed.error if failed is not None else "":
            case "ContextOverflow":
                return HttpProblem(400, "context_length_exceeded", message, param="messages")
            case "BudgetSpent":
                return HttpProblem(429, "insufficient_quota", message)
            case "ModelOverloaded":
                wait_s = failed.retry_after_s if failed is not None else None
                return HttpProblem(429, "rate_limit_exceeded", message, _retry_after(wait_s))
            case "AnswerUnfit":
                return HttpProblem(502, "response_format", message, param="response_format")
            case _:
                return HttpProblem(502, "model_failed", message)


def _retry_after(wait_s: float | None) -> dict[str, str]:
    return {} if wait_s is None else {"retry-after": str(max(1, round(wait_s)))}


def is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def to_usage_view(usage: Usage) -> ResponseUsage:
    read = usage.input_tokens
    written = usage.output_tokens
    return ResponseUsage(read, written, read + written, CachedTokens(usage.cached_tokens))
