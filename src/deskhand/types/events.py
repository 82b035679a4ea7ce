"""Everything that can happen in a session. The log of these is the only source of truth."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from .client import ClientRequest
from .identity import Address, Participant, Principal
from .labels import OWNER, Label
from .messages import File, Message, ResultStatus, Text, ToolResult, Usage
from .options import SessionOptions


class Event(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Something that happened. The tag of each kind is stored; a released kind is never renamed."""


class MessageReceived(Event, frozen=True, tag="message_received"):
    """A message entered the conversation. `external_id` is the platform's id of it, `request` what
    a program wants of the turn, `sender` who wrote it there. `succeeds` is the person whom this
    sender was until now: they do not take part any more."""

    inbox_id: int
    principal: Principal
    address: Address
    message: Message
    external_id: str = ""
    reply_to: str = ""
    request: ClientRequest | None = None
    sender: str = ""
    succeeds: str = ""


class HistoryMessage(Event, frozen=True, tag="history_message"):
    """A program says that this was said before the message that is received next. It was said
    elsewhere: the labels of its parts tell whose word it is."""

    inbox_id: int
    principal: Principal
    message: Message


class Transcribed(Event, frozen=True, tag="transcribed"):
    """Somebody listened to the recording `blob` of a message. `text` is what was said in it, ''
    where nobody spoke; `problem` is why it could not be heard. `language` is a code of ISO 639-1,
    `engine` what listened; `seconds` is how long the recording is and `took_s` how long that took,
    0 where nobody measured it."""

    blob: str
    text: str = ""
    problem: str = ""
    language: str = ""
    engine: str = ""
    seconds: float = 0.0
    took_s: float = 0.0


class MessageEdited(Event, frozen=True, tag="message_edited"):
    """The person rewrote message `of`. What the model has read stays; the new text is told with the
    next message. While the turn is open that the message belongs to, it is received as a further
    message instead."""

    inbox_id: int
    of: str
    message: Message


class MessageDeleted(Event, frozen=True, tag="message_deleted"):
    """The person took back message `of`, which said `said`. It stays in the log: whoever wants it
    gone erases it. `withdrawn` is its inbox id where nobody had read it yet: nobody will. While the
    turn is open that the message belongs to, a further message tells of it instead."""

    inbox_id: int
    principal: Principal
    of: str
    said: str = ""
    withdrawn: int = 0


class Reacted(Event, frozen=True, tag="reacted"):
    inbox_id: int
    principal: Principal
    of: str
    emoji: str
    added: bool


class CommandRun(Event, frozen=True, tag="command_run"):
    """A chat command was carried out, or was not (`refused`); `reply` is what the person saw. A
    stop has the newest message of the inbox (`behind`): what was stopped may have put its result
    there before. A handoff has where the conversation goes on (`to`). `file` is what was sent with
    the reply. `turn` is the turn whose button was pressed, where that sent its document (`file`),
    or where it could do nothing any more (`refused`); 0 for all else, also for other buttons."""

    inbox_id: int
    principal: Principal
    name: str
    args: str = ""
    reply: str = ""
    refused: bool = False
    behind: int = 0
    to: Address | None = None
    turn: int = 0
    file: File | None = None


Finish = Literal["stop", "calls", "length", "filtered", "interrupted"]


class ModelReplied(Event, frozen=True, tag="model_replied"):
    """`model` is `provider/name`; `finish` says why it stopped (`interrupted`: a person stopped it
    in mid-sentence)."""

    message: Message
    model: str
    finish: Finish = "stop"
    usage: Usage = Usage()


class ModelFailed(Event, frozen=True, tag="model_failed"):
    """A model call failed. `error` is the class of the error tree. `retry_at`: when to try
    `next_model`; None: no further try is owed, and the person is told."""

    model: str
    error: str
    detail: str
    retry_at: float | None = None
    next_model: str = ""
    retry_after_s: float | None = None


class ToolStarted(Event, frozen=True, tag="tool_started"):
    """Journalled before a call whose effect must not happen twice."""

    call_id: str


class ToolFinished(Event, frozen=True, tag="tool_finished"):
    """`end_turn`: the turn ends with this result, which is said as it is; the model is not asked
    again. `allowed` is why the call was run without asking anybody. `took_s` is how long it ran, 0
    where it did not or nobody measured it.
    """

    result: ToolResult
    end_turn: bool = False
    allowed: str = ""
    took_s: float = 0.0


class AskedAside(Event, frozen=True, tag="asked_aside"):
    """The tool of this call asked a model away from the conversation; without one, the runtime did,
    to sum up. `took_s` is how long that took, 0 where nobody measured it."""

    call_id: str
    model: str
    usage: Usage = Usage()
    took_s: float = 0.0


class BoundCall(msgspec.Struct, frozen=True, gc=False):
    """A call that is asked about, and the hash of exactly what was shown of it."""

    call_id: str
    binds: str


class ApprovalAsked(Event, frozen=True, tag="approval_asked"):
    """The turn rests until an approver answers or `until` passes. `binds` is the hash of exactly
    what was shown, `source` where the least trusted content comes from that the model has read.
    `elsewhere` are those who may answer where nobody may who takes part, `about` says in words why
    it is asked and what it would do. `others` are further calls of the same reply that the question
    is about: it then has a line for each call, in order. `behind` is the newest message in the
    inbox when it was asked: what stands before it is no answer."""

    ask_id: str
    call_id: str
    binds: str
    question: str
    reason: str
    until: float
    source: str = ""
    elsewhere: tuple[str, ...] = ()
    about: str = ""
    others: tuple[BoundCall, ...] = ()
    behind: int = 0

    @property
    def calls(self) -> tuple[BoundCall, ...]:
        """All the calls that it is about, in the order of their lines."""
        return BoundCall(self.call_id, self.binds), *self.others


class ApprovalAnswered(Event, frozen=True, tag="approval_answered"):
    """`choice` is `once`, `always` (for exactly this), `no` or `never`; to a question about several
    calls `once` or `no` for all of them, or `each`: they are asked about one by one. `given_at` is
    when it was said: nobody may have been there to take it in."""

    inbox_id: int
    ask_id: str
    choice: Literal["once", "always", "no", "never", "each"]
    principal: Principal
    given_at: float = 0.0


class QuestionAsked(Event, frozen=True, tag="question_asked"):
    """A tool asks the person of the turn. The answer is its result, or, where it `resumes`, it goes
    on with that. `behind` as in `ApprovalAsked`."""

    ask_id: str
    call_id: str
    question: str
    choices: tuple[str, ...]
    until: float
    behind: int = 0
    resumes: bool = False


class QuestionAnswered(Event, frozen=True, tag="question_answered"):
    inbox_id: int
    ask_id: str
    principal: Principal
    message: Message


HandedTo = Literal["client", "subagent"]


class CallClosed(Event, frozen=True, tag="call_closed"):
    """An open call ended without a result of its own: stopped, overtaken by a new message, or
    expired. `task` is the task of a sub-agent for which it waited."""

    call_id: str
    status: ResultStatus
    reason: str
    task: str = ""


class CallsHandedOver(Event, frozen=True, tag="calls_handed_over"):
    """Somebody else works on these open calls: the program that asked, for tools of its own, or
    sub-agents. The turn rests until their results are there, or `until` passes. `ids` are the names
    by which they are known there, by the id of the call."""

    ids: dict[str, str]
    until: float
    to: HandedTo = "client"


class ResultsReturned(Event, frozen=True, tag="results_returned"):
    """The program returned results: they follow, and the turn goes on as `request` wants. `ids` are
    the names of the calls that the program was given."""

    inbox_id: int
    principal: Principal
    ids: tuple[str, ...]
    request: ClientRequest | None = None


class Recalled(Event, frozen=True, tag="recalled"):
    """What memory holds of what was just said: `part` is shown to the model at the end of that
    message. It came from `facts` (their ids), so it is never stored as something new."""

    facts: tuple[int, ...]
    part: Text


class Hinted(Event, frozen=True, tag="hinted"):
    """The runtime told the model something. `why` names the rule."""

    why: Literal["wrap_up", "final", "loop", "continue", "empty", "schema"]
    text: str


class Masked(Event, frozen=True, tag="masked"):
    """Tool results up to event `up_to_n` are shown to the model as one line each from here on."""

    up_to_n: int


class Compacted(Event, frozen=True, tag="compacted"):
    """The model's context was shortened: `kept` are the messages it still sees, each with the
    number of its event.

    A cold start reads from the last of these, so it carries everything that the fold had gathered
    (`ledger`).
    """

    kept: tuple[tuple[int, Message], ...]
    note: str
    dropped: int
    ledger: Ledger


TurnReason = Literal["done", "stopped", "failed", "steps", "tokens", "loop", "dead"]


class TurnEnded(Event, frozen=True, tag="turn_ended"):
    """`answers` are the inbox ids that this turn took in; `said` is what the person was told, where
    that is not the model's own last message. `note` is what they were told beside the answer; no
    model reads it."""

    reason: TurnReason
    answers: tuple[int, ...] = ()
    said: str = ""
    note: str = ""

    @property
    def is_unanswered(self) -> bool:
        """Whether there was no answer, because something failed or a limit was reached."""
        return self.reason in ("failed", "dead") or (
            self.reason in ("steps", "tokens") and bool(self.said)
        )


class MessageDelivered(Event, frozen=True, tag="message_delivered"):
    """An outbox row reached its platform under `platform_id`; `mark` says if the text may be a
    duplicate or late."""

    key: str
    platform_id: str
    mark: str = ""


class Erased(Event, frozen=True, tag="erased"):
    """What was here has been erased on request; the chain still proves that it was of this kind."""

    of: str


class OptionsSet(Event, frozen=True, tag="options_set"):
    """Somebody set how this conversation is held; what is None stays as it was."""

    inbox_id: int
    principal: Principal
    options: SessionOptions


class Undone(Event, frozen=True, tag="undone"):
    """The conversation goes on from how it was after event `to_n`, which the `Compacted` behind
    this holds. What has been said since stays in the log; the tokens stay spent and the options
    set."""

    inbox_id: int
    principal: Principal
    to_n: int


class Branched(Event, frozen=True, tag="branched"):
    """The first event of a session that goes on from how session `of` was after event `at_n`, which
    the `Compacted` behind this holds. `times` are when each of its messages was said, seconds since
    the epoch; none in old logs."""

    of: str
    at_n: int
    principal: Principal
    title: str = ""
    times: tuple[float, ...] = ()


class Turn(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What is going on for the person who opened it. The fold changes it; a `Ledger` holds a copy.

    `pieces` is the answer so far, where it came in several replies; `marks` are the hashes of
    (tool, arguments, result) that the loop guard looks at; `said` is what people wrote in this
    turn, of which so many as `recalled` says were looked up in memory; `ending` is what a tool ends
    it with, `asked` how often it asked for a yes, `stop_id` the inbox id of what stopped it.
    `overflows` counts the requests in a row that were too long, `compacted` how many of them the
    context has been shortened for. `heard` are the platform's ids of the messages in it,
    `unheard` the recordings in them to which nobody has listened yet, `spoken` the language of the
    last one that was heard; None: nothing was. `transcripts` are for the search of memories: they
    order nothing. `failed_at` is when the last of `failures` happened.
    """

    principal: Principal
    address: Address
    answers: list[int]
    opened_at: float
    steps: int
    usage: Usage
    reply_to: str = ""
    failures: list[ModelFailed] = []
    failed_at: float = 0.0
    hinted: set[str] = set()
    marks: list[bytes] = []
    pieces: list[str] = []
    continued: int = 0
    empty: int = 0
    finish: str = ""
    overflows: int = 0
    asked: int = 0
    said: list[str] = []
    recalled: int = 0
    compacted: int = 0
    stopped: bool = False
    stop_id: int = 0
    ending: str = ""
    request: ClientRequest | None = None
    heard: list[str] = []
    unheard: list[str] = []
    spoken: str | None = None
    transcripts: list[str] = []

    @property
    def id(self) -> int:
        """The inbox id of the message that opened it: no other turn of any session has it."""
        return self.answers[0]

    def copy(self) -> Turn:
        """The turn as it is now."""
        return _decode_turn(_encode_turn(self))

    def count_reply(self, event: ModelReplied) -> None:
        """Count a reply, and keep what it says of the answer."""
        self.steps += 1
        self.usage += event.usage
        self.finish = event.finish
        self.overflows = 0
        self.compacted = 0
        if self.failures:
            self.failures = []
        if self.hinted:
            self.hinted -= {"loop", "continue", "empty"}
        text = event.message.text
        calls = event.message.calls
        self.empty = 0 if calls or text.strip() else self.empty + 1
        if calls:
            self.pieces = []
            self.continued = 0
        else:
            self.pieces.append(text)
            self.continued += event.finish == "length"


_decode_turn = msgspec.json.Decoder(Turn).decode
_encode_turn = msgspec.json.Encoder().encode


class Ledger(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What a fold knows besides messages, written into `Compacted`."""

    usage: Usage = Usage()
    masked_up_to: int = 0
    turn: Turn | None = None
    archived: bool = False
    label: Label = OWNER
    asides: dict[str, Text] = {}
    sent: dict[str, str] = {}
    context_tokens: int = 0
    options: SessionOptions = SessionOptions()
    shared: bool = False
    person: str = ""
    participants: dict[str, Participant] = {}
    edit_told: bool = False
    stopped_at: int = 0


AnyEvent = (
    MessageReceived
    | HistoryMessage
    | Transcribed
    | MessageEdited
    | MessageDeleted
    | Reacted
    | CommandRun
    | ModelReplied
    | ModelFailed
    | ToolStarted
    | ToolFinished
    | AskedAside
    | ApprovalAsked
    | ApprovalAnswered
    | QuestionAsked
    | QuestionAnswered
    | CallClosed
    | CallsHandedOver
    | ResultsReturned
    | Recalled
    | Hinted
    | Masked
    | Compacted
    | TurnEnded
    | MessageDelivered
    | Erased
    | OptionsSet
    | Undone
    | Branched
)
EVENT_TYPES: tuple[type[AnyEvent], ...] = get_args(AnyEvent)


class Recorded(msgspec.Struct, frozen=True, gc=False):
    """An event in its place. `n` counts the session's events from 1 without a gap and is what
    clients resume from; `seq` orders all sessions (0: not stored yet); `at` is seconds since the
    epoch."""

    seq: int
    session: str
    n: int
    at: float
    event: AnyEvent


decode_event = msgspec.json.Decoder(AnyEvent).decode
encode_event = msgspec.json.Encoder().encode


def event_kind(event: Event) -> str:
    """The stored name of the event's kind, such as `turn_ended`."""
    return str(event.__struct_config__.tag)
