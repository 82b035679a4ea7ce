"""What is open in a conversation: the calls without a result, and what a person was asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from .events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallClosed,
    CommandRun,
    MessageReceived,
    QuestionAnswered,
    QuestionAsked,
)
from .identity import Command, Participants, Said, ToolResults, Waiting, find_predecessor
from .labels import LOCAL
from .messages import Message, Part, ResultStatus, Text, ToolCall, ToolResult, clean_text

STOP_TURN_ONLY = "turn"
"""What a stop is given that means what runs, and never the conversation."""
LATE_EDIT = "late edit"
"""The name under which the log holds that somebody was told what becomes of an edit of an answered
message."""
MEMORIES_PREFIX = '<context_snapshot source="memories">'
"""Begins the part of a message that tells what memory found for it."""
TASK_LIST_PREFIX = "<tasks>"
"""Begins the part of a message that tells how the tasks of a long work stand."""
SESSION_SUMMARY_PREFIX = "<session_summary>"
"""Begins the part of a message that tells what a long work has done so far."""
RUNTIME_PREFIXES = (MEMORIES_PREFIX, SESSION_SUMMARY_PREFIX, TASK_LIST_PREFIX)
"""How what the runtime tells beside a person's words may begin."""
OMITTED_MARKER = "earlier messages are"
"""Stands in the first line of a conversation of which the model is shown less: `[12 earlier
messages are …]`."""


class PendingAsk(msgspec.Struct):
    """What a person was asked. `binds` is empty for a question. `calls` is how many calls it is
    about."""

    ask_id: str
    binds: str
    question: str
    choices: tuple[str, ...]
    until: float
    elsewhere: tuple[str, ...] = ()
    about: str = ""
    calls: int = 1


class HandedOver(msgspec.Struct, frozen=True):
    """A call that waits for the program that asked, which knows it as `id`."""

    id: str
    until: float


class OpenCall(msgspec.Struct):
    """A call without a result. `n` is the event of the reply that made it, `yes_at` when a person
    allowed what `yes_binds` names. `handed` where a program is to run it. `rests_since` is when it
    was asked about, or handed over. `counted`: it was asked about before. `alone`: it is to be
    asked about by itself. `together`: it was allowed with others, some of which may have run
    since."""

    call: ToolCall
    n: int
    started: bool = False
    ask: PendingAsk | None = None
    yes_at: float | None = None
    yes_binds: str = ""
    refusal: str = ""
    answer: Message | None = None
    handed: HandedOver | None = None
    rests_since: float = 0.0
    counted: bool = False
    alone: bool = False
    together: bool = False

    def apply_answer(self, event: ApprovalAnswered | QuestionAnswered, at: float) -> None:
        """Take in what a person answered, which was written at this time."""
        ask = self.ask
        self.ask = None
        if isinstance(event, QuestionAnswered):
            self.answer = event.message
        elif event.choice in ("once", "always"):
            self.yes_at = min(at, event.given_at or at)
            self.yes_binds = ask.binds if ask else ""
            self.together = ask is not None and ask.calls > 1
        elif event.choice == "each":
            self.alone = True
        else:
            self.refusal = f"{event.principal.id} said {event.choice}"


SINGLE_ASK_CHOICES = ("once", "always", "no", "never")
JOINT_ASK_CHOICES = ("once", "each", "no")
"""What may be answered to a question about one call, and about several. To several nothing is said
for good."""


def list_choices(event: ApprovalAsked) -> tuple[str, ...]:
    """What may be answered to it."""
    return JOINT_ASK_CHOICES if event.others else SINGLE_ASK_CHOICES


def make_pending_ask(event: ApprovalAsked | QuestionAsked, binds: str = "") -> PendingAsk:
    """What a person is asked with this; of an approval, for the call that `binds` stands for."""
    if isinstance(event, QuestionAsked):
        return PendingAsk(event.ask_id, "", event.question, event.choices, event.until)
    return PendingAsk(
        event.ask_id,
        binds,
        event.question,
        list_choices(event),
        event.until,
        event.elsewhere,
        event.about,
        len(event.calls),
    )


def make_message_received(
    row: Waiting, message: Message, participants: Participants
) -> MessageReceived:
    """The event with which what waits enters, as this message; these take part until now."""
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


def make_call_closed(call: OpenCall, status: ResultStatus, reason: str) -> CallClosed:
    """The end of a call that gets no result of its own."""
    if call.started and call.ask is None:
        reason = f"{reason}; it may or may not have happened"
    return CallClosed(call.call.id, status, reason)


def make_interruptions(calls: Mapping[str, OpenCall], reason: str) -> list[CallClosed]:
    """The end of every open call."""
    return [make_call_closed(call, "interrupted", reason) for call in calls.values()]


def merge_messages(row: Waiting, said: Sequence[MessageReceived]) -> MessageReceived:
    """What was said in a turn, as one message of whoever opened it: nobody's words gain the rights
    of who repeats them."""
    parts: list[Part] = []
    for event in said:
        parts += [Text("\n", LOCAL)] * bool(parts) + [*event.message.parts]
    first = said[0]
    who = row.principal if row.principal.id == first.principal.id else first.principal
    return replace(
        first, inbox_id=row.inbox_id, principal=who, message=Message("user", tuple(parts))
    )


def make_refusal(row: Waiting, reason: str) -> CommandRun:
    """The answer to a command, or to going back, that was not done for this reason."""
    body = row.inbound.body
    name, args = (body.name, body.args) if isinstance(body, Command) else ("rewind", "")
    return CommandRun(row.inbox_id, row.principal, name, args, f"Not done: {reason}.", refused=True)


def make_failed_result(call: OpenCall, status: ResultStatus, text: str) -> ToolResult:
    """A result that the call did not come to by itself."""
    return ToolResult(call.call.id, (Text(clean_text(text), LOCAL),), status)
