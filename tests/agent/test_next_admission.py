"""What may enter when: a state and what waits in, the row taken and its events out."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from deskhand.agent.fold import fold
from deskhand.agent.next_admission import admit_next
from deskhand.agent.state import State
from deskhand.assembly.chat_commands import ChatCommands
from deskhand.types import events as e
from deskhand.types.identity import (
    Address,
    Answer,
    Body,
    Command,
    Configure,
    Deletion,
    Edit,
    Inbound,
    Principal,
    Reaction,
    Result,
    Rewind,
    Said,
    ToolResults,
    Waiting,
    When,
)
from deskhand.types.labels import Label
from deskhand.types.messages import Message, Text, ToolCall, ToolResult
from deskhand.types.options import SessionOptions

ANN = Principal("ann", ("approver",))
BOB = Principal("bob")
OLGA = Principal("olga", ("owner",))
CLOCK = Principal("clock", (), "clock", "ann")
PLACE = Address("chat", chat="1", group=True)
CALLS = tuple(ToolCall(f"c{i}", "look", msgspec.Raw(b"{}")) for i in (1, 2))

OPEN: list[e.AnyEvent] = [e.MessageReceived(1, ANN, PLACE, Message("user", (Text("go"),)))]
RUNNING = [*OPEN, e.ModelReplied(Message("assistant", CALLS), "m", "calls")]
APPROVAL = [*RUNNING, e.ApprovalAsked("ask", "c1", "binds", "?", "", 9e9)]
QUESTION = [*RUNNING, e.QuestionAsked("ask", "c1", "?", ("red", "blue"), 9e9)]
HANDED = [*RUNNING, e.CallsHandedOver({"c1": "h1", "c2": "h2"}, 9e9)]
DELEGATED = [*RUNNING, e.CallsHandedOver({"c1": "k1", "c2": "k2"}, 9e9, "subagent")]
STATES: dict[str, list[e.AnyEvent]] = {
    "idle": [],
    "thinking": OPEN,
    "running": RUNNING,
    "approval": APPROVAL,
    "question": QUESTION,
    "handed over": HANDED,
    "delegated": DELEGATED,
}


COMMANDS = ChatCommands(lambda principal, session, options: "")


def said(text: str) -> Said:
    return Said(Message("user", (Text(text, Label("member", source=ANN.id)),)))


def results(*ids: str, message: Message | None = None) -> ToolResults:
    return ToolResults(tuple(ToolResult(id_, (Text("x"),)) for id_ in ids), message)


def row(body: Body, who: Principal = ANN, when: When = "steer", inbox_id: int = 5) -> Waiting:
    return Waiting(inbox_id, who, Inbound(str(inbox_id), PLACE, who.id, 0.0, body, when=when))


def taken(state: str, *rows: Waiting) -> tuple[int, list[str]] | None:
    """The inbox id that is taken first, and its events: kinds, with the status of what is
    closed."""
    folded = fold(
        State("s"), (e.Recorded(0, "s", n, 0.0, event) for n, event in enumerate(STATES[state], 1))
    )
    found = admit_next(folded, rows, COMMANDS)
    if found is None:
        return None
    fold(
        folded,
        (e.Recorded(0, "s", folded.n + n, 0.0, event) for n, event in enumerate(found[1], 1)),
    )
    names = [
        f"{event.call_id} {event.status}"
        if isinstance(event, e.CallClosed)
        else e.event_kind(event)
        for event in found[1]
    ]
    return found[0].inbox_id, names


HI = said("hi")
STOP = Command("stop")
STATUS = Command("status")
GOT = ["message_received"]
COMMAND = ["command_run"]
YES = ["approval_answered"]
TOLD = ["question_answered"]
FINISHED = ["tool_finished"]
RETURNED = ["results_returned"]
SUPERSEDED = ["c1 superseded", "c2 superseded", *GOT]
INTERRUPTED = ["c1 interrupted", "c2 interrupted"]

TABLE: list[tuple[str, Waiting, list[str] | None]] = [
    *(
        (
            state,
            row(STOP, BOB),
            [*(INTERRUPTED if state not in ("idle", "thinking") else []), *COMMAND],
        )
        for state in STATES
    ),
    *((state, row(STATUS, BOB), COMMAND) for state in STATES),
    *(
        (state, row(Edit("1", Message("user", ()))), ["message_edited"])
        for state in STATES
        if state != "idle"
    ),
    ("idle", row(Edit("1", Message("user", ()))), ["message_edited", "command_run"]),
    *((state, row(Deletion("1", "hi"), BOB), ["message_deleted"]) for state in STATES),
    *((state, row(Reaction("1", "x", True), BOB), ["reacted"]) for state in STATES),
    *((state, row(HI, BOB), None if state != "idle" else GOT) for state in STATES),
    *((state, row(HI, BOB, "interrupt"), None if state != "idle" else GOT) for state in STATES),
    *((state, row(HI, ANN, "queue"), None) for state in ("thinking", "running", "approval")),
    ("idle", row(HI, ANN, "queue"), GOT),
    ("thinking", row(HI), GOT),
    ("running", row(HI), None),
    ("approval", row(HI), SUPERSEDED),
    ("question", row(HI), TOLD),
    ("question", row(HI, ANN, "queue"), TOLD),
    ("idle", row(HI, ANN, "interrupt"), GOT),
    ("thinking", row(HI, ANN, "interrupt"), GOT),
    ("running", row(HI, ANN, "interrupt"), [*INTERRUPTED, *GOT]),
    ("approval", row(HI, ANN, "interrupt"), [*INTERRUPTED, *GOT]),
    ("approval", row(said("Yes.")), YES),
    ("approval", row(said("/no")), YES),
    ("approval", row(said("yes but later")), SUPERSEDED),
    ("approval", row(said("yes"), BOB), None),
    ("approval", row(said("yes"), OLGA), YES),
    ("approval", row(Answer("ask", "once")), YES),
    ("approval", row(Answer("ask", "once"), OLGA), YES),
    ("approval", row(Answer("ask", "once"), BOB), COMMAND),
    ("question", row(Answer("ask", "blue")), TOLD),
    ("question", row(Answer("ask", "blue"), BOB), COMMAND),
    *((state, row(Answer("old", "once")), COMMAND) for state in STATES),
    ("delegated", row(Result("k2", (Text("x"),)), CLOCK), ["tool_finished"]),
    ("delegated", row(Result("c2", (Text("x"),)), CLOCK), None),
    ("delegated", row(results("k1", "k2")), COMMAND),
    ("delegated", row(HI), ["c1 ok", "c2 ok", *GOT]),
    ("delegated", row(HI, ANN, "queue"), None),
    ("delegated", row(HI, ANN, "interrupt"), [*INTERRUPTED, *GOT]),
    ("handed over", row(Result("h2", (Text("x"),)), CLOCK), None),
    ("running", row(Result("c2", (Text("x"),)), CLOCK), None),
    ("running", row(Result("c9", (Text("x"),)), CLOCK), None),
    ("thinking", row(Result("c9", (Text("x"),)), CLOCK), GOT),
    ("idle", row(Result("c9", (Text("x"),)), CLOCK), GOT),
    ("thinking", row(HI, CLOCK), None),
    *((state, row(results("h1", "h2")), COMMAND) for state in STATES if state != "handed over"),
    ("handed over", row(results("h1", "h2")), [*FINISHED, *FINISHED, *RETURNED]),
    ("handed over", row(results("h2", "h1", "h9")), [*FINISHED, *FINISHED, *RETURNED]),
    ("handed over", row(results("h2")), ["c1 interrupted", *FINISHED, *RETURNED]),
    (
        "handed over",
        row(results("h1", "h2", message=HI.message)),
        [*FINISHED, *FINISHED, *RETURNED, *GOT],
    ),
    ("handed over", row(results("c1", "c2")), COMMAND),
    ("handed over", row(results("h1", "h2"), BOB), COMMAND),
    ("handed over", row(HI), SUPERSEDED),
    ("handed over", row(HI, ANN, "queue"), SUPERSEDED),
    ("handed over", row(HI, ANN, "interrupt"), [*INTERRUPTED, *GOT]),
    (
        "idle",
        row(Said(HI.message, (HI.message, HI.message))),
        ["history_message", "history_message", *GOT],
    ),
    *((state, row(Rewind(0), BOB), []) for state in STATES),  # the log decides
    *(
        (state, row(Command(name), BOB), [])
        for state in STATES
        for name in ("undo", "retry", "branch")
    ),
    *((state, row(Rewind(0), ANN, "queue"), [] if state == "idle" else None) for state in STATES),
    *((state, row(Configure(SessionOptions(title="x")), BOB), ["options_set"]) for state in STATES),
    *((state, row(Configure(SessionOptions(title="x")), CLOCK), COMMAND) for state in STATES),
    *((state, row(Command("title", "x"), BOB), ["options_set", *COMMAND]) for state in STATES),
]


@pytest.mark.parametrize("when", ["steer", "interrupt"])
def test_what_comes_after_a_stop_waits_for_a_turn_of_its_own(when: When) -> None:
    stopped = [*OPEN, e.CommandRun(4, ANN, "stop", "", "Stopped.")]
    state = fold(
        State("s"), (e.Recorded(0, "s", n, 0.0, each) for n, each in enumerate(stopped, 1))
    )
    assert admit_next(state, [row(HI, ANN, when, 5)], COMMANDS) is None
    assert admit_next(state, [row(HI, ANN, when, 3)], COMMANDS) is not None


@pytest.mark.parametrize(("state", "waiting", "events"), TABLE)
def test_one_row(state: str, waiting: Waiting, events: list[str] | None) -> None:
    assert taken(state, waiting) == (None if events is None else (5, events))


def test_every_kind_of_body_is_in_the_table() -> None:
    assert {type(waiting.inbound.body) for _, waiting, _ in TABLE} == set(get_args(Body))


@pytest.mark.parametrize(
    ("state", "order"),
    [
        ("approval", "stop status answer interrupt steer"),
        ("running", "stop status late interrupt"),
        ("idle", "stop status late interrupt queue steer"),
    ],
)
def test_classes_come_in_their_order(state: str, order: str) -> None:
    bodies: dict[str, Waiting] = {
        "queue": row(said("one"), ANN, "queue", 1),
        "steer": row(said("two"), ANN, "steer", 2),
        "interrupt": row(said("three"), ANN, "interrupt", 3),
        "answer": row(Answer("ask", "once"), ANN, "steer", 4),
        "late": row(Answer("old", "once"), ANN, "steer", 4),
        "status": row(STATUS, BOB, "steer", 5),
        "stop": row(STOP, BOB, "steer", 6),
    }
    left = [bodies[name] for name in ("queue", "steer", "interrupt", "answer", "status", "stop")]
    seen = []
    names = {waiting.inbox_id: name for name, waiting in bodies.items() if name in order.split()}
    while found := taken(state, *left):
        seen.append(names.get(found[0], "?"))
        left = [waiting for waiting in left if waiting.inbox_id != found[0]]
    wanted = order.split()
    if state == "idle":  # nothing to interrupt: as they came
        wanted = ["stop", "status", "late", "queue", "steer", "interrupt"]
    assert seen == wanted


def test_within_a_class_the_first_comes_first() -> None:
    rows = [row(said(str(i)), ANN, "steer", i) for i in (3, 7, 9)]
    assert taken("thinking", *rows) == (3, GOT)


def test_what_a_started_call_may_have_done_is_said() -> None:
    events = [*RUNNING, e.ToolStarted("c1")]
    folded = fold(
        State("s"), (e.Recorded(0, "s", n, 0.0, event) for n, event in enumerate(events, 1))
    )
    found = admit_next(folded, [row(STOP)], COMMANDS)
    assert found is not None
    reasons = [event.reason for event in found[1] if isinstance(event, e.CallClosed)]
    assert reasons == ["ann stopped it; it may or may not have happened", "ann stopped it"]


def test_answers_carry_the_choice() -> None:
    for text, choice in (
        ("ok", "once"),
        ("ALWAYS!", "always"),
        ("n", "no"),
        ("never", "never"),
        ("blue", None),
    ):
        folded = fold(
            State("s"), (e.Recorded(0, "s", n, 0.0, event) for n, event in enumerate(APPROVAL, 1))
        )
        found = admit_next(folded, [row(Answer("ask", text))], COMMANDS)
        assert found is not None and found[1] == [e.ApprovalAnswered(5, "ask", choice or "no", ANN)]  # type: ignore[arg-type]


def test_what_is_written_after_a_stop_is_no_part_of_what_was_stopped() -> None:
    events = [*OPEN, e.CommandRun(4, ANN, "stop", behind=7)]
    stopped = fold(
        State("s"), (e.Recorded(0, "s", n, 0.0, event) for n, event in enumerate(events, 1))
    )
    assert admit_next(stopped, [row(said("and this"), ANN, "steer", 3)], COMMANDS) is not None
    assert admit_next(stopped, [row(said("do that instead"), ANN, "steer", 5)], COMMANDS) is None


def test_what_was_stopped_is_not_told_any_more() -> None:
    """The result of a sub-agent may have come before the stop was taken in; a later one is told,
    and so is a command that had ended."""
    stopped = fold(State("s"), [e.Recorded(0, "s", 1, 0.0, e.CommandRun(4, ANN, "stop", behind=7))])
    body = Result("k1", (Text("x"),))
    for inbox_id, what, kinds in (
        (5, "subagent:k1:end", COMMAND),
        (7, "subagent:k1:end", COMMAND),
        (8, "subagent:k1:end", GOT),
        (5, "process:k1", GOT),
    ):
        waiting = Waiting(inbox_id, CLOCK, Inbound(what, PLACE, CLOCK.id, 0.0, body))
        found = admit_next(stopped, [waiting], COMMANDS)
        assert found is not None and [e.event_kind(each) for each in found[1]] == kinds
