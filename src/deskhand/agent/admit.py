"""What may enter a session now, and as which events. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from ..policy.approval import answered, may_approve, meant
from ..types import events as e
from ..types.identity import (
    SYSTEM,
    Answer,
    Command,
    Edit,
    Principal,
    Reaction,
    Result,
    Rewind,
    Said,
    ToolResults,
    Waiting,
)
from ..types.messages import Message, Text, ToolResult
from ..types.turn import LATE_EDIT, OpenCall, closed, interrupted, received
from .client_calls import first_of
from .state import State

EDITED = "edited: "
EDITED_LATE = "I have answered that already. What you changed reaches me with your next message."
Commands = Callable[[State, Waiting], list[e.AnyEvent] | None]
"""Carries out a chat command or sets options; [] for what goes back, None for anything else."""


def admit(
    state: State, waiting: Sequence[Waiting], commands: Commands
) -> tuple[Waiting, list[e.AnyEvent]] | None:
    """The next row to take in and the events that it becomes; None when all that waits must go on
    waiting.

    The classes in order: a stop; other commands, and what goes back; answers to what is open;
    messages that interrupt; messages that steer, once no call is running; and at the end of the
    turn all that queued, as it arrived. Call it again after folding the events. They are none for
    what goes back: that needs the log (`rewind`).
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
    return [
        *interrupted(state.calls, f"{row.principal.id} stopped it"),
        *(commands(state, row) or ()),
    ]


def _command(state: State, row: Waiting, commands: Commands) -> list[e.AnyEvent] | None:
    if isinstance(row.inbound.body, Rewind):
        return None if row.inbound.when == "queue" and state.turn is not None else []
    return commands(state, row)


def _answer(state: State, row: Waiting, commands: Commands) -> list[e.AnyEvent] | None:
    body = row.inbound.body
    match body:
        case Answer(ask_id=ask_id, choice=choice):
            call = next(
                (c for c in state.calls.values() if c.ask is not None and c.ask.ask_id == ask_id),
                None,
            )
            if call is None or call.ask is None or row.inbound.at > call.ask.until:
                said = "That question is no longer open."
            elif call.ask.binds and not may_approve(row.principal):
                said = "Only an owner or an approver may answer that."
            elif not (
                call.ask.binds or _is_asked(state, row.principal) or "owner" in row.principal.roles
            ):
                said = "That was asked of somebody else."
            else:
                return [answered(call.ask, row, choice)]
            return [e.CommandRun(row.inbox_id, row.principal, "answer", ask_id, said, refused=True)]
        case Result(call_id=call_id, parts=parts) if call_id in state.calls:
            return [e.ToolFinished(ToolResult(call_id, parts))]
        case ToolResults():
            return _returned(state, row, body)
        case Said(message=message):
            call = _resting(state)
            if call is None or call.ask is None or row.inbound.at > call.ask.until:
                return None
            if call.ask.binds:  # anyone who may approve, whoever opened the turn
                answers = meant(call.ask, message.typed) is not None and may_approve(row.principal)
            else:
                answers = _is_asked(state, row.principal)
            return [answered(call.ask, row, message.typed)] if answers else None
        case _:
            return None


def _returned(state: State, row: Waiting, body: ToolResults) -> list[e.AnyEvent]:
    """What a program's tools gave, if it is the one that waits for them. A call that it gives
    nothing for is closed."""
    waiting = {call.handed.id: call for call in state.calls.values() if call.handed is not None}
    results = {result.call_id: result for result in body.results if result.call_id in waiting}
    if not results or not _is_asked(state, row.principal):
        said = "These calls are no longer open."
        return [e.CommandRun(row.inbox_id, row.principal, "results", "", said, refused=True)]
    events: list[e.AnyEvent] = []
    for name, call in waiting.items():
        if name in results:
            events.append(e.ToolFinished(replace(results[name], call_id=call.call.id)))
        else:
            events.append(closed(call, "interrupted", "the client gave no result for this call"))
    events.append(e.ResultsReturned(row.inbox_id, row.principal, tuple(waiting), body.request))
    if body.message is not None:
        events.append(received(row, body.message, state.participants))
    return events


def _interrupt(state: State, row: Waiting, commands: Commands) -> list[e.AnyEvent] | None:
    if (
        row.inbound.when != "interrupt"
        or not isinstance(row.inbound.body, Said)
        or not _is_asked(state, row.principal)
    ):
        return None
    return [
        *interrupted(state.calls, "overtaken by a new message"),
        received(row, row.inbound.body.message, state.participants),
    ]


def _enter(state: State, row: Waiting, commands: Commands) -> list[e.AnyEvent] | None:
    body = row.inbound.body
    if isinstance(body, Reaction):
        return [e.Reacted(row.inbox_id, row.principal, body.of, body.emoji, body.added)]
    if isinstance(body, Edit) and not _steers(state, row, body):
        return _too_late(state, row, body)
    if isinstance(body, Result):
        message = Message("user", body.parts)
    elif isinstance(body, Said):
        message = body.message
    elif isinstance(body, Edit):
        message = _again(body.message)
    else:
        return None
    theirs = isinstance(body, Result) or _is_asked(state, row.principal)
    waits = row.inbound.when == "queue" and not _rests_for_program(state)
    if state.turn is not None and (waits or not theirs):
        return None
    if state.calls and (_resting(state) is None or isinstance(body, Result)):
        # a call is to be run first; and only a person's words take the place of their answer
        return None
    why = "a new message came instead of an answer"
    events: list[e.AnyEvent] = [closed(call, "superseded", why) for call in state.calls.values()]
    if isinstance(body, Said) and body.earlier:
        events += [e.HistoryMessage(row.inbox_id, row.principal, each) for each in body.earlier]
    events.append(received(row, message, state.participants))
    return events


def _steers(state: State, row: Waiting, edit: Edit) -> bool:
    """Whether it says something new about what is being worked on."""
    turn = state.turn
    ours = turn is not None and edit.of in turn.heard and _is_asked(state, row.principal)
    text = edit.message.typed
    return ours and turn is not None and not {text, f"{EDITED}{text}"} & {*turn.said}


def _again(message: Message) -> Message:
    """The new text as a further message, under the label of its words."""
    label = next(part.label for part in message.parts if isinstance(part, Text))
    return Message("user", (Text(EDITED, label), *message.parts))


def _too_late(state: State, row: Waiting, edit: Edit) -> list[e.AnyEvent]:
    """An edit of what was answered is told with the next message; the person hears that once in a
    conversation."""
    events: list[e.AnyEvent] = [e.MessageEdited(row.inbox_id, edit.of, edit.message)]
    if state.turn is None and not state.edit_told:
        events.append(e.CommandRun(row.inbox_id, SYSTEM, LATE_EDIT, "", EDITED_LATE))
    return events


def _is_asked(state: State, principal: Principal) -> bool:
    """Whether the turn is theirs, or was opened in their name."""
    turn = state.turn
    return turn is not None and principal.id in (turn.principal.id, turn.principal.on_behalf_of)


def _resting(state: State) -> OpenCall | None:
    """The call that is next, if it waits for a person or a program; the others wait for it."""
    if not state.calls:
        return None
    first = first_of(
        tuple(state.calls.values()), state.turn.request if state.turn is not None else None
    )
    return first if first.ask is not None or first.handed is not None else None


def _rests_for_program(state: State) -> bool:
    """Whether every open call waits for a program: what is said then goes on without it."""
    return bool(state.calls) and all(call.handed is not None for call in state.calls.values())
