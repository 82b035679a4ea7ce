"""A trace of a session: each turn, and each call of a model or a tool in it: how long it took, what
came of it. A fold of the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

import msgspec

from ..types import events as e
from ..types.messages import ToolCall, Usage
from ..types.trace_ids import SpanParent, make_span_id, make_trace_id

DETAIL_CHARS = 2_000
PREVIEW_CHARS = 200
_SIDE_EVENTS = (
    e.MessageDelivered,
    e.MessageEdited,
    e.MessageDeleted,
    e.Reacted,
    e.CommandRun,
    e.Erased,
)
"""They happen beside the turn and say nothing of when a call began."""

SpanKind = Literal["agent_run", "llm_call", "tool_call"]


class TraceSpan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """A turn (`agent_run`), or one call in it. The ids are the same each time that a log is read:
    `trace_id` is that of the turn of people. `parent_id` is '' for that turn, the call that gave
    the task for the turn of a sub-agent, the turn for a call of a model, the call of the model for
    what it called, and the call of the tool for what that asked a model.

    `seq` orders what has ended in all sessions and only grows (0: it has not ended); `n` is the
    event of this session that ended it, `parent` that of the model's reply which made a tool's call
    (0: none). Times are in seconds since the epoch: `began_at`, and `at`, when it ended. `took_s`
    is what a tool measured itself; of a model it is the time since the event before, and in logs
    that are older, of a tool as well.

    `status` is why a turn ended, a model's finish, a result's status, `failed`, `running` or
    `waits`. `detail` is what a tool was called with, or why a call failed; `preview` how what came
    of it begins.
    """

    kind: SpanKind
    trace_id: str
    span_id: str
    parent_id: str = ""
    seq: int = 0
    n: int
    session: str
    name: str
    began_at: float
    at: float
    took_s: float
    status: str
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    parent: int = 0
    detail: str = ""
    preview: str = ""


class _Run(msgspec.Struct):
    """A turn that has not ended. `said` is what the model said last."""

    n: int
    began: float
    trace_id: str
    parent_id: str = ""
    usage: Usage = Usage()
    said: str = ""


class _LlmCall(msgspec.Struct, kw_only=True):
    """What an event says of the call of a model that it ended. `call_id` is the call of the tool
    that made it."""

    status: str
    usage: Usage = Usage()
    why: str = ""
    said: str = ""
    call_id: str = ""
    took_s: float = 0.0
    retry_at: float = 0.0


class _Open(msgspec.Struct):
    """A call without a result."""

    call: ToolCall
    n: int
    began: float
    ask_id: str = ""


class Trace:
    """Feed it a session's events in order. `redact` is applied to whatever a person or a model
    wrote. `parents` are the calls that gave the tasks of a sub-agent, by the ids of the messages
    that it was given them in."""

    def __init__(
        self, redact: Callable[[str], str], parents: Mapping[str, SpanParent] | None = None
    ) -> None:
        self.parents = parents or {}
        self._redact = redact
        self._at = 0.0
        self._last = 0.0
        self._before = 0.0
        self._retry_at = 0.0
        self._run: _Run | None = None
        self._open: dict[str, _Open] = {}

    def add(self, recorded: e.Recorded) -> Iterator[TraceSpan]:
        """What this event ended."""
        event = recorded.event
        if isinstance(event, _SIDE_EVENTS):
            return
        self._last = self._at or recorded.at
        if recorded.at != self._at:  # calls that ran side by side are over at the same time
            self._before = self._last
        self._at = recorded.at
        self._track(recorded)
        match event:
            case e.ModelReplied() | e.ModelFailed() | e.AskedAside():
                yield self._llm_span(recorded, event)
            case e.ToolFinished(result=result, took_s=took_s):
                yield from self._tool_spans(
                    recorded, result.call_id, result.status, result.text, took_s
                )
            case e.CallClosed(call_id=call_id, status=status, reason=reason):
                yield from self._tool_spans(recorded, call_id, status, reason)
            case e.TurnEnded(reason=reason, said=said) if self._run is not None:
                yield self._end_run(recorded, self._run, reason, said)
            case e.Undone() if self._run is not None:
                yield self._end_run(recorded, self._run, "undone")
            case _:
                pass

    def _track(self, recorded: e.Recorded) -> None:
        """Remember what begins with this event, and who waits for whom."""
        match recorded.event:
            case e.MessageReceived(inbox_id=inbox_id, external_id=given) if self._run is None:
                own = SpanParent(make_trace_id(recorded.session, inbox_id), "")
                parent = self.parents.get(given, own)
                self._run = _Run(recorded.n, recorded.at, parent.trace_id, parent.span_id)
            case e.ModelReplied(message=message):
                self._open = {
                    call.id: _Open(call, recorded.n, recorded.at) for call in message.calls
                }
                if self._run is not None and message.text.strip():
                    self._run.said = message.text
            case e.ToolStarted(call_id=call_id) if call_id in self._open:
                self._open[call_id].began = recorded.at
            case e.ApprovalAsked(calls=calls, ask_id=ask_id):
                for call in calls:
                    if call.call_id in self._open:
                        self._open[call.call_id].ask_id = ask_id
            case e.QuestionAsked(call_id=call_id, ask_id=ask_id):
                if call_id in self._open:
                    self._open[call_id].ask_id = ask_id
            case e.ApprovalAnswered(ask_id=ask_id) | e.QuestionAnswered(ask_id=ask_id):
                for each in self._open.values():
                    each.ask_id = "" if each.ask_id == ask_id else each.ask_id
            case _:
                pass

    def open_spans(self, session: str) -> list[TraceSpan]:
        """What has not ended yet."""
        spans = [self._open_tool_span(session, each) for each in self._open.values()]
        if self._run is not None:
            waits = any(each.ask_id for each in self._open.values())
            spans.append(
                self._run_span(
                    session, self._run, "waits" if waits else "running", seq=0, n=self._run.n
                )
            )
        return spans

    # ------------------------------------------------------------------ turns

    def _end_run(self, recorded: e.Recorded, run: _Run, reason: str, said: str = "") -> TraceSpan:
        self._run = None
        self._open = {}
        run.said = said or run.said
        return self._run_span(
            recorded.session, run, reason, seq=recorded.seq, n=recorded.n, at=recorded.at
        )

    def _run_span(
        self, session: str, run: _Run, status: str, *, seq: int, n: int, at: float | None = None
    ) -> TraceSpan:
        return TraceSpan(
            kind="agent_run",
            trace_id=run.trace_id,
            span_id=make_span_id(session, run.n),
            parent_id=run.parent_id,
            seq=seq,
            n=n,
            session=session,
            name=session.partition("/")[0],
            began_at=run.began,
            at=run.began if at is None else at,
            took_s=0.0 if at is None else max(0.0, at - run.began),
            status=status,
            input_tokens=run.usage.input_tokens,
            output_tokens=run.usage.output_tokens,
            cached_tokens=run.usage.cached_tokens,
            preview=self._preview(run.said),
        )

    def _turn_ids(self, recorded: e.Recorded) -> tuple[str, str]:
        """The trace and the span of the turn in which this happens; outside of one a trace of its
        own."""
        if self._run is None:
            return make_trace_id(recorded.session, -recorded.n), ""
        return self._run.trace_id, make_span_id(recorded.session, self._run.n)

    # ------------------------------------------------------------------ calls of models

    def _llm_span(
        self, recorded: e.Recorded, event: e.ModelReplied | e.ModelFailed | e.AskedAside
    ) -> TraceSpan:
        made = _parse_llm_call(event)
        if self._run is not None:
            self._run.usage += made.usage

        trace_id, parent_id = self._turn_ids(recorded)
        if made.call_id in self._open:
            parent_id = make_span_id(recorded.session, self._open[made.call_id].n, made.call_id)

        began = min(max(self._last, self._retry_at), recorded.at)
        if made.took_s:
            began = recorded.at - made.took_s
        self._retry_at = made.retry_at

        return TraceSpan(
            kind="llm_call",
            trace_id=trace_id,
            span_id=make_span_id(recorded.session, recorded.n, "llm"),
            parent_id=parent_id,
            seq=recorded.seq,
            n=recorded.n,
            session=recorded.session,
            name=event.model,
            began_at=began,
            at=recorded.at,
            took_s=made.took_s or recorded.at - began,
            status=made.status,
            input_tokens=made.usage.input_tokens,
            output_tokens=made.usage.output_tokens,
            cached_tokens=made.usage.cached_tokens,
            detail=self._redact(made.why)[:DETAIL_CHARS],
            preview=self._preview(made.said),
        )

    # ------------------------------------------------------------------ calls of tools

    def _tool_spans(
        self, recorded: e.Recorded, call_id: str, status: str, text: str, measured_s: float = 0.0
    ) -> Iterator[TraceSpan]:
        known = self._open.pop(call_id, None)
        if known is None:
            return
        detail = self._render_arguments(known.call)
        if status != "ok" and (why := _first_line(text)):
            detail = f"{detail}  {self._redact(why)[:DETAIL_CHARS]}".strip()
        began = (
            recorded.at - measured_s
            if measured_s
            else min(max(self._before, known.began), recorded.at)
        )
        yield TraceSpan(
            kind="tool_call",
            trace_id=self._turn_ids(recorded)[0],
            span_id=make_span_id(recorded.session, known.n, call_id),
            parent_id=make_span_id(recorded.session, known.n, "llm"),
            seq=recorded.seq,
            n=recorded.n,
            session=recorded.session,
            name=known.call.name,
            began_at=began,
            at=recorded.at,
            took_s=measured_s or recorded.at - began,
            status=status,
            parent=known.n,
            detail=detail,
            preview=self._preview(text),
        )

    def _open_tool_span(self, session: str, each: _Open) -> TraceSpan:
        trace_id = self._run.trace_id if self._run is not None else make_trace_id(session, -each.n)
        return TraceSpan(
            kind="tool_call",
            trace_id=trace_id,
            span_id=make_span_id(session, each.n, each.call.id),
            parent_id=make_span_id(session, each.n, "llm"),
            n=each.n,
            session=session,
            name=each.call.name,
            began_at=each.began,
            at=each.began,
            took_s=0.0,
            status="waits" if each.ask_id else "running",
            parent=each.n,
            detail=self._render_arguments(each.call),
        )

    # ------------------------------------------------------------------ words

    def _render_arguments(self, call: ToolCall) -> str:
        """What it was called with, on one line; redacted before it is cut, so that no half of a
        secret is left."""
        raw = bytes(call.arguments).decode(errors="replace")
        return self._redact("" if raw == "{}" else raw)[:DETAIL_CHARS]

    def _preview(self, text: str) -> str:
        return self._redact(text.strip())[:PREVIEW_CHARS]


def _parse_llm_call(event: e.ModelReplied | e.ModelFailed | e.AskedAside) -> _LlmCall:
    match event:
        case e.ModelReplied(message=message, finish=finish, usage=usage):
            return _LlmCall(status=finish, usage=usage, said=message.text)
        case e.ModelFailed(error=error, detail=detail, retry_at=retry_at):
            return _LlmCall(status="failed", why=f"{error}: {detail}", retry_at=retry_at or 0.0)
        case e.AskedAside(call_id=call_id, usage=usage, took_s=took_s):
            return _LlmCall(status="stop", usage=usage, call_id=call_id, took_s=took_s)


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), "")
