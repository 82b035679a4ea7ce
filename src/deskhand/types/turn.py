"""What is open in a turn: calls without a result, and questions to a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from .events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallClosed,
    CommandRun,
    HandedTo,
    MessageReceived,
    QuestionAnswered,
    QuestionAsked,
    Transcribed,
)
from .identity import (
    Address,
    Command,
    Participants,
    Principal,
    Said,
    ToolResults,
    Waiting,
    find_predecessor,
)
from .labels import LOCAL
from .marked_texts import mark_text
from .messages import Audio, Message, Part, ResultStatus, Text, ToolCall, ToolResult, clean_text

STOP_TURN_ONLY = "turn"
"""The argument of a stop that ends the running turn and not the conversation."""
OUT_OF_DATE = mark_text("This button is out of date, so nothing was done.")
"""What somebody reads who pressed a button of a turn that it can do nothing about any more."""
MAY_HAVE_HAPPENED = mark_text("it may or may not have happened")
"""What is added of a call of which the end is not known."""
_NOT_DONE = mark_text("Not done: {reason_text}.")
HANDOFF = "handoff"
"""The command that takes a conversation to another channel."""
HANDOFF_BACK = "back"
"""Its argument that returns the conversation to where it began."""
LATE_EDIT = "late edit"
"""The name of the event that tells somebody what happens to the edit of an answered message."""
GOES_ON = mark_text("it goes on in the background; what comes of it will be told here as a message")
"""What the model is told of a sub-agent that is not waited for any more."""
MEMORIES_PREFIX = '<context_snapshot source="memories">'
"""Begins the part of a message that holds the memories recalled for it."""
TASK_LIST_PREFIX = "<tasks>"
"""Begins the part of a message that holds the task list of long work."""
SESSION_SUMMARY_PREFIX = "<session_summary>"
"""Begins the part of a message that summarizes long work so far."""
RUNTIME_PREFIXES = (MEMORIES_PREFIX, SESSION_SUMMARY_PREFIX, TASK_LIST_PREFIX)
"""How the parts begin that the runtime adds to a person's message."""
OMITTED_MARKER = "earlier messages are"
"""In the first line of a compacted conversation: `[12 earlier messages are …]`."""


class ReplyTarget(msgspec.Struct, frozen=True):
    """Where an open turn is answered, and to which message. `turn` is its id."""

    address: Address
    reply_to: str
    turn: int


class PendingAsk(msgspec.Struct):
    """An open question to a person. `binds` is the hash of the call to approve; it is empty for a
    plain question. `calls` is the number of calls that it is about. `behind` is the newest message
    in the inbox when it was asked."""

    ask_id: str
    binds: str
    question: str
    choices: tuple[str, ...]
    until: float
    elsewhere: tuple[str, ...] = ()
    about: str = ""
    calls: int = 1
    behind: int = 0

    @property
    def is_approval(self) -> bool:
        return bool(self.binds)


class HandedOver(msgspec.Struct, frozen=True):
    """A call on which a client program works, or a sub-agent; there it is known as `id`."""

    id: str
    until: float
    to: HandedTo = "client"


class OpenCall(msgspec.Struct):
    """A call without a result.

    `n` is the number of the event that made it. With the `answer` to its question it `resumes`, or
    has its result; `resumed`: it has begun to. `yes_at` is when `yes_by` approved the call with the
    hash `yes_binds`. `handed` is set while somebody else works on it. `rests_since` is when it
    was asked about or handed over. `counted`: it was asked about before. `alone`: the person wants
    a question about this call only. `together`: it was approved with others, and some of them may
    have run since.
    """

    call: ToolCall
    n: int
    started: bool = False
    ask: PendingAsk | None = None
    yes_at: float | None = None
    yes_by: Principal | None = None
    yes_binds: str = ""
    refusal: str = ""
    answer: Message | None = None
    resumes: bool = False
    resumed: bool = False
    handed: HandedOver | None = None
    rests_since: float = 0.0
    counted: bool = False
    alone: bool = False
    together: bool = False

    def apply_answer(self, event: ApprovalAnswered | QuestionAnswered, at: float) -> None:
        """Apply what a person answered at this time."""
        ask = self.ask
        self.ask = None
        if isinstance(event, QuestionAnswered):
            self.answer = event.message
        elif event.choice in ("once", "always"):
            self.yes_at = min(at, event.given_at or at)
            self.yes_by = event.principal
            self.yes_binds = ask.binds if ask else ""
            self.together = ask is not None and ask.calls > 1
        elif event.choice == "each":
            self.alone = True
        else:
            self.refusal = f"{event.principal.id} said {event.choice}"


SINGLE_ASK_CHOICES = ("once", "always", "no", "never")
JOINT_ASK_CHOICES = ("once", "each", "no")
"""The choices for one call, and for several. Standing answers are for one call only."""


def list_choices(event: ApprovalAsked) -> tuple[str, ...]:
    """The choices of this question."""
    return JOINT_ASK_CHOICES if event.others else SINGLE_ASK_CHOICES


def make_pending_ask(event: ApprovalAsked | QuestionAsked, binds: str = "") -> PendingAsk:
    """The open question of this event. `binds` is the hash of the call, for an approval."""
    if isinstance(event, QuestionAsked):
        return PendingAsk(
            event.ask_id, "", event.question, event.choices, event.until, behind=event.behind
        )
    return PendingAsk(
        ask_id=event.ask_id,
        binds=binds,
        question=event.question,
        choices=list_choices(event),
        until=event.until,
        elsewhere=event.elsewhere,
        about=event.about,
        calls=len(event.calls),
        behind=event.behind,
    )


def make_message_received(
    row: Waiting, message: Message, participants: Participants
) -> MessageReceived:
    """The event that admits this waiting row as `message`. `participants` are those until now."""
    inbound = row.inbound
    body = row.inbound.body
    return MessageReceived(
        row.inbox_id,
        row.principal,
        inbound.address,
        message,
        external_id=inbound.external_id,
        reply_to=inbound.reply_to,
        request=body.request if isinstance(body, Said | ToolResults) else None,
        sender=inbound.sender,
        succeeds=find_predecessor(participants, row.principal, inbound.address, inbound.sender),
    )


def render_transcript(event: Transcribed) -> str:
    """What stands in a message for the recording that was listened to."""
    if event.problem:
        return f"[voice message, not transcribed: {event.problem}]"
    return event.text or "[voice message in which nobody speaks]"


def transcribe_parts(parts: Sequence[Part], transcripts: Mapping[str, str]) -> tuple[Part, ...]:
    """These parts, with what stands for the recordings of these blobs."""
    return tuple(_transcribe_part(part, transcripts) for part in parts)


def _transcribe_part(part: Part, transcripts: Mapping[str, str]) -> Part:
    if isinstance(part, Audio) and part.transcript is None and part.blob in transcripts:
        return replace(part, transcript=transcripts[part.blob])
    return part


def with_transcript(received: MessageReceived, heard: Transcribed) -> MessageReceived:
    """The message with what was heard in this recording of it."""
    parts = transcribe_parts(received.message.parts, {heard.blob: render_transcript(heard)})
    return replace(received, message=replace(received.message, parts=parts))


def is_handed_to(call: OpenCall, to: HandedTo) -> bool:
    """Whether they work on this call."""
    return call.handed is not None and call.handed.to == to


def make_call_closed(call: OpenCall, status: ResultStatus, reason: str) -> CallClosed:
    """The event that closes a call without a result of its own."""
    if call.started and (call.ask is None or call.resumes):
        reason = f"{reason}; {MAY_HAVE_HAPPENED}"
    task = call.handed.id if call.handed is not None and is_handed_to(call, "subagent") else ""
    return CallClosed(call.call.id, status, reason, task)


def make_interruptions(calls: Mapping[str, OpenCall], reason: str) -> list[CallClosed]:
    """The events that close every open call as interrupted."""
    return [make_call_closed(call, "interrupted", reason) for call in calls.values()]


def merge_messages(row: Waiting, said: Sequence[MessageReceived]) -> MessageReceived:
    """Everything said in a turn, as one message of the person who opened it. Whoever repeats the
    turn does not lend their rights to these words."""
    parts: list[Part] = []
    for event in said:
        if parts:
            parts.append(Text("\n", LOCAL))
        parts.extend(event.message.parts)

    first = said[0]
    same_person = row.principal.id == first.principal.id
    return replace(
        first,
        inbox_id=row.inbox_id,
        principal=row.principal if same_person else first.principal,
        message=Message("user", tuple(parts)),
    )


def make_refusal(row: Waiting, reason: str) -> CommandRun:
    """The answer to a command or rewind that was refused, with the reason."""
    body = row.inbound.body
    name, args = (body.name, body.args) if isinstance(body, Command) else ("rewind", "")
    return CommandRun(
        row.inbox_id, row.principal, name, args, _NOT_DONE.format(reason_text=reason), refused=True
    )


def make_out_of_date(row: Waiting, command: Command) -> CommandRun:
    """The answer to a pressed button of a turn that the command can do nothing about any more."""
    return CommandRun(
        row.inbox_id,
        row.principal,
        command.name,
        command.args,
        OUT_OF_DATE,
        refused=True,
        turn=command.turn,
    )


def make_failed_result(call: OpenCall, status: ResultStatus, text: str) -> ToolResult:
    """A result that Deskhand gives in place of the tool."""
    return ToolResult(call.call.id, (Text(clean_text(text), LOCAL),), status)
