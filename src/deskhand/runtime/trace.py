"""A trace of a session: each call of a model or a tool, how long it took and what came of it. A fold of the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import msgspec

from ..types import events as e
from ..types.messages import ToolCall, ToolResult, Usage

DETAIL_CHARS = 2_000
_ASIDE = (e.MessageDelivered, e.MessageEdited, e.Reacted, e.CommandRun, e.Erased)
"""They happen beside the turn and say nothing of when a call began."""


class Span(msgspec.Struct, frozen=True, omit_defaults=False):
    """One call. `seq` orders the calls of all sessions and only grows (0: it has not ended); `n` is the event of this
    session that ended it, `parent` that of the model's reply which made a tool's call (0: none). `at` is when it ended,
    in seconds since the epoch. `took_s` is counted from what the log has before it: calls that run side by side all
    count until the last of them was over.

    `status` is a model's finish, a result's status, `failed`, `running` or `waits`. `detail` is what a tool was called
    with, or why a call failed.
    """

    seq: int
    n: int
    session: str
    kind: Literal["model", "tool"]
    name: str
    at: float
    took_s: float
    status: str
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    parent: int = 0
    detail: str = ""


class _Open(msgspec.Struct):
    """A call without a result."""

    call: ToolCall
    n: int
    began: float
    ask_id: str = ""


class Trace:
    """Feed it a session's events in order. `redact` is applied to whatever a person or a model wrote."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._at = self._before = self._retry_at = 0.0
        self._open: dict[str, _Open] = {}

    def add(self, recorded: e.Recorded) -> Iterator[Span]:
        """The calls that this event ended."""
        event = recorded.event
        if isinstance(event, _ASIDE):
            return
        if recorded.at != self._at:
            self._before, self._at = self._at or recorded.at, recorded.at
        match event:
            case e.ModelReplied(message=message, model=model, finish=finish, usage=usage):
                yield self._model(recorded, model, finish, usage)
                self._open = {call.id: _Open(call, recorded.n, recorded.at) for call in message.calls}
            case e.ModelFailed(model=model, error=error, detail=detail, retry_at=retry_at):
                yield self._model(recorded, model, "failed", Usage(), f"{error}: {detail}")
                self._retry_at = retry_at or 0.0
            case e.ToolFinished(result=result):
                yield from self._tool(recorded, result.call_id, result.status, _why(result))
            case e.CallClosed(call_id=call_id, status=status, reason=reason):
                yield from self._tool(recorded, call_id, status, reason)
            case e.ApprovalAsked(call_id=call_id) | e.QuestionAsked(call_id=call_id) if call_id in self._open:
                self._open[call_id].ask_id = event.ask_id
            case e.ApprovalAnswered() | e.QuestionAnswered():
                for each in self._open.values():
                    each.ask_id = "" if each.ask_id == event.ask_id else each.ask_id
            case _:
                pass

    def running(self, session: str) -> list[Span]:
        """The calls that have no result yet."""
        return [
            Span(
                0,
                each.n,
                session,
                "tool",
                each.call.name,
                each.began,
                0.0,
                "waits" if each.ask_id else "running",
                parent=each.n,
                detail=self._arguments(each.call),
            )
            for each in self._open.values()
        ]

    def _model(self, recorded: e.Recorded, model: str, status: str, usage: Usage, why: str = "") -> Span:
        took_s = max(0.0, recorded.at - max(self._before, self._retry_at))
        self._retry_at = 0.0
        spent = (usage.input_tokens, usage.output_tokens, usage.cached_tokens)
        at, n, detail = recorded.at, recorded.n, self._redact(why)[:DETAIL_CHARS]
        return Span(recorded.seq, n, recorded.session, "model", model, at, took_s, status, *spent, detail=detail)

    def _tool(self, recorded: e.Recorded, call_id: str, status: str, why: str) -> Iterator[Span]:
        known = self._open.pop(call_id, None)
        if known is None:
            return
        detail = self._arguments(known.call)
        if status != "ok" and why:
            detail = f"{detail}  {self._redact(why)[:DETAIL_CHARS]}".strip()
        took_s = max(0.0, recorded.at - max(self._before, known.began))
        yield Span(
            recorded.seq,
            recorded.n,
            recorded.session,
            "tool",
            known.call.name,
            recorded.at,
            took_s,
            status,
            parent=known.n,
            detail=detail,
        )

    def _arguments(self, call: ToolCall) -> str:
        """What it was called with, on one line; redacted before it is cut, so that no half of a secret is left."""
        raw = bytes(call.arguments).decode(errors="replace")
        return self._redact("" if raw == "{}" else raw)[:DETAIL_CHARS]


def _why(result: ToolResult) -> str:
    return next((line for line in result.text.splitlines() if line.strip()), "")
