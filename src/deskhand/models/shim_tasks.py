"""Long work for a small model: it splits what is asked for, and is then given one task at a time.
Pure.

It cannot keep a list, so the list is kept for it: which task is next and when all are done is read
from the calls of `manage_tasks` in the conversation. Each turn does one task; the runtime sees to
it that another turn follows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from ..types.messages import Text
from ..types.tasks import STATUS_MARKS, TaskStatus
from .base import ContextMessage
from .shim_prompts import Shots
from .shim_steps import SayStep
from .shim_turn import Did, Move, ShimTurn, list_steps, parse_objects, person_text

TASKS = "manage_tasks"
SHOW_PLAN = "exit_plan_mode"
ASK = "ask_user"
DEEP_WORK_HEADING = "# Deep work\nYou work by yourself until the whole request is met."
PLAN_MODE_HEADING = "# Plan mode\nYou only look now, and make a plan:"
"""Begin what stands in the last block of the system prompt in deep work and in plan mode; `runtime`
writes them."""
LIST_TASKS = Move(TASKS, {"action": "list"})
MAX_STEPS = 12
"""More steps than this a small model does not bring to an end."""
TITLE_CHARS = 200
MAX_EARLIER_RESULTS = 4
LIST_FAILED = "I could not keep the list of tasks: {}"
BLOCKED_REPLY = "I need you for this: {}"
NO_TASKS_REPLY = "There are no tasks here. Tell me what is to be done."
EMPTY_LIST = "no tasks yet"
"""Begins what `manage_tasks` says of an empty list."""

SPLITTER = """Split the user's request into small steps, in the order in which they must be done.
Each step is one short sentence that can be understood without the others: with the names, numbers and words that it needs.
One step does one thing. Leave nothing out, and add nothing that was not asked for.
Answer with JSON: {"steps": ["first step", "second step"]}"""  # noqa: E501 -- as it was tried


def _make_shot(request: str, *steps: str) -> tuple[str, str]:
    return request, json.dumps({"steps": steps})


SPLITTER_SHOTS: Shots = (
    _make_shot(
        "count the words of essay.txt and write the number into report.txt",
        "Count the words of essay.txt",
        "Write the number of words of essay.txt into report.txt",
    ),
    _make_shot("rename plan.md to old.md", "Rename plan.md to old.md"),
    _make_shot(
        "Please tidy up: make a folder music, move song.mp3 and tune.mp3 into it, and "
        "delete draft.txt. Then tell me what is left here.",
        "Make a folder music",
        "Move song.mp3 and tune.mp3 into the folder music",
        "Delete draft.txt",
        "List the files that are left here",
    ),
    _make_shot(
        "read recipe.md, put a list of what I must buy into shopping.md, and set the date "
        "in diary.md to 3 May",
        "Read recipe.md and write a list of what must be bought into shopping.md",
        "Set the date in diary.md to 3 May",
    ),
)
STEPS_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "steps": {
            "type": "array",
            "items": {"type": "string", "minLength": 3},
            "minItems": 1,
            "maxItems": MAX_STEPS,
        }
    },
    "required": ["steps"],
    "additionalProperties": False,
}


class KnownTasks(msgspec.Struct, frozen=True):
    """A task as the list tells it. `waits`: others come first."""

    id: int
    title: str
    status: TaskStatus
    waits: bool = False


class Split(msgspec.Struct, frozen=True):
    """The model splits this into tasks. `drop` are those of a plan that was not approved."""

    request: str
    drop: tuple[int, ...] = ()


class TaskCalls(msgspec.Struct, frozen=True):
    """These calls, without asking the model."""

    moves: tuple[Move, ...]


class Hear(msgspec.Struct, frozen=True):
    """A person has said something: whether it is work is asked first. `then` follows where it
    is."""

    then: Split | TaskCalls


class OnTask(msgspec.Struct, frozen=True):
    """The next step of this task, as if it were all that was asked for."""

    id: int
    turn: ShimTurn


WorkStep = Hear | Split | TaskCalls | OnTask | SayStep


def next_work(messages: Sequence[ContextMessage], planning: bool) -> WorkStep:
    """What comes next in long work. The conversation itself says how far it is, so a new process
    goes on with it."""
    start = max((i for i, shown in enumerate(messages) if _is_turn_start(shown)), default=0)
    said = person_text(messages[start].message) if messages else ""
    before = list_steps(messages[:start])
    steps = list_steps(messages[start + 1 :])
    has_worked = any(step.move.tool == TASKS for step in before)
    if said and not steps and not has_worked:
        return Hear(TaskCalls((LIST_TASKS,)))

    told = [step for step in steps if step.move == LIST_TASKS]
    if not told:
        if steps and steps[-1].failed:
            return SayStep(LIST_FAILED.format(steps[-1].result))
        return TaskCalls((LIST_TASKS,))

    last = steps[-1]
    if last.failed and last.move.tool == SHOW_PLAN:
        return SayStep(f"I do not begin yet: {last.result}")
    if last.failed and last.move.tool == TASKS:
        return SayStep(LIST_FAILED.format(last.result))
    listed = told[-1].result
    if not listed.startswith(EMPTY_LIST) and not any(_parse_tasks(listed)):
        return TaskCalls((LIST_TASKS,))  # an earlier result, which is out of view by now

    graph = collect_tasks(steps)
    if said and not any(_is_taking_up(step.move) for step in steps):
        work = _take_up_request(" ".join([said, *_answers(steps)]), graph, planning)
        has_asked = any(step.move.tool == ASK for step in steps)
        may_be_talk = has_worked and not has_asked and isinstance(work, Split)
        return Hear(work) if may_be_talk else work
    if planning and not any(step.move.tool == SHOW_PLAN for step in steps):
        return TaskCalls((Move(SHOW_PLAN, {"plan": _render_plan(graph)}),))
    return _continue_work(graph, (*before, *steps), last, messages[start].n)


def _continue_work(
    graph: Sequence[KnownTasks], steps: Sequence[Did], last: Did, key: int
) -> WorkStep:
    left = [task for task in graph if task.status != "completed"]
    if not left:
        return SayStep(_render_report(graph, steps) if graph else NO_TASKS_REPLY)
    if _is_task_end(last.move):
        result = str(last.move.arguments.get("result", ""))
        return SayStep(f"{result}\n({len(graph) - len(left)} of {len(graph)} tasks are done.)")

    doing = next((task for task in left if task.status == "in_progress"), None)
    if doing is not None:
        return OnTask(doing.id, _make_task_turn(doing, steps, key))
    free = next((task for task in left if task.status == "pending" and not task.waits), None)
    if free is None:
        return SayStep(BLOCKED_REPLY.format("; ".join(task.title for task in left)))
    begin = {"action": "update", "task_id": free.id, "status": "in_progress"}
    return TaskCalls((Move(TASKS, begin),))


def _make_task_turn(task: KnownTasks, steps: Sequence[Did], key: int) -> ShimTurn:
    """The task as a turn of its own: what came of those before it is what was said before."""
    # Where it was begun; where that is out of view, all since the list was told.
    begins = [i for i, step in enumerate(steps) if _is_task_start(step.move, task.id)]
    lists = [i for i, step in enumerate(steps) if step.move == LIST_TASKS]
    begun = max(begins or lists)
    words = str(steps[begun].move.arguments.get("result", ""))
    done = tuple(step for step in steps[begun + 1 :] if step.move.tool != TASKS)

    titles = {found.id: found.title for found in collect_tasks(steps)}
    earlier = list[tuple[str, str]]()
    for id_, result in _task_results(steps)[-MAX_EARLIER_RESULTS:]:
        if id_ in titles:
            earlier += [("user", titles[id_]), ("assistant", result)]
    request = "\n".join(part for part in (task.title, words) if part)
    return ShimTurn(request, key, tuple(earlier), done)


def _take_up_request(
    request: str, graph: Sequence[KnownTasks], planning: bool
) -> Split | TaskCalls:
    """What a person said is what a blocked task waits for, or else it is new work."""
    if planning:
        return Split(request, tuple(task.id for task in graph if task.status == "pending"))
    blocked = next((task for task in graph if task.status == "blocked"), None)
    if blocked is None:
        return Split(request)
    given = {"action": "update", "task_id": blocked.id, "status": "in_progress", "result": request}
    return TaskCalls((Move(TASKS, given),))


# What the model makes of it


def parse_steps(written: str) -> list[str]:
    """The steps that the model wrote down; none where there is nothing of that form."""
    steps = next(parse_objects(written), {}).get("steps")
    if not isinstance(steps, list):
        return []
    lines = [" ".join(step.split()) for step in steps if isinstance(step, str)]
    return [line[:TITLE_CHARS] for line in lines if line]


def is_compound(step: str) -> bool:
    """It may be more than one thing: a step that was asked for beside others is split no further by
    the model unless it is asked about that one alone."""
    return bool(_AND.search(step))


_AND = re.compile(r"\b(?:and|then|und|dann)\b|;", re.IGNORECASE)


def make_task_moves(
    steps: Sequence[str], request: str, drop: Iterable[int] = ()
) -> tuple[Move, ...]:
    """The calls that write down these steps: the request itself where there are none."""
    titles = list(dict.fromkeys(steps))[:MAX_STEPS] or [_truncate_title(request)]
    gone = (Move(TASKS, {"action": "delete", "task_id": id_}) for id_ in drop)
    created = (Move(TASKS, {"action": "create", "title": title}) for title in titles)
    return (*gone, *created)


def make_end_move(id_: int, words: str, *, blocked: bool = False) -> Move:
    """The call that says what came of a task, or that it cannot be done."""
    if blocked:
        given = {"action": "update", "task_id": id_, "status": "blocked", "result": words}
    else:
        given = {"action": "complete", "task_id": id_, "result": words}
    return Move(TASKS, given)


def _truncate_title(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= TITLE_CHARS else f"{line[: TITLE_CHARS - 1]}…"


# What the list says

_LINE = re.compile(
    r"^\s*(?:ok, )?"
    r"(\[.\]) #(\d+) (.*?)"  # the mark, the number and the title
    r"(?: \(([^()]*)\))?$"  # and a note, ours or the title's own end
)
_OWN_NOTE = re.compile(r"(?:^|; )(?:waits for #\d+|blocked\b)")
_STATUS = {mark: status for status, mark in STATUS_MARKS.items()}


def collect_tasks(steps: Iterable[Did]) -> list[KnownTasks]:
    """All tasks, by the newest that was told of each."""
    tasks: dict[int, KnownTasks] = {}
    for step in steps:
        if step.move.tool != TASKS or step.failed:
            continue
        if step.move.arguments.get("action") == "list":
            tasks.clear()
        elif step.move.arguments.get("action") == "delete":
            tasks.pop(_task_id(step.move), None)
            continue
        for task in _parse_tasks(step.result):
            tasks[task.id] = task
    return [task for _, task in sorted(tasks.items())]


def _parse_tasks(text: str) -> Iterator[KnownTasks]:
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None or match[1] not in _STATUS:
            continue
        title = match[3]
        note = match[4] or ""
        ours = _OWN_NOTE.search(note)
        if note and ours is None:
            title = f"{title} ({note})"
        waits = ours is not None and "waits" in ours[0]
        yield KnownTasks(int(match[2]), title, _STATUS[match[1]], waits)


def _task_results(steps: Iterable[Did]) -> list[tuple[int, str]]:
    """(task, what came of it), in turn."""
    moves = [step.move for step in steps if step.move.tool == TASKS and not step.failed]
    return [
        (_task_id(move), str(move.arguments.get("result", "")))
        for move in moves
        if move.arguments.get("action") == "complete"
    ]


def _render_report(graph: Sequence[KnownTasks], steps: Sequence[Did]) -> str:
    """What was done and what came of each, by what the list says."""
    results = dict(_task_results(steps))
    lines = [
        f"{n}. {task.title}: {results.get(task.id, 'done')}" for n, task in enumerate(graph, 1)
    ]
    return "All tasks are done.\n" + "\n".join(lines)


def _render_plan(graph: Sequence[KnownTasks]) -> str:
    left = [task for task in graph if task.status != "completed"]
    return "\n".join(f"{n}. {task.title}" for n, task in enumerate(left, 1))


def _is_turn_start(shown: ContextMessage) -> bool:
    """A person, or the runtime, says something: a turn begins."""
    message = shown.message
    return message.role == "user" and any(isinstance(part, Text) for part in message.parts)


def _is_taking_up(move: Move) -> bool:
    given = move.arguments
    answered = given.get("status") == "in_progress" and "result" in given
    return move.tool == TASKS and (answered or given.get("action") == "create")


def _is_task_start(move: Move, id_: int) -> bool:
    is_begun = move.arguments.get("status") == "in_progress"
    return move.tool == TASKS and is_begun and _task_id(move) == id_


def _is_task_end(move: Move) -> bool:
    given = move.arguments
    is_end = given.get("action") == "complete" or given.get("status") == "blocked"
    return move.tool == TASKS and is_end


def _answers(steps: Sequence[Did]) -> list[str]:
    return [step.result for step in steps if step.move.tool == ASK and not step.failed]


def _task_id(move: Move) -> int:
    id_ = move.arguments.get("task_id", 0)
    return id_ if isinstance(id_, int) else 0
