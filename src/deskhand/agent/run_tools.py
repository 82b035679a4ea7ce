"""The step that runs tools: what may run is run, what must be asked is asked, and every call gets
its result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import anyio
from msgspec.structs import replace

from ..policy import approval
from ..policy.information_flow import withhold_private_parts
from ..policy.joint_asks import JointAsk
from ..tools.base import Delegated, Done, Outcome, PersonQuestion
from ..tools.execute_tool import ReadyCall, run_tool
from ..types.door import PREVIEW_CHARS, Progress
from ..types.events import (
    CallClosed,
    CallsHandedOver,
    OptionsSet,
    QuestionAsked,
    ToolFinished,
    ToolStarted,
)
from ..types.interrupt import run_if_slow
from ..types.labels import LOCAL
from ..types.marked_texts import mark_text
from ..types.messages import Text, ToolResult, clean_text
from ..types.steps import RunTools
from ..types.turn import MAY_HAVE_HAPPENED, OpenCall, make_failed_result
from .ask_people import record_ask, send_asks
from .handed_calls import hand_over_calls, split_calls, stop_waiting
from .judge_call import judge_call
from .session import Session
from .tool_context import make_tool_context

COMMIT_DELAY_S = 0.02
"""A tool that may run again and is done sooner has its call and its result written in one
commit."""

_Came = Outcome | None
"""None: a person stopped it."""


async def run_tools(session: Session, step: RunTools, now: float) -> None:
    """Take the next calls that can be taken together: those at the front that may run side by side,
    or one. When ours are done, those of the program's own tools are handed over to it.

    `now` is the time that decided on this step. Afterwards each of them has a result or waits for a
    person. The start of a call that must not
    run twice is on disk before it runs; results are committed with the next step.

    Raises StaleSession, StoreUnavailable. What a tool raises becomes its result.
    """
    if session.journal.has_tool_changes:
        await session.journal.commit()
    turn = session.turn
    ours, theirs = split_calls(step.calls, turn.request)
    if not ours and not theirs:
        session.journal.record(*stop_waiting(step.calls, now))
        return
    if turn.request is not None and theirs and not ours:
        at = session.runtime.clock.now()
        events = hand_over_calls(theirs, turn.request, at, session.runtime.ids.new)
        session.journal.record(*events, at=at)
        return

    asked_before = {call.ask.ask_id for call in step.calls if call.ask is not None}
    group = await _judge_front(session, ours, now)
    if group:
        await _run_group(session, group)
    await send_asks(session, asked_before)


async def _judge_front(session: Session, calls: Sequence[OpenCall], now: float) -> list[ReadyCall]:
    """The calls at the front that may run now, side by side if there are several. Those that are
    settled without running are recorded."""
    group: list[ReadyCall] = []
    for i, call in enumerate(calls):
        if call.ask is not None and now < call.ask.until:
            return group  # several calls have asked side by side, and this one has no answer yet
        verdict = await judge_call(session, call)
        if group and not (isinstance(verdict, ReadyCall) and verdict.tool.spec.is_parallel):
            return group
        match verdict:
            case ReadyCall():
                group.append(verdict)
                if not verdict.tool.spec.is_parallel:
                    return group
            case ToolResult():
                session.journal.record(ToolFinished(verdict))
            case CallClosed():
                _close_unasked(session, verdict)
            case JointAsk():
                await record_ask(session, verdict, calls[i + 1 :])
                return group
    return group


def _close_unasked(session: Session, closed: CallClosed) -> None:
    """The turn has asked too often: people are told so once."""
    turn = session.turn
    is_first = turn.asked == approval.ASKS_PER_TURN
    session.journal.record(closed)
    if is_first:
        session.journal.enqueue_message(turn.address, (Text(closed.reason, LOCAL),))


async def _run_group(session: Session, group: Sequence[ReadyCall]) -> None:
    starts = [
        ToolStarted(ready.call.call.id) for ready in group if ready.tool.spec.replay == "never"
    ]
    if starts:
        session.journal.record(*starts)
        await session.journal.commit()

    clock = session.runtime.clock
    began = clock.monotonic()
    outcomes: list[_Came] = [None] * len(group)
    ended = [math.inf] * len(group)

    async def run(i: int) -> None:
        outcomes[i] = await _run_one(session, group[i])
        ended[i] = clock.monotonic()
        if len(group) > 1:
            _show_preview(session, group[i], outcomes[i])

    with session.interrupt:
        async with run_if_slow(COMMIT_DELAY_S, session.journal.commit):
            if len(group) == 1:
                await run(0)
            else:
                async with anyio.create_task_group() as tasks:
                    for i in range(len(group)):
                        tasks.start_soon(run, i)

    over = clock.monotonic()
    for i, ready in enumerate(group):
        took_s = round(min(ended[i], over) - began, 3)
        _record_outcome(session, ready, outcomes[i], took_s)


async def _run_one(session: Session, ready: ReadyCall) -> Outcome:
    """Run the tool; plugins may skip it, and see what came of it."""
    call = ready.call
    run = partial(
        run_tool, ready.tool, call.call.arguments, partial(make_tool_context, session, call)
    )
    hooks = session.agent.hooks
    if hooks is None:
        return await run()
    return await hooks.around_tool(session.name, session.turn, ready.tool.spec, call.call, run)


def _show_preview(session: Session, ready: ReadyCall, outcome: _Came) -> None:
    """Of calls that run side by side, people see what came of each before all are over."""
    if not isinstance(outcome, Done):
        return
    call_id = ready.call.call.id
    text = clean_text(ToolResult(call_id, outcome.parts).text[:PREVIEW_CHARS])
    preview = Progress(
        "tool_result", session.state.n, text=text, call_id=call_id, status=outcome.status
    )
    session.runtime.publisher.publish(session.name, preview)


def _record_outcome(session: Session, ready: ReadyCall, outcome: _Came, took_s: float) -> None:
    match outcome:
        case Done():
            _record_result(session, ready, outcome, took_s)
        case PersonQuestion():
            _record_question(session, ready, outcome)
        case Delegated(id=name, changes=changes, wait_s=wait_s):
            now = session.runtime.clock.now()
            session.journal.add_tool_changes(changes)
            handed = CallsHandedOver({ready.call.call.id: name}, now + wait_s, "subagent")
            session.journal.record(handed, at=now)
        case None:
            reason = mark_text("stopped by a person")
            if ready.tool.spec.replay == "never":
                reason += f"; {MAY_HAVE_HAPPENED}"
            result = make_failed_result(ready.call, "interrupted", reason)
            session.journal.record(ToolFinished(result, took_s=took_s))


def _record_question(session: Session, ready: ReadyCall, question: PersonQuestion) -> None:
    now = session.runtime.clock.now()
    asked = QuestionAsked(
        session.runtime.ids.new("ask"),
        ready.call.call.id,
        clean_text(question.question),
        question.choices,
        now + question.wait_s,
        session.runtime.store.last_inbox_id(),
        question.resumes,
    )
    session.journal.record(asked, at=now)


def _record_result(session: Session, ready: ReadyCall, done: Done, took_s: float) -> None:
    journal = session.journal
    journal.add_tool_changes(done.changes, done.outbox)
    parts = withhold_private_parts(session.state.audience, done.parts)
    # How it ended would tell people who may not read the result something of it.
    status = done.status if parts == done.parts else "ok"
    cleaned = tuple(
        replace(part, text=clean_text(part.text)) if isinstance(part, Text) else part
        for part in parts
    )
    result = ToolResult(ready.call.call.id, cleaned, status)
    journal.record(ToolFinished(result, done.end_turn, ready.why, took_s))
    if done.options is not None:
        journal.record(OptionsSet(0, session.turn.principal, done.options))
