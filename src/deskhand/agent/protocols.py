"""What the loop needs from outside: each seam is a Protocol with one implementation in the product
and one in `deskhand.testing`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec
from anyio import CapacityLimiter

from ..models.answer_schema import make_check_limiter
from ..models.base import Model
from ..models.meter import UsageMeter
from ..policy.rules import Case, Decision
from ..store.base import Store
from ..tools.base import ToolScope
from ..types.budget import Budgets, no_budget
from ..types.clock import Clock, Ids
from ..types.commit import Change, Outgoing
from ..types.door import Progress
from ..types.events import AnyEvent, ModelFailed, Recalled, Recorded, Turn
from ..types.identity import Address, Principal, Waiting
from ..types.limits import Limits
from ..types.messages import Audio, Message
from ..types.secret_search import SecretStream
from ..types.steps import Condensed
from .state import State

# What one agent is given. Each is chosen by the configuration of that agent.


class ContextSource(Protocol):
    """Adds to what the model is shown: prompt files, skills, memories, summaries."""

    def blocks(self, state: State, /) -> tuple[str, ...]:
        """The system prompt in blocks, the stable ones first. Only the last may change from call to
        call."""

    async def recall(self, state: State, /) -> Recalled | None:
        """What fits what was just said; None for nothing. Raises StoreError."""

    async def summarize(
        self, state: State, messages: Sequence[Message], focus: str, /
    ) -> Condensed:
        """A summary of messages that are about to be dropped, above all of what `focus` names.
        Never raises: without a summary they are dropped unsummarized."""


class Judge(Protocol):
    def judge(self, case: Case, /) -> Decision:
        """Allow, ask or deny, with the reason that a person is shown. Never raises: what cannot be
        judged is asked."""


class ScopeSource(Protocol):
    async def open_scope(self) -> ToolScope:
        """What the tools of this agent may touch now. Raises ToolError when its workspace cannot be
        opened."""


class Commands(Protocol):
    def run(self, state: State, row: Waiting, /) -> list[AnyEvent] | None:
        """The events of a chat command, or of options to be set; [] for what needs the whole log
        (`rewind`: /undo, /branch and their kin), None for anything else."""


class ModelLimits(Protocol):
    def of(self, model: str, /) -> Limits:
        """What a turn may use while the model `provider/name` is the first of the chain."""


# What all sessions share.


class ModelSource(Protocol):
    """Every model of the configuration, and which of them are cooling down."""

    def open(self, name: str, /) -> Model:
        """The model `provider/name`. Raises ModelError."""

    def next_try(
        self, chain: Sequence[str], failures: Sequence[ModelFailed], now: float, /
    ) -> tuple[str, float] | None:
        """The model of the chain to try after these failures of one step, and when (seconds since
        the epoch); None when nothing is left to try. Without failures the first that is not cooling
        down."""


class Publisher(Protocol):
    def publish(self, session: str, item: Recorded | Progress, /) -> None:
        """Hand it to whoever follows this session. Never waits, never raises."""


class AskPlace(msgspec.Struct, frozen=True):
    """Where people are asked, and what they are told of who asks; '' where that is plain."""

    address: Address
    reply_to: str = ""
    note: str = ""


class Approvers(Protocol):
    """The people who may answer what an agent asks."""

    def place(self, session: str, turn: Turn, /) -> AskPlace:
        """Where those are asked for whom this turn works."""

    async def outside(self, session: str, /) -> tuple[str, ...]:
        """Who may approve a call in this session, if nobody who takes part in it may; otherwise
        nobody."""

    async def owner_addresses(self) -> Sequence[Address]:
        """Where owners can be asked alone."""


class TurnUndo(Protocol):
    async def undo_turns(
        self, session: str, principal: Principal, events: list[AnyEvent], /
    ) -> list[AnyEvent]:
        """Put back the files and key-values of the turns that these events take back. The events,
        with what was put back in the reply."""

    async def has_changes(self, session: str, since: float, /) -> bool:
        """Whether files were changed in this session, or by its sub-agents, since then (seconds
        since the epoch), so that /undo puts them back."""


class ClosingNotes(Protocol):
    async def closing_note(self, session: str, turn: Turn, /) -> tuple[str, tuple[Change, ...]]:
        """What people are told beside the answer ('' for nothing), such as what the turn has
        changed, and the rows that note that they were told."""


class SecretHider(Protocol):
    """Takes secrets out of what is about to be remembered or shown."""

    def redact_event(self, event: AnyEvent, /) -> AnyEvent:
        """The event without any."""

    def redact_text(self, text: str, /) -> str:
        """The text without the secrets that are known now."""

    def redact_outgoing(self, outgoing: Outgoing, /) -> Outgoing:
        """What is to be said without any."""

    def stream(self) -> SecretStream | None:
        """For a text that comes in pieces; None: there are no secrets."""


class Transcript(msgspec.Struct, frozen=True):
    """What was heard in a recording, or the `problem` that kept it from being heard. `language` is
    a code of ISO 639-1, `engine` what listened. With `shown` people are told what was heard."""

    text: str = ""
    problem: str = ""
    language: str = ""
    engine: str = ""
    seconds: float = 0.0
    shown: bool = False


class Ears(Protocol):
    """Listens to recordings, and knows whose answers are to be spoken."""

    async def transcribe(self, audio: Audio, on_share: Callable[[float], None], /) -> Transcript:
        """What is said in it; `on_share` is told which share of it was heard. Never raises."""

    def speaks(self, state: State, turn: Turn, text: str, /) -> bool:
        """Whether this answer of a turn is to be spoken as well as written."""


class PictureReader(Protocol):
    async def get(self, digest: str, /) -> bytes:
        """The bytes of an image, as small as models take it. Raises StoreError."""


class BlobWriter(Protocol):
    async def put(self, data: bytes, /) -> str:
        """Store these bytes and return their name. Raises StoreFull."""


class NoApprovers:
    """For a session whose people may answer everything themselves."""

    def place(self, session: str, turn: Turn) -> AskPlace:
        return AskPlace(turn.address, turn.reply_to)

    async def outside(self, session: str) -> tuple[str, ...]:
        return ()

    async def owner_addresses(self) -> Sequence[Address]:
        return ()


class NoUndo:
    """For tools that change nothing outside the log."""

    async def undo_turns(
        self, session: str, principal: Principal, events: list[AnyEvent]
    ) -> list[AnyEvent]:
        return events

    async def has_changes(self, session: str, since: float) -> bool:
        return False


class NoClosingNotes:
    """For turns that end with their answer alone."""

    async def closing_note(self, session: str, turn: Turn) -> tuple[str, tuple[Change, ...]]:
        return "", ()


class NoEars:
    """Where nobody listens, and nobody speaks."""

    async def transcribe(self, audio: Audio, on_share: Callable[[float], None]) -> Transcript:
        return Transcript(problem="nothing that listens is set up")

    def speaks(self, state: State, turn: Turn, text: str) -> bool:
        return False


class NoSecrets:
    """Where there are none."""

    def redact_event(self, event: AnyEvent) -> AnyEvent:
        return event

    def redact_text(self, text: str) -> str:
        return text

    def redact_outgoing(self, outgoing: Outgoing) -> Outgoing:
        return outgoing

    def stream(self) -> SecretStream | None:
        return None


class Runtime(msgspec.Struct, frozen=True, kw_only=True):
    """What all sessions of a process share. `meter` compares how models count tokens with how we
    do; `schema_limiter` limits how many answers are checked against a schema at once."""

    store: Store
    models: ModelSource
    publisher: Publisher
    clock: Clock
    ids: Ids
    approvers: Approvers = NoApprovers()
    undo: TurnUndo = NoUndo()
    closing_notes: ClosingNotes = NoClosingNotes()
    secrets: SecretHider = NoSecrets()
    pictures: PictureReader | None = None
    blobs: BlobWriter | None = None
    ears: Ears = NoEars()
    budgets: Budgets = no_budget
    meter: UsageMeter = msgspec.field(default_factory=UsageMeter)
    schema_limiter: CapacityLimiter = msgspec.field(default_factory=make_check_limiter)
