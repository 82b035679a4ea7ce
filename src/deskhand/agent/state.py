"""A session is a fold over its log. `State` is what the events so far have come to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import tzinfo
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec.structs import replace

from ..models.base import ContextMessage
from ..models.message_variants import VARIANTS, apply_variants
from ..models.pending_annotations import add_annotation, add_sent_answer
from ..types import events as e
from ..types.dates import format_timestamp
from ..types.identity import (
    Address,
    Participant,
    Participants,
    Principal,
    Waiting,
    is_read_by_others,
    list_reader_names,
    only_person,
    participant_key,
    principal_label,
    with_participant,
)
from ..types.labels import LOCAL, OWNER, Label, join_labels
from ..types.messages import Audio, File, Image, Message, Part, Text, ToolResult, Usage
from ..types.options import FOCUS_ALL, SessionOptions
from ..types.turn import LATE_EDIT, STOP_TURN_ONLY, HandedOver, OpenCall, make_pending_ask

LOOP_GUARD_CALLS = 8
"""So many last calls are remembered for the loop guard."""


class Conversation(msgspec.Struct, kw_only=True):
    """What ends with a conversation: `/start`, or the first message after a stop at rest, begins
    with none of it.

    `messages` is what the model is to see, every call in it followed by its result unless that call
    is open. `context_tokens` is what the model counted at its last call, `masked_up_to` the event
    up to which old results are one line each, `compacted_at` the event that shortened it last.
    `label` is the lowest of all that it has read, `pictures` where the images are, `asides` what
    the next message is told with, `sent` the latest answers by the platform's ids. `participants`
    are those who have taken part; from them come `shared`, others than owners read it, and
    `person`, the one person who takes part, EVERYBODY where it is a group or several have.
    `edit_told`: it was said what becomes of an edit that comes too late.
    """

    messages: list[ContextMessage] = []
    context_tokens: int = 0
    masked_up_to: int = 0
    compacted_at: int = 0
    label: Label = OWNER
    pictures: list[int] = []
    asides: dict[str, Text] = {}
    sent: dict[str, str] = {}
    participants: Participants = {}
    shared: bool = False
    person: str = ""
    edit_told: bool = False


class State(Conversation):
    """The one mutable struct of the agent; only `fold` touches it.

    `calls` are those without a result, in the order in which they were made. `archived`: the
    conversation is over, and the next message begins another. `zone` is where messages are dated;
    None: not at all. `hours` remembers how the present quarter of an hour is written there.
    """

    session: str
    n: int = 0
    calls: dict[str, OpenCall] = {}
    turn: e.Turn | None = None
    model: str = ""
    usage: Usage = Usage()
    archived: bool = False
    zone: tzinfo | None = None
    hours: dict[int, tuple[str, int]] = {}
    options: SessionOptions = SessionOptions()

    def begin_conversation(self) -> None:
        """Go on with a new conversation: nothing of the one before is shown, counted or trusted any
        more."""
        fresh = Conversation()
        for name in Conversation.__struct_fields__:
            setattr(self, name, getattr(fresh, name))
        self.options = self.options.for_new_conversation()
        self.archived = False
        self.join_prompt_label()

    def join_prompt_label(self) -> None:
        """The system prompt of this conversation is read like all else in it."""
        if self.options.system_prompt and self.options.prompt_by:
            self.label = join_labels((self.label, Label("member", by=self.options.prompt_by)))

    def participants_with(self, row: Waiting) -> Participants:
        """Those who take part once this is taken in; a conversation that is over has nobody."""
        return self._participants_with(row.principal, row.inbound.address, row.inbound.sender)

    def add_participant(self, principal: Principal, address: Address, sender: str) -> None:
        """They have said something."""
        self.participants = self._participants_with(principal, address, sender)
        self.shared = is_read_by_others(self.participants)
        self.person = only_person(self.participants)

    def _participants_with(
        self, principal: Principal, address: Address, sender: str
    ) -> Participants:
        before = {} if self.archived else self.participants
        if (
            not before and self.person and not self.archived
        ):  # a summary that was written before they were kept
            before = {"": Participant(self.person, owner=not self.shared)}
        return with_participant(before, principal, address, sender)

    @property
    def audience(self) -> tuple[str, ...]:
        """Who reads this conversation, as the readers of a label name them; () where others than
        owners do."""
        return () if self.shared or self.turn is None else list_reader_names(self.turn.principal)


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
        reply_to = event.external_id if event.address.group else ""
        state.turn = e.Turn(
            principal=event.principal,
            address=event.address,
            answers=[event.inbox_id],
            opened_at=recorded.at,
            steps=0,
            usage=Usage(),
            reply_to=reply_to,
            request=event.request,
        )
    else:
        state.turn.answers.append(event.inbox_id)
        state.turn.request = event.request or state.turn.request
        state.turn.pieces = []
        state.turn.empty = 0
        state.turn.finish = ""
        state.turn.ending = ""
    if event.external_id:
        state.turn.heard.append(event.external_id)
    who = event.principal
    known = state.participants.get(participant_key(who, event.address, event.sender))
    if event.address.group or known != Participant(
        who.on_behalf_of or who.id, "owner" in who.roles
    ):
        state.add_participant(who, event.address, event.sender)
    message = event.message
    if message.role == "tool":
        return _append_message(state, recorded.n, message)
    state.turn.said.append(message.own_text)
    if state.asides:
        message = Message("user", (*state.asides.values(), *message.parts))
        state.asides = {}
    if state.zone is not None:
        message = Message(
            "user",
            (Text(format_timestamp(recorded.at, state.zone, state.hours), LOCAL), *message.parts),
        )
    return _append_message(state, recorded.n, message)


def _add_history(state: State, recorded: e.Recorded, event: e.HistoryMessage) -> None:
    if state.turn is None and state.archived:
        state.begin_conversation()
    if (
        event.message.role == "assistant"
    ):  # unlike a reply that was made here, it is not made of what is labelled here
        for part in event.message.parts:
            _track_part(state, part)
    _append_message(state, recorded.n, event.message)


def _hand_over(state: State, recorded: e.Recorded, event: e.CallsHandedOver) -> None:
    for call_id, name in event.ids.items():
        state.calls[call_id].handed = HandedOver(name, event.until)
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
    _require_turn(state).recalled = len(_require_turn(state).said)
    if state.messages[-1].message.role != "user":  # it was rewound meanwhile
        return _append_message(state, recorded.n, Message("user", (event.part,)))
    said = state.messages.pop()
    _append_message(state, said.key // VARIANTS, Message("user", (*said.message.parts, event.part)))
    return None


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
    state.calls[event.call_id].started = True


def _finish(state: State, recorded: e.Recorded, event: e.ToolFinished | e.CallClosed) -> None:
    if isinstance(event, e.CallClosed):
        if state.calls[event.call_id].handed is not None:
            _require_turn(state).request = None  # the program that asked waits no more
        _close_call(
            state, recorded.n, ToolResult(event.call_id, (Text(event.reason, LOCAL),), event.status)
        )
        _require_turn(state).asked += (
            event.status == "denied"
        )  # beyond what may be asked: it is told once
    else:
        _close_call(state, recorded.n, event.result)
        if event.end_turn:
            _require_turn(state).ending = event.result.text or "Done."


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


def _ask(
    state: State,
    recorded: e.Recorded,
    event: e.ApprovalAsked | e.QuestionAsked | e.ApprovalAnswered | e.QuestionAnswered,
) -> None:
    if isinstance(event, e.QuestionAsked):
        call = state.calls[event.call_id]
        call.ask = make_pending_ask(event)
        call.rests_since = recorded.at
        return
    if isinstance(event, e.ApprovalAsked):
        for bound in event.calls:
            call = state.calls[bound.call_id]
            call.ask = make_pending_ask(event, bound.binds)
            call.rests_since = recorded.at
            _require_turn(state).asked += not call.counted
            call.counted = True
        return
    for call in find_asked_calls(state, event.ask_id):
        call.apply_answer(event, recorded.at)
    _require_turn(state).answers.append(event.inbox_id)
    if isinstance(event, e.QuestionAnswered):
        _require_turn(state).said.append(event.message.own_text)


def _apply_notice(
    state: State, recorded: e.Recorded, event: e.ModelFailed | e.Hinted | e.CommandRun
) -> None:
    if isinstance(event, e.CommandRun):
        if event.name == "stop":
            _stop(state, event.args)
        elif event.name == "start" and state.turn is None:
            state.archived = True
        elif event.name == LATE_EDIT:
            state.edit_told = True
        return
    turn = _require_turn(state)
    if isinstance(event, e.Hinted):
        turn.hinted.add(event.why)
        if event.why == "schema":
            turn.pieces = []
        _append_message(state, recorded.n, Message("user", (Text(event.text, LOCAL),)))
    else:
        turn.failures.append(event)
        turn.failed_at = recorded.at
        turn.overflows += event.error == "ContextOverflow"


def _stop(state: State, args: str) -> None:
    summing_up = bool(state.options.compact)
    if summing_up:  # a summary that was asked for is no longer wanted
        state.options = state.options.merge(SessionOptions(compact=""))
    if state.turn is not None:
        state.turn.stopped = True
    elif not summing_up and args != STOP_TURN_ONLY:
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
    state.messages.append(ContextMessage(n * VARIANTS, message))


def _track_part(state: State, part: Part) -> None:
    """Lower the label to that of what the model is shown, and note where a picture is."""
    if isinstance(part, ToolResult):
        for piece in part.parts:
            _track_part(state, piece)
    elif isinstance(part, (Text, Image, Audio, File)):
        if part.label is not state.label and part.label != state.label:
            state.label = join_labels((state.label, part.label))
        if isinstance(part, Image) and state.pictures[-1:] != [len(state.messages)]:
            state.pictures.append(len(state.messages))


def _require_turn(state: State) -> e.Turn:
    if state.turn is None:
        raise AssertionError(f"{state.session!r}: an event of a turn while none is open")
    return state.turn


def find_asked_calls(state: State, ask_id: str) -> list[OpenCall]:
    """The calls that wait for this ask. Raises KeyError when none does."""
    found = [
        call for call in state.calls.values() if call.ask is not None and call.ask.ask_id == ask_id
    ]
    if not found:
        raise KeyError(ask_id)
    return found


_FOLDS: dict[type[e.AnyEvent], Callable[[State, e.Recorded, Any], None]] = {
    e.MessageReceived: _receive,
    e.HistoryMessage: _add_history,
    e.CallsHandedOver: _hand_over,
    e.ResultsReturned: _add_results,
    e.ModelReplied: _reply,
    e.TurnEnded: _end,
    e.ToolStarted: _start,
    e.ToolFinished: _finish,
    e.CallClosed: _finish,
    e.AskedAside: _spend,
    e.ApprovalAsked: _ask,
    e.ApprovalAnswered: _ask,
    e.QuestionAsked: _ask,
    e.QuestionAnswered: _ask,
    e.ModelFailed: _apply_notice,
    e.Hinted: _apply_notice,
    e.Recalled: _recall,
    e.CommandRun: _apply_notice,
    e.Compacted: _restore,
    e.Masked: _mask,
    e.MessageEdited: lambda state, _, event: add_annotation(state.asides, state.sent, event),
    e.Reacted: lambda state, _, event: add_annotation(state.asides, state.sent, event),
    e.MessageDelivered: lambda state, _, event: add_sent_answer(
        state.sent, event, state.messages, VARIANTS
    ),
    e.OptionsSet: _configure,
    e.Erased: lambda state, _, event: None,  # nothing that the model sees
    e.Undone: lambda state, _, event: None,  # what is left stands in the `Compacted` behind it
    e.Branched: lambda state, _, event: None,  # the same
}
"""What each kind of event does; by kind, since a cold start goes through thousands."""


def build_context(state: State) -> tuple[ContextMessage, ...]:
    """The messages of a request. They only grow at their end, except where a `Masked` or
    `Compacted` event moved them, or a newer picture took the pixels of an older one."""
    return apply_variants(state.messages, state.pictures, state.masked_up_to)
