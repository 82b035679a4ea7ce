"""Long work for a small model, read from the conversation alone: messages in, what comes next
out."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from deskhand.models.base import ContextMessage
from deskhand.models.shim_steps import SayStep
from deskhand.models.shim_tasks import (
    LIST_TASKS,
    TASKS,
    Hear,
    KnownTasks,
    OnTask,
    Split,
    TaskCalls,
    collect_tasks,
    is_compound,
    make_end_move,
    make_task_moves,
    next_work,
    parse_steps,
)
from deskhand.models.shim_turn import Did, Move
from deskhand.tools.task_graph import create, merge_changes, update
from deskhand.tools.task_words import render_progress, render_task_line, render_tasks
from deskhand.types.labels import LOCAL, OWNER, UNTRUSTED
from deskhand.types.messages import Message, ResultStatus, Text, ToolCall, ToolResult
from deskhand.types.tasks import Task, TaskGraph
from deskhand.types.turn import TASK_LIST_PREFIX

ASKED = Message(
    "user",
    (Text("2026-11-22", LOCAL), Text("count the lines of a.txt and write them into b.txt", OWNER)),
)
NUDGE = Message("user", (Text("Go on: 2 tasks are open.", LOCAL),))


class Talk:
    """A conversation as it comes to be: each call gets its result from the real graph of tasks."""

    def __init__(self, *messages: Message) -> None:
        self.messages: list[Message] = list(messages)
        self.graph: TaskGraph = {}

    def hear(self, message: Message) -> None:
        self.messages.append(message)

    def next(self, planning: bool = False) -> object:
        return next_work(
            [ContextMessage(n, message) for n, message in enumerate(self.messages, 1)], planning
        )

    def do(self, *moves: Move) -> None:
        """These calls in one reply, and what came of them."""
        calls = tuple(
            ToolCall(
                f"c{len(self.messages)}.{n}",
                move.tool,
                msgspec.Raw(msgspec.json.encode(move.arguments)),
            )
            for n, move in enumerate(moves)
        )
        self.messages.append(Message("assistant", calls))
        for call, move in zip(calls, moves, strict=True):
            self.messages.append(
                Message("tool", (ToolResult(call.id, (Text(self._result(move)),)),))
            )

    def result(self, move: Move, text: str, status: ResultStatus = "ok") -> None:
        call = ToolCall(
            f"c{len(self.messages)}", move.tool, msgspec.Raw(msgspec.json.encode(move.arguments))
        )
        self.messages += [
            Message("assistant", (call,)),
            Message("tool", (ToolResult(call.id, (Text(text),), status),)),
        ]

    def _result(self, move: Move) -> str:
        given = dict(move.arguments)
        match given.pop("action", ""):
            case "create":
                changed = create(self.graph, Task(0, given["title"]))
            case "complete":
                changed = update(
                    self.graph, given["task_id"], LOCAL, status="completed", result=given["result"]
                )
            case "update":
                changed = update(self.graph, given.pop("task_id"), LOCAL, **given)
            case "list":
                return (
                    "\n".join(filter(None, (render_tasks(self.graph), render_progress(self.graph))))
                    or "no tasks yet"
                )
            case _:
                return "The plan is approved. Carry it out."
        self.graph = merge_changes(self.graph, changed)
        return f"ok, {render_task_line(self.graph, changed[0])}\n{render_progress(self.graph)}"

    def follow(self, planning: bool = False) -> list[Move]:
        """What is done without the model, until it is wanted."""
        done: list[Move] = []
        while isinstance(work := self.next(planning), TaskCalls):
            self.do(*work.moves)
            done += work.moves
        return done


def planned(*titles: str) -> Talk:
    """A conversation in which the request was split into these tasks, and the first is begun."""
    talk = Talk(ASKED)
    talk.do(LIST_TASKS)
    talk.do(*(Move(TASKS, {"action": "create", "title": title}) for title in titles))
    talk.follow()
    return talk


def test_what_a_person_says_is_heard_first_and_then_split() -> None:
    talk = Talk(ASKED)
    assert talk.next() == Hear(TaskCalls((LIST_TASKS,)))
    talk.do(LIST_TASKS)
    assert talk.next() == Split("count the lines of a.txt and write them into b.txt")


def test_a_plan_is_shown_before_anything_begins() -> None:
    talk = Talk(ASKED)
    talk.do(LIST_TASKS)
    talk.do(*make_task_moves(["Count the lines", "Write them into b.txt"], "asked"))
    shown = Move("exit_plan_mode", {"plan": "1. Count the lines\n2. Write them into b.txt"})
    assert talk.next(planning=True) == TaskCalls((shown,))
    talk.result(shown, "no, count the words", "denied")
    assert talk.next(planning=True) == SayStep("I do not begin yet: no, count the words")


def test_another_word_makes_another_plan() -> None:
    talk = Talk(ASKED)
    talk.do(LIST_TASKS)
    talk.do(*make_task_moves((), "count them"))
    talk.hear(Message("user", (Text("count the words", OWNER),)))
    assert talk.next(planning=True) == TaskCalls((LIST_TASKS,))
    talk.do(LIST_TASKS)
    assert talk.next(planning=True) == Hear(Split("count the words", drop=(1,)))


def test_one_task_after_the_other_with_what_came_of_those_before() -> None:
    talk = planned("Count the lines of a.txt", "Write the number into b.txt")
    first = talk.next()
    assert isinstance(first, OnTask) and (first.id, first.turn.request) == (
        1,
        "Count the lines of a.txt",
    )
    assert first.turn.did == () and first.turn.earlier == ()
    talk.result(Move("shell", {"command": "wc -l a.txt"}), "12 a.txt")
    again = talk.next()
    assert isinstance(again, OnTask) and [did.result for did in again.turn.did] == ["12 a.txt"]
    talk.do(make_end_move(1, "a.txt has 12 lines."))
    assert talk.next() == SayStep("a.txt has 12 lines.\n(1 of 2 tasks are done.)")
    talk.hear(NUDGE)
    assert talk.follow() == [
        LIST_TASKS,
        Move(TASKS, {"action": "update", "task_id": 2, "status": "in_progress"}),
    ]
    second = talk.next()
    assert isinstance(second, OnTask) and (second.id, second.turn.did) == (2, ())
    assert second.turn.earlier == (
        ("user", "Count the lines of a.txt"),
        ("assistant", "a.txt has 12 lines."),
    )
    talk.do(make_end_move(2, "b.txt says 12."))
    report = (
        "1. Count the lines of a.txt: a.txt has 12 lines.\n2. Write the number into b.txt: "
        "b.txt says 12."
    )
    assert talk.next() == SayStep(f"All tasks are done.\n{report}")


def test_what_was_begun_before_a_stop_goes_on_where_it_was() -> None:
    talk = planned("Count the lines of a.txt")
    talk.result(Move("shell", {"command": "wc -l a.txt"}), "12 a.txt")
    talk.hear(NUDGE)
    assert talk.follow() == [LIST_TASKS]
    work = talk.next()
    assert isinstance(work, OnTask) and [did.result for did in work.turn.did] == ["12 a.txt"]


def test_what_is_blocked_is_asked_about_and_an_answer_sets_it_free() -> None:
    talk = planned("Pay the electrician")
    talk.do(make_end_move(1, "which account?", blocked=True))
    assert isinstance(talk.next(), SayStep)
    talk.hear(NUDGE)
    talk.follow()
    assert talk.next() == SayStep("I need you for this: Pay the electrician")
    talk.hear(Message("user", (Text("the blue one, thanks", OWNER),)))
    talk.follow()
    work = talk.next()
    assert (
        isinstance(work, OnTask)
        and work.turn.request == "Pay the electrician\nthe blue one, thanks"
    )


def test_one_task_that_is_blocked_does_not_hold_the_others() -> None:
    talk = planned("Pay the electrician", "Count the lines of a.txt")
    talk.do(make_end_move(1, "which account?", blocked=True))
    assert talk.next() == SayStep("which account?\n(0 of 2 tasks are done.)")
    talk.hear(NUDGE)
    talk.follow()
    work = talk.next()
    assert isinstance(work, OnTask) and work.id == 2


def test_a_list_that_cannot_be_kept_is_said() -> None:
    talk = Talk(NUDGE)
    talk.result(LIST_TASKS, "the disk is full", "error")
    assert talk.next() == SayStep("I could not keep the list of tasks: the disk is full")


def test_more_that_a_person_asks_for_becomes_more_tasks() -> None:
    talk = planned("Count the lines of a.txt")
    talk.do(make_end_move(1, "12"))
    talk.hear(Message("user", (Text("now delete b.txt", OWNER),)))
    assert talk.next() == TaskCalls((LIST_TASKS,))
    talk.do(LIST_TASKS)
    assert talk.next() == Hear(Split("now delete b.txt"))
    talk.result(Move("ask_user", {"question": "which b.txt?"}), "the old one")
    assert talk.next() == Split("now delete b.txt the old one")


def test_what_is_out_of_view_is_looked_up_again_and_nothing_is_said_to_be_done() -> None:
    talk = planned("Count the lines of a.txt", "Write the number into b.txt")
    talk.do(make_end_move(1, "12"))
    hidden = Message(
        "tool", (ToolResult("c", (Text("[an earlier result; call the tool again]", LOCAL),)),)
    )
    talk.messages[2] = replace(
        hidden, parts=(replace(hidden.parts[0], call_id=talk.messages[1].calls[0].id),)
    )
    assert talk.next() == TaskCalls((LIST_TASKS,))
    talk.follow()
    assert isinstance(work := talk.next(), OnTask) and work.id == 2


def test_without_tasks_nothing_is_said_to_be_done() -> None:
    talk = Talk(NUDGE)
    talk.do(LIST_TASKS)
    assert talk.next() == SayStep("There are no tasks here. Tell me what is to be done.")


def test_a_task_that_another_model_began_goes_on() -> None:
    talk = Talk(NUDGE)
    talk.graph = {1: Task(1, "Count the lines of a.txt", status="in_progress")}
    talk.do(LIST_TASKS)
    talk.result(Move("shell", {"command": "wc -l a.txt"}), "12 a.txt")
    work = talk.next()
    assert isinstance(work, OnTask) and [did.result for did in work.turn.did] == ["12 a.txt"]


def test_the_list_that_the_runtime_tells_is_no_persons_word() -> None:
    told = Text(f"{TASK_LIST_PREFIX}\n[ ] #1 Count the lines of a.txt\n</tasks>", UNTRUSTED)
    assert Talk(Message("user", (*NUDGE.parts, told))).next() == TaskCalls((LIST_TASKS,))


def test_a_plan_is_shown_once_in_a_turn() -> None:
    talk = planned("Count the lines of a.txt")
    shown = Move("exit_plan_mode", {"plan": "1. Count the lines of a.txt"})
    talk.result(shown, "The plan is approved. Carry it out.")
    assert isinstance(talk.next(planning=True), OnTask)


@pytest.mark.parametrize(
    ("written", "titles"),
    [
        ('{"steps": ["a", " b  c ", "a"]}', ["a", "b c"]),
        ('```json\n{"steps": ["a"]}\n```', ["a"]),
        ('{"steps": []}', ["do it all"]),
        ('{"steps": [3, null]}', ["do it all"]),
        ('{"steps": "a"}', ["do it all"]),
        ("no idea", ["do it all"]),
        ("", ["do it all"]),
    ],
)
def test_what_the_model_makes_of_a_request(written: str, titles: list[str]) -> None:
    moves = make_task_moves(parse_steps(written), "do it\nall", drop=(4,))
    assert [move.arguments["title"] for move in moves[1:]] == titles
    assert moves[0] == Move(TASKS, {"action": "delete", "task_id": 4})


def test_long_requests_make_short_titles() -> None:
    (move,) = make_task_moves((), "x" * 5000)
    assert len(move.arguments["title"]) == 200


def test_no_more_than_a_small_model_can_do() -> None:
    assert len(make_task_moves([f"step {n}" for n in range(40)], "asked")) == 12


@pytest.mark.parametrize(
    ("step", "compound"),
    [
        ("Count a.txt and write b.txt", True),
        ("Make it; Then move it", True),
        ("Read the handbook", False),
    ],
)
def test_what_may_be_more_than_one_thing(step: str, compound: bool) -> None:
    assert is_compound(step) is compound


def test_the_list_is_read_as_it_is_written() -> None:
    """What `manage_tasks` tells and what is read of it belong together: this fails when one of them
    changes."""
    tasks = (
        Task(1, "Done (with care)", status="completed", result="ok"),
        Task(2, "Waiting", depends_on=(4,)),
        Task(3, "Held up", status="blocked", result="which one?"),
        Task(4, "Going on", status="in_progress", owner="ann"),
        Task(5, "Part of it", parent=4),
    )
    graph = {task.id: task for task in tasks}
    told = Did(LIST_TASKS, f"{render_tasks(graph)}\n{render_progress(graph)}", "ok")
    assert collect_tasks([told]) == [
        KnownTasks(1, "Done (with care)", "completed"),
        KnownTasks(2, "Waiting", "pending", waits=True),
        KnownTasks(3, "Held up", "blocked"),
        KnownTasks(4, "Going on (ann)", "in_progress"),
        KnownTasks(5, "Part of it", "pending"),
    ]
