"""Going back in a conversation, and on from there: what its turns were, and how it was at every
rest. Pure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Sequence
from datetime import tzinfo

import msgspec
from msgspec.structs import replace

from ..types.commit import Commit
from ..types.errors import Refused
from ..types.events import (
    AnyEvent,
    Branched,
    CommandRun,
    Compacted,
    Erased,
    MessageReceived,
    Recorded,
    Transcribed,
    TurnEnded,
    Undone,
)
from ..types.identity import Command, Principal, Rewind, Waiting
from ..types.marked_texts import mark_text
from ..types.messages import Usage
from ..types.options import TITLE_CHARS, SessionOptions
from ..types.turn import (
    make_interruptions,
    make_message_received,
    merge_messages,
    with_transcript,
)
from .compacted_event import make_ledger, number_messages
from .fold import fold
from .next_step import answer_text
from .state import State

QUOTE_CHARS = 60
MAX_TITLES = 1000
"""So many titles are looked at for one that tells a branch apart."""
_WENT_BACK = mark_text("{who_name} went back")
UNDONE = mark_text("Undone: the conversation is as it was before “{quote}”.")
_BRANCH_NUMBER = re.compile(r"(?<=.) \(\d+\)$")


class RewoundMessages(msgspec.Struct):
    """A turn that was opened by event `n`, with what people said in it. `before` is the turn that
    it followed, by its place in `RewindView.turns`; -1: none that was still in view."""

    n: int
    before: int
    said: list[MessageReceived]


class RewindView:
    """The whole log of a session, gone through once. `current` is the state after it, `answers`
    what the model said at the end of each turn, by the turn's id."""

    def __init__(self, session: str, log: Sequence[Recorded], zone: tzinfo | None = None) -> None:
        self.session = session
        self.log = log
        self.current = State(session, zone=zone)
        self.turns = list[RewoundMessages]()
        self.answers = dict[int, str]()
        self.erased = 0
        self.title = ""
        self._last = [-1]
        self._rest = [True]
        last = -1
        for recorded in log:
            event = recorded.event
            was_open = self.current.turn is not None
            if isinstance(event, TurnEnded) and self.current.turn is not None:
                answer = event.said if event.reason == "done" else ""
                self.answers[self.current.turn.id] = answer or answer_text(self.current.turn)
            fold(self.current, (recorded,))
            match event:
                case MessageReceived() if was_open and last >= 0:
                    self.turns[last].said.append(event)
                case MessageReceived():
                    last, before = len(self.turns), last
                    self.turns.append(RewoundMessages(recorded.n, before, [event]))
                    self.title = (
                        self.title
                        or " ".join((event.message.own_text or event.message.text).split())[
                            :TITLE_CHARS
                        ]
                    )
                case Transcribed() if last >= 0:
                    said = self.turns[last].said
                    said[:] = [with_transcript(each, event) for each in said]
                case Undone():
                    last = self._last[event.to_n]
                case Branched():
                    self.title = event.title
                case Erased():
                    self.erased = recorded.n
                case _:
                    pass
            last = -1 if self.current.archived else last
            self._last.append(last)
            self._rest.append(
                self.current.turn is None and not isinstance(event, Undone | Branched)
            )

    @property
    def heading(self) -> str:
        """The title, without the number of a branch."""
        return _BRANCH_NUMBER.sub("", self.current.options.title or self.title)

    def turns_at(self, n: int) -> list[RewoundMessages]:
        """The turns that the conversation consisted of after event n, the latest first."""
        found = []
        i = self._last[n]
        while i >= 0:
            found.append(self.turns[i])
            i = self.turns[i].before
        return found

    def find_rest(self, n: int) -> int:
        """The last event up to n after which no turn was open; 0 is the beginning. Raises
        Refused."""
        if not 0 <= n <= len(self.log):
            raise Refused(
                mark_text(
                    "there is no event {event_number}: this conversation has {events_number} events"
                ).format(event_number=n, events_number=len(self.log))
            )
        if 0 < n < self.erased:
            raise Refused(
                mark_text("what was said up to event {event_number} has been erased").format(
                    event_number=self.erased
                )
            )
        return next(each for each in range(n, -1, -1) if self._rest[each])

    def state_at(self, n: int) -> State:
        """How the conversation was after event n."""
        return fold(State(self.session, zone=self.current.zone), self.log[:n])


def plan_rewind(state: State, row: Waiting, past: RewindView) -> list[AnyEvent]:
    """The events with which the conversation goes back as this row wants: a `Rewind`, /undo or
    /retry. What is open ends before. Raises Refused with the reason where it cannot."""
    body = row.inbound.body
    n = len(past.log)
    who = row.principal
    message = None
    turns = past.turns_at(n)
    next_ = None
    reply = None
    if isinstance(body, Rewind):
        to_n = body.to_n
        message = body.message
        if past.find_rest(to_n) != to_n:
            raise Refused(
                mark_text(
                    "event {event_number} is in the middle of a turn; the turn before it ended "
                    "with {end_number}"
                ).format(event_number=to_n, end_number=past.find_rest(to_n))
            )
        if message is not None:
            next_ = make_message_received(row, message, state.participants)
            group = any(
                turn.said[0].address.group for turn in past.turns
            )  # the log is read by who was there
            next_ = replace(
                next_, address=replace(next_.address, group=group or next_.address.group)
            )
    else:
        name, args = (body.name, body.args.strip()) if isinstance(body, Command) else ("", "")
        retry = name in ("retry", "clean")
        count = 1 if retry or not args else int(args) if args.isdecimal() else 0
        if not 0 < count <= len(turns):
            raise Refused(_describe_undoable(len(turns)))
        to_n = 0 if name == "clean" else turns[count - 1].n - 1
        said = turns[count - 1].said
        if retry:
            next_ = merge_messages(row, said)
        else:
            words = said[0].message.own_text or said[0].message.text
            quote = " ".join(words[: 4 * QUOTE_CHARS].split())[:QUOTE_CHARS]
            done = UNDONE.format(quote=quote)
            reply = CommandRun(row.inbox_id, who, "undo", args, done)
    changed = {turn.n: turn for turn in [*turns, *past.turns_at(to_n)]}
    for kept in {turn.n for turn in turns} & {turn.n for turn in past.turns_at(to_n)}:
        del changed[kept]
    if not changed and message is None and state.turn is None:
        raise Refused(
            mark_text("nothing has been said since event {event_number}").format(event_number=to_n)
        )
    openers = [turn.said[0].principal for turn in changed.values()]
    if "owner" not in who.roles and any(
        who.id not in (each.id, each.on_behalf_of) for each in openers
    ):
        raise Refused(
            mark_text("others have asked something since then, so only an owner may undo it")
        )
    back = past.state_at(to_n)
    # who has taken part reads it still
    back.shared = state.shared
    back.person = state.person or back.person
    back.participants = state.participants or back.participants
    then = replace(
        make_ledger(back),
        usage=state.usage,
        options=state.options,
        context_tokens=back.context_tokens,
    )
    events: list[AnyEvent] = [*make_interruptions(state.calls, _WENT_BACK.format(who_name=who.id))]
    if state.turn is not None:
        events.append(TurnEnded("stopped", tuple(state.turn.answers)))
    events += [Undone(row.inbox_id, who, to_n), Compacted(number_messages(back), "", 0, then)]
    return [*events, *(event for event in (next_, reply) if event is not None)]


def _describe_undoable(turns: int) -> str:
    """How many turns /undo could take, where it was asked for others."""
    if not turns:
        return mark_text("there is no turn to undo")
    if turns == 1:
        return mark_text("there is 1 to undo: write /undo 1 for the last")
    some = mark_text("there are {turns_number} to undo: write /undo 1 for the last")
    return some.format(turns_number=turns)


def plan_uncompact(state: State, row: Waiting, past: RewindView) -> list[AnyEvent]:
    """The events with which all is in view again that was shortened to save room. Raises
    Refused."""
    if state.calls:
        raise Refused(mark_text("a turn is still running; try again when I am done"))
    back = [i for i, each in enumerate(past.log) if isinstance(each.event, Undone | Branched)]
    short = [
        i
        for i, each in enumerate(past.log)
        if isinstance(each.event, Compacted) and i - 1 not in back
    ]
    if not short and not state.masked_up_to:
        raise Refused(mark_text("this conversation has not been shortened"))
    full = fold(
        State(past.session, zone=state.zone),
        (each for i, each in enumerate(past.log) if i not in short),
    )
    then = replace(make_ledger(full), masked_up_to=0)
    said = mark_text(
        "All {messages_number} messages are visible to the model again; if they do not fit, "
        "they are shortened again."
    ).format(messages_number=len(full.messages))
    return [
        Compacted(number_messages(full), "", 0, then),
        CommandRun(row.inbox_id, row.principal, "uncompact", "", said),
    ]


def make_branch(
    past: RewindView,
    principal: Principal,
    at_n: int,
    to: str,
    at: float,
    taken: Collection[str] = (),
) -> Commit:
    """A session `to` ('': named after this one) that goes on from the last rest up to event `at_n`.
    Its title is none of those that are `taken`. Raises Refused."""
    n = past.find_rest(at_n)
    back = past.state_at(n)
    options = past.current.options
    title = ""
    if past.heading:
        numbered = (f"{past.heading} ({number})" for number in itertools.count(2))
        title = next(each for each in numbered if each not in taken)
    if options.title:
        options = options.merge(SessionOptions(title=title, title_by=options.title_by))
    then = replace(make_ledger(back), usage=Usage(), options=options, archived=False, sent={})
    kept = number_messages(back)
    begun = Branched(
        past.session, n, principal, title, _message_times(past, [key for key, _ in kept])
    )
    return Commit(
        to or f"{past.session}.b{n}", 1, at, (begun, Compacted(kept, "", 0, then)), close=True
    )


def _message_times(past: RewindView, kept: Sequence[int]) -> tuple[float, ...]:
    """When the messages of these events were said. A branch begins with some that are events of
    another log."""
    brought: list[tuple[int, float]] = []
    match [recorded.event for recorded in past.log[:2]]:
        case [Branched(times=times), Compacted(kept=before)]:
            brought = [(key, at) for (key, _), at in zip(before, times, strict=False)]
        case _:
            pass
    return tuple(
        brought[i][1] if i < len(brought) and brought[i][0] == key else past.log[key - 1].at
        for i, key in enumerate(kept)
    )
