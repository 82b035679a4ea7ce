"""What may enter a session now, and as which events. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..policy.approval import may_approve, read_choice
from ..types import events as e
from ..types.identity import Answer, Command, Edit, Principal, Reaction, Result, Rewind, Said, Waiting
from ..types.labels import LOCAL
from ..types.messages import Message, ResultStatus, Text, ToolResult
from ..types.turn import OpenCall
from .state import State

Commands = Callable[[State, Waiting], list[e.AnyEvent] | None]
"""Carries out a chat command or sets options; [] for what goes back, None for anything else."""


def admit(state: State, waiting: Sequence[Waiting], commands: Commands) -> tuple[Waiting, list[e.AnyEvent]] | None:
    """The next row to take in and the events that it becomes; None when all that waits must go on waiting.

    The classes in order: a stop; other commands, and what goes back; answers to what is open; messages that interrupt;
    messages that steer, once no call is running; and at the end of the turn all that queued, as it arrived.
    Call it again after folding the events. They are none for what goes back: that needs the log (`rewind`).
    """
    for wanted in (_stop, _command, _answer, _interrupt, _enter):
        for row in waiting:
            events = wanted(state, row, commands)
            if events is not None:
                return row, events
    return None


def _stop(state: State, row: Waiting, commands: Commands) -> list[e.AnyEvent] | None:
    body = row.inbound.body
    if not isinstance(body, Command) or body.name != "stop":
        return None
    return [*interrupted(state, f"{row.principal.id} stopped it"), *(commands(state, row) or ())]


def _command(state: State, row: Waiting, commands: Commands) -> list[e.AnyEvent] | None:
    if isinstance(row.inbound.body, Rewind):
        return None if row.inbound.when == "queue" and state.turn is not None else []
    return commands(state, row)


def _answer(state: State, row: Waiting, commands: Commands) -> list[e.AnyEvent] | None:
    body = row.inbound.body
    match body:
        case Answer(ask_id=ask_id, choice=choice):
            call = next((c for c in state.calls.values() if c.ask is not None and c.ask.ask_id == ask_id), None)
            if call is None or call.ask is None or row.inbound.at > call.ask.until:
                said = "That question is no longer open."
            elif call.ask.binds and not may_approve(row.principal):
                said = "Only an owner or an approver may answer that."
            elif not (call.ask.binds or _is_asked(state, row.principal) or "owner" in row.principal.roles):
                said = "That was asked of somebody else."
            else:
                return [_answered(call, row, choice)]
            return [e.CommandRun(row.inbox_id, row.principal, "answer", ask_id, said, refused=True)]
        case Result(call_id=call_id, parts=parts) if call_id in state.calls:
            return [e.ToolFinished(ToolResult(call_id, parts))]
        case Said(message=message):
            call = _resting(state)
            if call is None or call.ask is None or row.inbound.at > call.ask.until:
                return None
            if call.ask.binds:  # anyone who may approve, whoever opened the turn
                meant = bool(read_choice(message.text)) and may_approve(row.principal)
            else:
                meant = _is_asked(state, row.principal)
            return [_answered(call, row, message.text)] if meant else None
        case _:
            return None


def _answered(call: OpenCall, row: Waiting, choice: str) -> e.AnyEvent:
    if call.ask is None:
        raise AssertionError("only an open ask is answered")
    if call.ask.binds:
        choice_ = read_choice(choice) or "no"
        return e.ApprovalAnswered(row.inbox_id, call.ask.ask_id, choice_, row.principal, row.inbound.at)
    body = row.inbound.body
    message = body.message if isinstance(body, Said) else Message("user", (Text(choice, LOCAL),))
    return e.QuestionAnswered(row.inbox_id, call.ask.ask_id, row.principal, message)


def _interrupt(state: State, row: Waiting, commands: Commands) -> list[e.AnyEvent] | None:
    if row.inbound.when != "interrupt" or not isinstance(row.inbound.body, Said) or not _is_asked(state, row.principal):
        return None
    return [*interrupted(state, "overtaken by a new message"), received(row, row.inbound.body.message)]


def _enter(state: State, row: Waiting, commands: Commands) -> list[e.AnyEvent] | None:
    body = row.inbound.body
    if isinstance(body, Reaction):
        return [e.Reacted(row.inbox_id, row.principal, body.of, body.emoji, body.added)]
    if isinstance(body, Edit):
        return [e.MessageEdited(row.inbox_id, body.of, body.message)]
    if isinstance(body, Result):
        message = Message("user", body.parts)
    elif isinstance(body, Said):
        message = body.message
    else:
        return None
    theirs = isinstance(body, Result) or _is_asked(state, row.principal)
    if state.turn is not None and (row.inbound.when == "queue" or not theirs):
        return None
    if state.calls and (_resting(state) is None or isinstance(body, Result)):
        return None  # a call is to be run first; and only a person's words take the place of their answer
    closed = [_closed(call, "superseded", "a new message came instead of an answer") for call in state.calls.values()]
    return [*closed, received(row, message)]


def _is_asked(state: State, principal: Principal) -> bool:
    """Whether the turn is theirs, or was opened in their name."""
    turn = state.turn
    return turn is not None and principal.id in (turn.principal.id, turn.principal.on_behalf_of)


def _resting(state: State) -> OpenCall | None:
    """The first open call, if it waits for a person; those behind it wait for it."""
    first = next(iter(state.calls.values()), None)
    return first if first is not None and first.ask is not None else None


def received(row: Waiting, message: Message) -> e.MessageReceived:
    inbound = row.inbound
    return e.MessageReceived(
        row.inbox_id, row.principal, inbound.address, message, inbound.external_id, inbound.reply_to
    )


def interrupted(state: State, reason: str) -> list[e.AnyEvent]:
    """The end of every open call."""
    return [_closed(call, "interrupted", reason) for call in state.calls.values()]


def _closed(call: OpenCall, status: ResultStatus, reason: str) -> e.CallClosed:
    if call.started and call.ask is None:
        reason = f"{reason}; it may or may not have happened"
    return e.CallClosed(call.call.id, status, reason)
