"""The step that asks a model: one request, its pieces shown as they come, one event at the end."""

from __future__ import annotations

from contextlib import aclosing
from datetime import UTC, datetime
from functools import partial

import anyio
from msgspec.structs import replace

from ..models.answer_schema import find_answer_problem
from ..models.base import Reply, Request
from ..models.chain import SILENT_WAIT_S
from ..models.client_request import truncate_reply
from ..models.stops import StopTexts
from ..models.usable import sanitize_reply
from ..models.window import estimate_max_tokens
from ..types.budget import make_charge, settle_failed_call
from ..types.errors import AnswerUnfit, BudgetSpent, MalformedReply, ModelError, StoreError
from ..types.events import Hinted, Masked, ModelFailed, ModelReplied, Turn
from ..types.labels import LOCAL
from ..types.marked_texts import mark_text
from ..types.messages import Message, Text, Usage, clean_text
from ..types.steps import AskModel
from .context import build_request
from .masking import next_mask_point
from .next_step import answer_text
from .recall import recall_memories
from .reply_in_progress import ReplyInProgress
from .session import Session
from .trace import trace_request


async def ask_model(session: Session, step: AskModel, now: float) -> None:
    """Ask a model once, and record its reply, or its failure and what is tried next.

    What a person cuts short is recorded as an interrupted reply, with what was said so far; where
    nothing was, nothing is recorded. Everything that the model is told is on disk before it is
    asked, but for reports of deliveries and what was recalled from memory. A reply is not on disk
    when this returns: it is committed with the results of its calls, or with the end of the turn.
    That the call failed is.

    Raises StaleSession, StoreUnavailable. What a model or a plugin raises is recorded.
    """
    journal = session.journal
    journal.record(*step.hints)
    _mask_old_results(session)
    if not journal.can_defer_commit:
        await journal.commit()
    recalled = await recall_memories(session)

    model = step.model or _first_model(session)
    attempt = len(session.turn.failures)
    session.reply = ReplyInProgress(
        session.name, model, session.state.n + 1, attempt, recalled, session.runtime
    )
    reply: Reply | None = None
    failure: ModelError | None = None
    with session.interrupt:
        try:
            if step.not_before > now:
                await anyio.sleep(step.not_before - now)
            reply = await _ask(session, session.reply, with_tools=step.tools)
        except ModelError as error:
            failure = error
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 -- a model from outside may raise anything; the person is told
            failure = ModelError(f"{model} failed: {type(error).__name__}: {error}")

    if failure is None:
        _record_reply(session, session.reply, reply, with_tools=step.tools)
    else:
        await _record_failure(session, session.reply, failure)
    session.reply = None
    await _check_answer_schema(session)
    _send_text_beside_calls(session)


def _mask_old_results(session: Session) -> None:
    """Show old results of tools as one line each from now on, where the context grows too long."""
    state = session.state
    window = session.agent.limits.window
    up_to = next_mask_point(state.messages, state.masked_up_to, state.context_tokens, window)
    if up_to:
        session.journal.record(Masked(up_to))


def _first_model(session: Session) -> str:
    """The first model of the chain that is not cooling down; '' where the chain is empty."""
    runtime = session.runtime
    chosen = runtime.models.next_try(session.agent.models, (), runtime.clock.now())
    return chosen[0] if chosen else ""


async def _ask(session: Session, running: ReplyInProgress, *, with_tools: bool) -> Reply:
    """Build the request and have it answered; plugins may see and change both. Raises ModelError,
    and whatever a model or a plugin raises."""
    request = _build_request(session, running.model, with_tools=with_tools)
    ask = partial(_stream_reply, session, running)
    hooks = session.agent.hooks
    if hooks is None:
        return await ask(request)
    return await hooks.around_llm(session.name, session.turn, request, ask)


def _build_request(session: Session, model: str, *, with_tools: bool) -> Request:
    runtime = session.runtime
    pictures = runtime.pictures
    draft = Request(
        model,
        (),
        (),
        session.schemas if with_tools else (),
        encoded=session.journal.encoded,
        blob=pictures.get if pictures is not None else None,
    )
    scale = runtime.meter.scale(model)
    return build_request(session.agent, session.state, draft, scale, runtime.models.open)


async def _stream_reply(session: Session, running: ReplyInProgress, request: Request) -> Reply:
    """The whole reply, after its pieces were shown. Raises BudgetSpent before the call, else what
    the model raises."""
    runtime = session.runtime
    model = running.model
    await _reserve_tokens(session, running, request)
    if request.stop:
        running.stops = StopTexts(request.stop)
    if session.state.options.tracing:
        for progress in trace_request(model, request, n=running.n, attempt=running.attempt):
            runtime.publisher.publish(session.name, progress)

    reply: Reply | None = None
    pieces = runtime.models.open(model).reply(request)
    async with aclosing(pieces):  # type: ignore[type-var]
        async for piece in pieces:
            if isinstance(piece, Reply):
                running.begun = True
                reply = piece
            else:
                running.show(piece)
    if reply is None:
        raise MalformedReply(f"{model} ended without a reply")
    if running.stops is not None and running.stops.stopped:
        reply = truncate_reply(reply, running.chars)
    runtime.meter.learn(model, request, reply.usage.input_tokens)
    return reply


async def _reserve_tokens(session: Session, running: ReplyInProgress, request: Request) -> None:
    """Hold back the most that this call may use. Raises BudgetSpent."""
    runtime = session.runtime
    charge = make_charge(session.turn.principal, session.name, session.agent.name, running.model)
    scale = runtime.meter.scale(running.model)
    most = estimate_max_tokens(request, session.state.context_tokens, scale)
    if spent := await runtime.budgets.reserve(charge, most, running.key):
        raise BudgetSpent(spent)


def _record_reply(
    session: Session, running: ReplyInProgress, reply: Reply | None, *, with_tools: bool
) -> None:
    """`reply` is None where a person cut it short."""
    text = running.take_text() if reply is None else ""
    if reply is None and text:
        reply = Reply(Message("assistant", (Text(text),)), "interrupted")
    if reply is not None:
        message = sanitize_reply(reply.message, with_tools)
        session.journal.record(ModelReplied(message, running.model, reply.finish, reply.usage))
    usage = reply.usage if reply is not None else Usage()
    session.journal.add_changes(session.runtime.budgets.settle(running.key, usage))


async def _record_failure(session: Session, running: ReplyInProgress, error: ModelError) -> None:
    """Record the failure and what is to be tried next, and tell people who would wait long."""
    runtime = session.runtime
    journal = session.journal
    now = runtime.clock.now()
    journal.add_changes(settle_failed_call(runtime.budgets, running.key, begun=running.begun))
    failed = ModelFailed(
        running.model,
        type(error).__name__,
        clean_text(str(error)),
        retry_after_s=error.retry_after_s,
    )
    failures = (*session.turn.failures, failed)
    again = runtime.models.next_try(session.agent.models, failures, now)
    running.reset()
    if again is not None:
        failed = replace(failed, next_model=again[0], retry_at=again[1])
    journal.record(failed, at=now)
    _announce_wait(session, session.turn, failed, now)
    await journal.commit()


def _announce_wait(session: Session, turn: Turn, failed: ModelFailed, now: float) -> None:
    """Tell people who wait for an answer on a channel until when that takes; elsewhere they see it
    in the log."""
    until = failed.retry_at
    if until is None or until - now <= SILENT_WAIT_S or turn.principal.kind == "clock":
        return
    moment = datetime.fromtimestamp(until, session.state.zone or UTC)
    said = mark_text(
        "{model} asks to wait. I will try again at {time_text}; /stop cancels that."
    ).format(model=failed.next_model, time_text=f"{moment:%H:%M %Z}")
    session.journal.enqueue_message(turn.address, (Text(said, LOCAL),))


async def _check_answer_schema(session: Session) -> None:
    """Where a program wants an answer of a certain form, let the model repair once what does not
    fit; a second misfit fails the turn."""
    turn = session.turn
    schema = turn.request.answer_schema if turn.request is not None else None
    if schema is None or turn.finish != "stop" or not turn.pieces or session.state.calls:
        return
    limiter = session.runtime.schema_limiter
    problem = clean_text(await find_answer_problem(answer_text(turn), schema, limiter))
    if not problem:
        return
    if "schema" in turn.hinted:
        said = f"the answer does not fit the schema: {problem}"
        session.journal.record(ModelFailed(session.state.model, AnswerUnfit.__name__, said))
    else:
        said = (
            f"Your answer does not fit: {problem}. Answer again, with the whole JSON value and "
            "nothing else."
        )
        session.journal.record(Hinted("schema", said))


def _send_text_beside_calls(session: Session) -> None:
    """What the model says beside its calls is a message of its own."""
    state = session.state
    if not state.calls or not state.messages:
        return
    text = state.messages[-1].message.text
    if text.strip():
        session.journal.enqueue_message(session.turn.address, (Text(text),))
