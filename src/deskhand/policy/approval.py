"""Approvals bind exactly what was shown: one byte more or another folder, and it is another
question."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Literal

import msgspec

from ..types.events import ApprovalAnswered, QuestionAnswered
from ..types.identity import Principal, Said, Waiting
from ..types.labels import LOCAL
from ..types.marked_texts import mark_text
from ..types.messages import Message, ResultStatus, Text, ToolCall
from ..types.programs import RUN_PROGRAM
from ..types.turn import PendingAsk
from .render_rehearsal import render_rehearsal
from .visible import escape_invisible

EXECUTE_WITHIN_S = 600.0
"""A given approval is void after this long."""
ASK_WAIT_S = 24 * 3600.0
"""So long a person may take to answer."""
SHOWN_ARGUMENT_CHARS = 20_000
ASKS_PER_TURN = 5
"""People who are asked too often stop reading."""
TOO_MANY_ASKS = mark_text(
    "denied: this turn has asked {count_number} times, which is the limit. Write `continue` to go "
    "on."
).format(count_number=ASKS_PER_TURN)

CHANGED = mark_text("the call has changed since it was approved; ask again")
EXPIRED = mark_text("the approval has expired; ask again if the call is still needed")

Choice = Literal["once", "always", "no", "never", "each"]
_CHOICE_WORDS: tuple[tuple[Choice, str], ...] = (
    ("once", "yes y ok okay once allow ja einmal"),
    ("always", "always immer"),
    ("no", "no n deny cancel nein"),
    ("never", "never nie"),
    ("each", "each singly einzeln"),
)
_CHOICE_BY_WORD = {word: choice for choice, words in _CHOICE_WORDS for word in words.split()} | {
    "one by one": "each"
}
_MILDER_CHOICE: dict[Choice, Choice] = {"always": "once", "never": "no"}
"""What somebody certainly means who says this where it is not offered."""


EXIT_PLAN_MODE = "exit_plan_mode"


class CallSetting(msgspec.Struct, frozen=True):
    """Everything beside the call that changes what it would do."""

    session: str
    agent: str
    cwd: str
    profile: str
    shown: str = ""
    """What of the world the person is shown beside the arguments."""
    untrusted: bool = False
    """Something from outside has been read. What was allowed before that is not allowed after
    it."""


def hash_call(call: ToolCall, setting: CallSetting, principal: Principal) -> str:
    """The hash of this one call: tool, argument bytes, folder, profile, session, person and the
    call's own id."""
    return _hash(call.id, setting.session, call.name, bytes(call.arguments), setting, principal)


def hash_standing_call(call: ToolCall, setting: CallSetting, principal: Principal) -> str:
    """The hash under which `always` and `never` are remembered: the same call by the same person,
    in any session."""
    return _hash("", "", call.name, bytes(call.arguments), setting, principal)


def _hash(
    call_id: str,
    session: str,
    name: str,
    arguments: bytes,
    setting: CallSetting,
    principal: Principal,
) -> str:
    parts = [
        call_id,
        session,
        name,
        setting.agent,
        setting.cwd,
        setting.profile,
        principal.id,
        principal.on_behalf_of,
    ]
    if setting.untrusted:
        parts.append("untrusted")
    if setting.shown:
        parts += ["shown", setting.shown]
    return sha256(msgspec.json.encode(parts) + b"\0" + arguments).hexdigest()


def render_arguments(call: ToolCall) -> str:
    """The arguments as a person is shown them: every byte that was bound, and none that hides or
    turns others round. Of a plan alone its lines are shown as lines; of a rehearsed program what it
    changes, and the digests of that."""
    if (
        call.name == RUN_PROGRAM
        and (program := render_rehearsal(bytes(call.arguments))) is not None
    ):
        return program
    text = bytes(call.arguments).decode(errors="backslashreplace")
    if call.name == EXIT_PLAN_MODE and (plan := _parse_plan(text)) is not None:
        return "\n".join(["", *map(escape_invisible, plan.splitlines())])
    return escape_invisible(text)


def _parse_plan(arguments: str) -> str | None:
    """The plan, where the arguments are nothing else."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    plan = given.get("plan") if isinstance(given, dict) and len(given) == 1 else None
    return plan if isinstance(plan, str) else None


def parse_choice(text: str) -> Choice | None:
    """The choice that a typed answer to an approval means; None where it means none."""
    return _CHOICE_BY_WORD.get(" ".join(text.strip().strip(".!/").lower().split()))


def interpret_answer(ask: PendingAsk, text: str) -> Choice | None:
    """What a typed answer means to this approval, of what may be answered to it; None where it is
    no answer."""
    choice = parse_choice(text)
    return choice if choice is None or choice in ask.choices else _MILDER_CHOICE.get(choice)


def compute_ask_expiry(now: float) -> float:
    """Until when a question that is put now may be answered."""
    return now + ASK_WAIT_S


_NOBODY_MAY = mark_text("nobody in this conversation may approve it, and nobody else did")


def make_answer_event(
    ask: PendingAsk, row: Waiting, choice: str
) -> ApprovalAnswered | QuestionAnswered:
    """The event with which somebody answers this; what is neither yes nor no to an approval is a
    no."""
    if ask.is_approval:
        return ApprovalAnswered(
            row.inbox_id,
            ask.ask_id,
            interpret_answer(ask, choice) or "no",
            row.principal,
            row.inbound.at,
        )
    body = row.inbound.body
    message = body.message if isinstance(body, Said) else Message("user", (Text(choice, LOCAL),))
    return QuestionAnswered(row.inbox_id, ask.ask_id, row.principal, message)


def find_lapse(same: bool, age_s: float) -> str:
    """Why a yes that was given so long ago, to the `same` or not, does not hold; '' if it does."""
    if not same:
        return CHANGED
    if age_s > EXECUTE_WITHIN_S:
        return EXPIRED
    return ""


def explain_unanswered(ask: PendingAsk) -> tuple[ResultStatus, str]:
    """What the end of its time means: that those who could did not, or that there was nobody who
    could."""
    if not ask.elsewhere:
        return "expired", mark_text("nobody answered in time: {question}").format(
            question=ask.question
        )
    return (
        "unasked",
        (f"{_NOBODY_MAY}. {describe_approvers(ask.elsewhere)}"),
    )


def describe_approvers(names: Sequence[str]) -> str:
    """Who could have allowed it, and how."""
    return mark_text(
        "Only {people} may allow this: on the page, or with `deskhand approvals`."
    ).format(people=" or ".join(names))


def render_approver_notice(names: Sequence[str]) -> str:
    """What those read who may not allow it, once who may was asked."""
    return mark_text(
        "{people_text} has been asked to decide this. You will see the result here."
    ).format(people_text=" or ".join(names) or mark_text("An owner"))


def may_approve(principal: Principal) -> bool:
    """Whether this principal's yes counts. A member cannot allow what the owner's rules ask
    about."""
    return principal.kind == "person" and bool({"owner", "approver"} & set(principal.roles))
