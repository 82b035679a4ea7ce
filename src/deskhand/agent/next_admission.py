"""What may enter a session now, and as which events. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ..policy.approval import interpret_answer, make_answer_event, may_approve
from ..types import events as e
from ..types.identity import (
    SYSTEM,
    Answer,
    Command,
    Deletion,
    Edit,
    Principal,
    Reaction,
    Result,
    Rewind,
    Said,
    ToolResults,
    Waiting,
    principal_label,
)
from ..types.labels import LOCAL
from ..types.marked_texts import mark_text
from ..types.messages import Audio, Message, ResultPart, Text, ToolResult
from ..types.subagents import CHANNEL
from ..types.turn import (
    GOES_ON,
    LATE_EDIT,
    OpenCall,
    is_handed_to,
    make_call_closed,
    make_interruptions,
    make_message_received,
    make_out_of_date,
)
from .handed_calls import next_call
from .protocols import Commands
from .state import State

EDIT_PREFIX = "edited: "
DELETION_PREFIX = "deleted: "
_STOPPED_BY = mark_text("{who_name} stopped it")
_OVERTAKEN = mark_text("overtaken by a new message")
_NEW_MESSAGE = mark_text("a new message came instead of an answer")
_NO_RESULT = mark_text("the client gave no result for this call")
LATE_EDIT_REPLY = mark_text(
    "I have already answered that message. I will see your change with your next message."
)


def admit_next(
    state: State, waiting: Sequence[Waiting], commands: Commands
) -> tuple[Waiting, list[e.AnyEvent]] | None:
    """The next row to take in and the events that it becomes; None when all that waits must go on
    waiting.

    The classes in order: a stop; other commands, and what goes back; answers to what is open;
    messages that interrupt; messages that steer, once no call is open or the next one waits for
    somebody; and at the end of the turn all that queued, as it arrived. A message that comes
    instead of an answer closes the question, and with it all calls that are still open.

    Call it again after folding the events. They are none for what needs the whole log (`rewind`). A
    `MessageDeleted` may name another row that is then taken in too.
    """
    if len(waiting) > 1 and (withdrawn := _withdraw_unread(waiting)) is not None:
        return withdrawn
    for wanted in (_admit_stop, _admit_command, _admit_answer, _admit_interrupt, _admit_message):
        for row in waiting:
            events = wanted(state, row, commands)
            if events is not None:
                return row, events
    return None


def _withdraw_unread(waiting: Sequence[Waiting]) -> tuple[Waiting, list[e.AnyEvent]] | None:
    """The deletion of a message that still waits, and what it becomes: nobody reads that message.
    Whoever has it deleted by a platform is its sender."""
    for row in waiting:
        body = row.inbound.body
        if not isinstance(body, Deletion):
            continue
        for said in waiting:
            same = said.inbound.external_id == body.of and said.principal == row.principal
            if same and isinstance(said.inbound.body, Said):
                withdrawn = said.inbox_id
                return row, [
                    e.MessageDeleted(row.inbox_id, row.principal, body.of, body.said, withdrawn)
                ]
    return None


def _admit_stop(state: State, row: Waiting, commands: Commands) -> list[e.AnyEvent] | None:
    body = row.inbound.body
    if not isinstance(body, Command) or body.name != "stop":
        return None
    turn = state.turn
    if body.turn and (turn is None or turn.stopped or body.turn not in turn.answers):
        return [make_out_of_date(row, body)]
    return [
        *make_interruptions(state.calls, _STOPPED_BY.format(who_name=row.principal.id)),
        *(commands.run(state, row) or ()),
    ]


def _admit_command(state: State, row: Waiting, commands: Commands) -> list[e.AnyEvent] | None:
    body = row.inbound.body
    if isinstance(body, Deletion) and not (body.said and _is_of_turn(state, row, body.of)):
        return [e.MessageDeleted(row.inbox_id, row.principal, body.of, body.said)]
    if isinstance(body, Rewind):
        return None if row.inbound.when == "queue" and state.turn is not None else []
    return commands.run(state, row)


def _admit_answer(state: State, row: Waiting, commands: Commands) -> list[e.AnyEvent] | None:
    body = row.inbound.body
    match body:
        case Answer(ask_id=ask_id, choice=choice):
            call = next(
                (c for c in state.calls.values() if c.ask is not None and c.ask.ask_id == ask_id),
                None,
            )
            if call is None or call.ask is None or row.inbound.at > call.ask.until:
                said = "That question is no longer open."
            elif call.ask.is_approval and not may_approve(row.principal):
                said = "Only an owner or an approver may answer that."
            elif not (
                call.ask.is_approval
                or _owns_turn(state, row.principal)
                or "owner" in row.principal.roles
            ):
                said = "That question is for somebody else."
            else:
                return [make_answer_event(call.ask, row, choice)]
            return [e.CommandRun(row.inbox_id, row.principal, "answer", ask_id, said, refused=True)]
        case Result(call_id=name, parts=parts):
            return _admit_result(state, name, parts)
        case ToolResults():
            return _admit_results(state, row, body)
        case Said(message=message):
            call = _find_waiting_call(state)
            if call is None or call.ask is None or row.inbound.at > call.ask.until:
                return None
            if row.inbox_id <= call.ask.behind:
                return None  # written before the question was asked, so it answers something else
            if call.ask.is_approval:  # anyone who may approve, whoever opened the turn
                answers = interpret_answer(call.ask, message.own_text) is not None and may_approve(
                    row.principal
                )
            else:
                # Nobody has listened to a recording yet: it is a message of its own.
                is_spoken = any(isinstance(part, Audio) for part in message.parts)
                answers = not is_spoken and _owns_turn(state, row.principal)
            return [make_answer_event(call.ask, row, message.own_text)] if answers else None
        case _:
            return None


def _admit_result(
    state: State, name: str, parts: tuple[ResultPart, ...]
) -> list[e.AnyEvent] | None:
    """What a sub-agent hands back, where the call still waits for it."""
    for call in state.calls.values():
        if call.handed is not None and call.handed.to == "subagent" and call.handed.id == name:
            return [e.ToolFinished(ToolResult(call.call.id, parts))]
    return None


def _admit_results(state: State, row: Waiting, body: ToolResults) -> list[e.AnyEvent]:
    """What a program's tools gave, if it is the one that waits for them. A call that it gives
    nothing for is closed."""
    waiting = {
        call.handed.id: call
        for call in state.calls.values()
        if call.handed is not None and call.handed.to == "client"
    }
    results = {result.call_id: result for result in body.results if result.call_id in waiting}
    if not results or not _owns_turn(state, row.principal):
        said = "These calls are no longer open."
        return [e.CommandRun(row.inbox_id, row.principal, "results", "", said, refused=True)]
    events: list[e.AnyEvent] = []
    for name, call in waiting.items():
        if name in results:
            events.append(e.ToolFinished(replace(results[name], call_id=call.call.id)))
        else:
            events.append(make_call_closed(call, "interrupted", _NO_RESULT))
    events.append(e.ResultsReturned(row.inbox_id, row.principal, tuple(waiting), body.request))
    if body.message is not None:
        events.append(make_message_received(row, body.message, state.participants))
    return events


def _admit_interrupt(state: State, row: Waiting, commands: Commands) -> list[e.AnyEvent] | None:
    if (
        row.inbound.when != "interrupt"
        or not isinstance(row.inbound.body, Said)
        or not _owns_turn(state, row.principal)
        or _is_after_stop(state, row)
    ):
        return None
    return [
        *make_interruptions(state.calls, _OVERTAKEN),
        make_message_received(row, row.inbound.body.message, state.participants),
    ]


def _admit_message(state: State, row: Waiting, commands: Commands) -> list[e.AnyEvent] | None:
    body = row.inbound.body
    if isinstance(body, Reaction):
        return [e.Reacted(row.inbox_id, row.principal, body.of, body.emoji, body.added)]
    if isinstance(body, Edit) and not _is_steering_edit(state, row, body):
        return _admit_late_edit(state, row, body)
    is_subagents = row.inbound.external_id.startswith(f"{CHANNEL}:")
    if isinstance(body, Result) and is_subagents and row.inbox_id <= state.stopped_at:
        # What was stopped since is not told any more.
        return [e.CommandRun(row.inbox_id, row.principal, "result", "", "", refused=True)]
    if isinstance(body, Result):
        message = Message("user", body.parts)
    elif isinstance(body, Said):
        message = body.message
    elif isinstance(body, Edit | Deletion):
        message = _make_change_message(row, body)
    else:
        return None
    if _is_after_stop(state, row):
        return None
    theirs = isinstance(body, Result) or _owns_turn(state, row.principal)
    waits = row.inbound.when == "queue" and not _is_waiting_for_client(state)
    if state.turn is not None and (waits or not theirs):
        return None
    if state.calls and (_find_waiting_call(state) is None or isinstance(body, Result)):
        # a call is to be run first; and only a person's words take the place of their answer
        return None
    events: list[e.AnyEvent] = [_supersede(call) for call in state.calls.values()]
    if isinstance(body, Said) and body.earlier:
        events += [e.HistoryMessage(row.inbox_id, row.principal, each) for each in body.earlier]
    events.append(make_message_received(row, message, state.participants))
    return events


def _supersede(call: OpenCall) -> e.CallClosed:
    """A call that waits is not waited for any more: people are answered at once. A sub-agent goes
    on."""
    if is_handed_to(call, "subagent"):
        return e.CallClosed(call.call.id, "ok", GOES_ON)
    return make_call_closed(call, "superseded", _NEW_MESSAGE)


def _is_of_turn(state: State, row: Waiting, of: str) -> bool:
    """Whether that message of theirs is being worked on."""
    turn = state.turn
    return turn is not None and of in turn.heard and _owns_turn(state, row.principal)


def _is_steering_edit(state: State, row: Waiting, edit: Edit) -> bool:
    """Whether it says something new about what is being worked on."""
    turn = state.turn
    ours = _is_of_turn(state, row, edit.of)
    text = edit.message.own_text
    return ours and turn is not None and not {text, f"{EDIT_PREFIX}{text}"} & {*turn.said}


def _make_change_message(row: Waiting, body: Edit | Deletion) -> Message:
    """The new text, or that the message was taken back, as a further message under the label of its
    words."""
    if isinstance(body, Deletion):
        words = f"{DELETION_PREFIX}{body.said}"
        return Message("user", (Text(words, principal_label(row.principal)),))
    message = body.message
    labels = (part.label for part in message.parts if isinstance(part, Text))
    label = next(labels, LOCAL)  # without a word of theirs there is only ours
    return Message("user", (Text(EDIT_PREFIX, label), *message.parts))


def _admit_late_edit(state: State, row: Waiting, edit: Edit) -> list[e.AnyEvent]:
    """An edit of what was answered is told with the next message; the person hears that once in a
    conversation."""
    events: list[e.AnyEvent] = [e.MessageEdited(row.inbox_id, edit.of, edit.message)]
    if state.turn is None and not state.edit_told:
        events.append(e.CommandRun(row.inbox_id, SYSTEM, LATE_EDIT, "", LATE_EDIT_REPLY))
    return events


def _owns_turn(state: State, principal: Principal) -> bool:
    """Whether the turn is theirs, or was opened in their name."""
    turn = state.turn
    return turn is not None and principal.id in (turn.principal.id, turn.principal.on_behalf_of)


def _is_after_stop(state: State, row: Waiting) -> bool:
    """Whether it was written after the turn was stopped, and so is for a turn of its own."""
    turn = state.turn
    return turn is not None and turn.stopped and row.inbox_id > turn.stop_id


def _find_waiting_call(state: State) -> OpenCall | None:
    """The call that is next, if it waits for a person or a program; the others wait for it."""
    if not state.calls:
        return None
    first = next_call(
        tuple(state.calls.values()), state.turn.request if state.turn is not None else None
    )
    return first if first.ask is not None or first.handed is not None else None


def _is_waiting_for_client(state: State) -> bool:
    """Whether every open call waits for a program: what is said then goes on without it."""
    return bool(state.calls) and all(is_handed_to(call, "client") for call in state.calls.values())
