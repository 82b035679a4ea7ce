"""How each event changes the state. A session is a fold over its log: the same events always give
the same state, so a crash loses nothing but time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any

from msgspec.structs import replace

from ..models.base import ContextMessage
from ..types import events as e
from ..types.dates import format_timestamp
from ..types.identity import Participant, participant_key, principal_label
from ..types.labels import LOCAL, Label, join_labels
from ..types.messages import Audio, File, Image, Message, Part, Text, ToolResult, Usage
from ..types.options import FOCUS_ALL, SessionOptions
from ..types.turn import (
    LATE_EDIT,
    STOP_TURN_ONLY,
    HandedOver,
    OpenCall,
    is_handed_to,
    make_pending_ask,
    render_transcript,
    transcribe_parts,
)
from .pending_annotations import add_annotation, add_sent_answer
from .state import State, find_asked_calls

LOOP_GUARD_CALLS = 8
"""So many last calls are remembered for the loop guard."""


def fold(state: State, events: Iterable[e.Recorded]) -> State:
    """Apply events in order, in place. The same events always give the same state."""
    for recorded in events:
        _FOLDS[type(recorded.event)](state, recorded, recorded.event)
        state.n = recorded.n
    return state


def _receive(state: State, recorded: e.Recorded, event: e.MessageReceived) -> None:
    if state.turn is None:
        if state.archived:
            state.begin_conversation()
        state.turn = _open_turn(recorded, event)
    else:
        _steer_turn(state.turn, event)
    if event.external_id:
        state.turn.heard.append(event.external_id)
    _track_participant(state, event)

    message = event.message
    if message.role == "user":
        state.turn.said.append(message.own_text)
        message = _with_notes(state, recorded.at, message)
    _append_message(state, recorded.n, message)


def _open_turn(recorded: e.Recorded, event: e.MessageReceived) -> e.Turn:
    return e.Turn(
        principal=event.principal,
        address=event.address,
        answers=[event.inbox_id],
        opened_at=recorded.at,
        steps=0,
        usage=Usage(),
        reply_to=event.external_id if event.address.group else "",
        request=event.request,
    )


def _steer_turn(turn: e.Turn, event: e.MessageReceived) -> None:
    """What the model has answered so far is no longer the answer."""
    turn.answers.append(event.inbox_id)
    turn.request = event.request or turn.request
    turn.pieces = []
    turn.empty = 0
    turn.finish = ""
    turn.ending = ""


def _track_participant(state: State, event: e.MessageReceived) -> None:
    who = event.principal
    known = state.participants.get(participant_key(who, event.address, event.sender))
    now = Participant(who.on_behalf_of or who.id, "owner" in who.roles)
    if event.address.group or known != now:
        state.add_participant(who, event.address, event.sender)


def _with_notes(state: State, at: float, message: Message) -> Message:
    """The message behind its date, and behind what happened since the last one."""
    notes: tuple[Text, ...] = ()
    if state.zone is not None:
        notes += (Text(format_timestamp(at, state.zone), LOCAL),)
    if state.asides:
        notes += tuple(state.asides.values())
        state.asides = {}
    return Message("user", (*notes, *message.parts)) if notes else message


def _add_history(state: State, recorded: e.Recorded, event: e.HistoryMessage) -> None:
    if state.turn is None and state.archived:
        state.begin_conversation()
    if event.message.role == "assistant":
        # Unlike a reply that was made here, it may be made of anything.
        for part in event.message.parts:
            _track_part(state, part)
    _append_message(state, recorded.n, event.message)


def _hand_over(state: State, recorded: e.Recorded, event: e.CallsHandedOver) -> None:
    for call_id, name in event.ids.items():
        state.calls[call_id].handed = HandedOver(name, event.until, event.to)
        state.calls[call_id].rests_since = recorded.at


def _add_results(state: State, recorded: e.Recorded, event: e.ResultsReturned) -> None:
    """The program asks again, so it has again all that a turn may use."""
    turn = _require_turn(state)
    turn.answers.append(event.inbox_id)
    turn.request = event.request
    turn.steps = turn.asked = 0
    turn.usage = Usage()
    turn.hinted = set()


def _recall(state: State, recorded: e.Recorded, event: e.Recalled) -> None:
    turn = _require_turn(state)
    turn.recalled = len(turn.said)
    turn.transcripts = []
    if state.messages[-1].message.role == "user":
        said = state.messages.pop()
        _append_message(state, said.n, Message("user", (*said.message.parts, event.part)))
    else:
        # After an answered question the last message is the result of the call that asked it.
        _append_message(state, recorded.n, Message("user", (event.part,)))


def _reply(state: State, recorded: e.Recorded, event: e.ModelReplied) -> None:
    used = event.usage
    calls = event.message.calls
    _require_turn(state).count_reply(event)
    state.usage += used
    state.context_tokens = used.input_tokens + used.output_tokens
    state.model = event.model
    if calls or state.calls:
        state.calls = {call.id: OpenCall(call, recorded.n) for call in calls}
    if calls or event.message.text.strip():
        _append_message(state, recorded.n, event.message)


def _end(state: State, recorded: e.Recorded, event: e.TurnEnded) -> None:
    if event.said:
        _append_message(state, recorded.n, Message("assistant", (Text(event.said, LOCAL),)))
    state.turn = None


def _start(state: State, recorded: e.Recorded, event: e.ToolStarted) -> None:
    call = state.calls[event.call_id]
    call.started = True
    call.resumed = call.answer is not None


def _finish(state: State, recorded: e.Recorded, event: e.ToolFinished) -> None:
    _close_call(state, recorded.n, event.result)
    if event.end_turn:
        _require_turn(state).ending = event.result.text or "Done."


def _close(state: State, recorded: e.Recorded, event: e.CallClosed) -> None:
    turn = _require_turn(state)
    if is_handed_to(state.calls[event.call_id], "client"):
        turn.request = None  # the program that asked waits no more
    reason = Text(event.reason, LOCAL)
    _close_call(state, recorded.n, ToolResult(event.call_id, (reason,), event.status))
    if event.status == "denied":
        turn.asked += 1  # there were too many questions: people are told so once


def _spend(state: State, recorded: e.Recorded, event: e.AskedAside) -> None:
    state.usage += event.usage
    if state.turn is not None:
        state.turn.usage += event.usage


def _close_call(state: State, n: int, result: ToolResult) -> None:
    turn = _require_turn(state)
    closed = state.calls.pop(result.call_id)
    _append_message(state, n, Message("tool", (result,)))
    mark = blake2b(f"{closed.call.name}\0".encode() + bytes(closed.call.arguments), digest_size=12)
    mark.update(result.text.encode())
    turn.marks = [*turn.marks[1 - LOOP_GUARD_CALLS :], mark.digest()]


def _ask_approval(state: State, recorded: e.Recorded, event: e.ApprovalAsked) -> None:
    turn = _require_turn(state)
    for bound in event.calls:
        call = state.calls[bound.call_id]
        call.ask = make_pending_ask(event, bound.binds)
        call.rests_since = recorded.at
        turn.asked += not call.counted
        call.counted = True


def _ask_question(state: State, recorded: e.Recorded, event: e.QuestionAsked) -> None:
    call = state.calls[event.call_id]
    call.ask = make_pending_ask(event)
    call.answer, call.resumes, call.resumed = None, event.resumes, False
    call.rests_since = recorded.at


def _answer(
    state: State, recorded: e.Recorded, event: e.ApprovalAnswered | e.QuestionAnswered
) -> None:
    turn = _require_turn(state)
    asked = find_asked_calls(state, event.ask_id)
    for call in asked:
        call.apply_answer(event, recorded.at)
    turn.answers.append(event.inbox_id)
    # The words of an answer that a tool takes may be the tool's own: they order nothing.
    if isinstance(event, e.QuestionAnswered) and not any(call.resumes for call in asked):
        turn.said.append(event.message.own_text)


def _fail(state: State, recorded: e.Recorded, event: e.ModelFailed) -> None:
    turn = _require_turn(state)
    turn.failures.append(event)
    turn.failed_at = recorded.at
    turn.overflows += event.error == "ContextOverflow"


def _hint(state: State, recorded: e.Recorded, event: e.Hinted) -> None:
    turn = _require_turn(state)
    turn.hinted.add(event.why)
    if event.why == "schema":
        turn.pieces = []
    _append_message(state, recorded.n, Message("user", (Text(event.text, LOCAL),)))


def _run_command(state: State, recorded: e.Recorded, event: e.CommandRun) -> None:
    if event.turn and event.refused:
        return  # a button that was out of date
    if event.name == "stop":
        state.stopped_at = max(event.inbox_id, event.behind)
        _stop(state, event)
    elif event.name == "start" and state.turn is None:
        state.archived = True
    elif event.name == LATE_EDIT:
        state.edit_told = True
    elif event.to is not None and state.turn is not None:
        state.turn.address = event.to
        state.turn.reply_to = ""  # that message is not there


def _stop(state: State, event: e.CommandRun) -> None:
    summing_up = bool(state.options.compact)
    if summing_up:  # a summary that was asked for is no longer wanted
        state.options = state.options.merge(SessionOptions(compact=""))
    if state.turn is not None:
        state.turn.stopped = True
        state.turn.stop_id = event.inbox_id
    elif not summing_up and event.args != STOP_TURN_ONLY:
        state.archived = True


def _restore(state: State, recorded: e.Recorded, event: e.Compacted) -> None:
    ledger = event.ledger
    state.begin_conversation()
    for n, message in event.kept:
        _append_message(state, n, message)
    state.context_tokens = ledger.context_tokens
    state.masked_up_to = ledger.masked_up_to
    state.compacted_at = recorded.n
    state.label = ledger.label
    state.asides = dict(ledger.asides)
    state.sent = dict(ledger.sent)
    state.shared = ledger.shared
    state.person = ledger.person
    state.participants = dict(ledger.participants)
    state.edit_told = ledger.edit_told
    state.stopped_at = ledger.stopped_at
    state.usage = ledger.usage
    state.archived = ledger.archived
    state.options = ledger.options
    state.join_prompt_label()
    state.turn = None
    if ledger.turn is not None:
        state.turn = ledger.turn.copy()
        state.turn.compacted = state.turn.overflows


def _mask(state: State, recorded: e.Recorded, event: e.Masked) -> None:
    state.masked_up_to = event.up_to_n


def _configure(state: State, recorded: e.Recorded, event: e.OptionsSet) -> None:
    """What somebody has set is their word, and a model obeys some of it."""
    by = principal_label(event.principal).by
    options = event.options
    if options.compact not in (None, "", FOCUS_ALL) and by:  # what matters in a summary
        state.label = join_labels((state.label, Label("member", by=by)))
    state.options = state.options.merge(replace(options, prompt_by=by, title_by=by))
    state.join_prompt_label()


def _append_message(state: State, n: int, message: Message) -> None:
    if message.role != "assistant":
        for part in message.parts:
            _track_part(state, part)
    state.messages.append(ContextMessage(n, message))


def _transcribe(state: State, recorded: e.Recorded, event: e.Transcribed) -> None:
    """What was heard stands in the message, with the label of the recording: a voice can be
    anybody's."""
    turn = _require_turn(state)
    turn.unheard = [blob for blob in turn.unheard if blob != event.blob]
    if not event.problem:
        turn.spoken = event.language
        turn.transcripts.append(event.text)
    transcripts = {event.blob: render_transcript(event)}
    for at, shown in enumerate(state.messages):
        parts = transcribe_parts(shown.message.parts, transcripts)
        if parts != shown.message.parts:
            message = replace(shown.message, parts=parts)
            state.messages[at] = replace(shown, message=message)


def _track_part(state: State, part: Part) -> None:
    """Join the label of one part, and remember which message has the newest picture."""
    if isinstance(part, ToolResult):
        for piece in part.parts:
            _track_part(state, piece)
    elif isinstance(part, (Text, Image, Audio, File)):
        if part.label is not state.label and part.label != state.label:
            state.label = join_labels((state.label, part.label))
        if isinstance(part, Image):
            if state.pictures[-1:] != [len(state.messages)]:
                state.pictures.append(len(state.messages))
        elif isinstance(part, Audio) and state.turn is not None:
            if part.transcript is None:
                state.turn.unheard.append(part.blob)
            else:  # of a turn that is repeated
                state.turn.spoken = state.turn.spoken or ""


def _require_turn(state: State) -> e.Turn:
    if state.turn is None:
        raise AssertionError(f"{state.session!r}: an event of a turn while none is open")
    return state.turn


_FOLDS: dict[type[e.AnyEvent], Callable[[State, e.Recorded, Any], None]] = {
    e.MessageReceived: _receive,
    e.HistoryMessage: _add_history,
    e.Transcribed: _transcribe,
    e.CallsHandedOver: _hand_over,
    e.ResultsReturned: _add_results,
    e.ModelReplied: _reply,
    e.TurnEnded: _end,
    e.ToolStarted: _start,
    e.ToolFinished: _finish,
    e.CallClosed: _close,
    e.AskedAside: _spend,
    e.ApprovalAsked: _ask_approval,
    e.ApprovalAnswered: _answer,
    e.QuestionAsked: _ask_question,
    e.QuestionAnswered: _answer,
    e.ModelFailed: _fail,
    e.Hinted: _hint,
    e.Recalled: _recall,
    e.CommandRun: _run_command,
    e.Compacted: _restore,
    e.Masked: _mask,
    e.MessageEdited: lambda state, _, event: add_annotation(state.asides, state.sent, event),
    e.MessageDeleted: lambda state, _, event: add_annotation(state.asides, state.sent, event),
    e.Reacted: lambda state, _, event: add_annotation(state.asides, state.sent, event),
    e.MessageDelivered: lambda state, _, event: add_sent_answer(state.sent, event, state.messages),
    e.OptionsSet: _configure,
    e.Erased: lambda state, _, event: None,  # nothing that the model sees
    e.Undone: lambda state, _, event: None,  # what is left stands in the `Compacted` behind it
    e.Branched: lambda state, _, event: None,  # the same
}
"""What each kind of event does; by kind, since a cold start goes through thousands."""
