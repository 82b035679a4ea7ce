"""What the agent knows of a session: the conversation, and the turn that is going on in it. It is
made of the session's events, by `fold`, and of nothing else."""

from __future__ import annotations

from datetime import tzinfo

import msgspec

from ..models.base import ContextMessage
from ..types.events import Turn
from ..types.identity import (
    Address,
    Participant,
    Participants,
    Principal,
    Waiting,
    is_read_by_others,
    list_reader_names,
    only_person,
    with_participant,
)
from ..types.labels import OWNER, Label, join_labels
from ..types.messages import Text, Usage
from ..types.options import SessionOptions
from ..types.turn import OpenCall


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
    """The one mutable struct of the agent; only `fold` changes it.

    `calls` are those without a result, in the order in which they were made. `archived`: the
    conversation is over, and the next message begins another. `stopped_at` is the newest message of
    the inbox when it was stopped last. `zone` is where messages are dated; None: not at all.
    """

    session: str
    n: int = 0
    calls: dict[str, OpenCall] = {}
    turn: Turn | None = None
    stopped_at: int = 0
    model: str = ""
    usage: Usage = Usage()
    archived: bool = False
    zone: tzinfo | None = None
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
        if not before and self.person and not self.archived:
            # The summary was written by a version that did not keep participants.
            before = {"": Participant(self.person, owner=not self.shared)}
        return with_participant(before, principal, address, sender)

    @property
    def audience(self) -> tuple[str, ...]:
        """Who reads this conversation, as the readers of a label name them; () where others than
        owners do."""
        return () if self.shared or self.turn is None else list_reader_names(self.turn.principal)


def find_asked_calls(state: State, ask_id: str) -> list[OpenCall]:
    """The calls that wait for this ask. Raises KeyError when none does."""
    found = [
        call for call in state.calls.values() if call.ask is not None and call.ask.ask_id == ask_id
    ]
    if not found:
        raise KeyError(ask_id)
    return found
