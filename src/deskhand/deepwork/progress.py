"""The progress of long work, for people: in a conversation, on the page and in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ..config.sections import DeepWorkConfig
from ..store.base import Store
from ..tools.queries import tasks_of
from ..tools.task_graph import find_stuck
from ..tools.task_words import list_open, list_tasks, percent_done
from ..types.goals import LongWork, LongWorkState
from ..types.marked_texts import mark_text
from ..types.tasks import TaskGraph
from . import queries
from .fold import LongRun, fold_run
from .next_moves import StateNote, is_spent, next_moves

STATES: dict[LongWorkState, str] = {
    "planning": mark_text("it makes a plan, and changes nothing before your yes"),
    "working": mark_text("it is at work"),
    "asking": mark_text("it waits for your answer"),
    "blocked": mark_text("it waits for you, since tasks are blocked"),
    "stopped": mark_text("it was stopped; write, and it goes on"),
    "resting": mark_text("it rests"),
    "spent": mark_text("its tokens are used up; /deep on gives as many again"),
    "done": mark_text("all tasks are done"),
}


def make_long_work(run: LongRun, graph: TaskGraph, config: DeepWorkConfig) -> LongWork:
    """The progress of a session that goes on by itself."""
    tasks = list_tasks(graph)
    open_ = list_open(graph)
    doing = ""
    for task in open_:
        if task.status == "in_progress":
            doing = f"#{task.id} {task.active or task.title}"
            break

    work = LongWork(
        session=run.session,
        state=_state(run, graph, config),
        deep=run.deep,
        done=len(tasks) - len(open_),
        tasks=len(tasks),
        percent=percent_done(graph),
        doing=doing,
        used=run.used,
        most=config.tokens,
    )
    if run.goal:
        work = replace(
            work,
            goal=run.goal,
            goal_used=run.goal_used,
            goal_most=config.goal_tokens,
            round=run.rounds,
            rounds=config.goal_rounds,
        )
    if run.deep:
        work = replace(work, compactions=run.compactions, max_compactions=config.compactions)
    return work


def _state(run: LongRun, graph: TaskGraph, config: DeepWorkConfig) -> LongWorkState:
    if run.open and run.asks:
        return "asking"
    if run.open:
        return "planning" if run.planning and run.deep else "working"
    if run.halted:
        return "stopped"
    if run.deep and list_tasks(graph) and not list_open(graph):
        return "done"
    if is_spent(run, config):
        return "spent"
    return "blocked" if find_stuck(graph) else "resting"


async def load_long_work(
    store: Store, session: str, config: DeepWorkConfig, known: LongRun | None = None
) -> LongWork | None:
    """The progress of a session, or None when it does not go on by itself. It is read from the
    store, whoever drives the session. Events that `known` has folded are not read again; `known` is
    changed in place."""
    run = known or LongRun(session)
    graph = await _load_graph(store, run)
    return make_long_work(run, graph, config) if graph is not None else None


async def is_continuing(store: Store, run: LongRun, config: DeepWorkConfig, now: float) -> bool:
    """Whether more will happen without a word of a person, except for an answer that it waits
    for."""
    graph = await _load_graph(store, run)
    if graph is None:
        return False
    if run.open:
        return True
    return any(not isinstance(move, StateNote) for move in next_moves(run, graph, config, now))


async def _load_graph(store: Store, run: LongRun) -> TaskGraph | None:
    """The tasks of a session, or None when it does not go on by itself. Folds new events into
    `run`."""
    if not await queries.is_long_work(store, run.session):
        return None
    fold_run(run, await store.events(run.session, run.n))
    return tasks_of(store, run.session) if run.deep or run.goal else None


async def list_long_work(store: Store, config: DeepWorkConfig) -> Sequence[LongWork]:
    """The progress of all sessions that go on by themselves."""
    found = []
    for session in await queries.long_work_sessions(store):
        work = await load_long_work(store, session, config)
        if work is not None:
            found.append(work)
    return found


def render_long_work(work: LongWork) -> list[str]:
    """The progress in lines, the most important first."""
    lines = []
    if work.deep:
        lines += _render_deep_work(work)
    if work.goal:
        lines.append(_render_goal(work))
    return lines


def _render_deep_work(work: LongWork) -> list[str]:
    far = mark_text("no tasks yet")
    if work.tasks:
        far = mark_text("{percent_number} % ({done_number} of {tasks_number} tasks)").format(
            percent_number=work.percent, done_number=work.done, tasks_number=work.tasks
        )
    lines = [
        mark_text("Deep work: {progress_text}; {state_text}.").format(
            progress_text=far, state_text=STATES[work.state]
        )
    ]
    if work.doing:
        lines.append(mark_text("Now: {task}").format(task=work.doing))
    lines.append(
        mark_text("{used_number} of {most_number} tokens are used, {left_number} are left.").format(
            used_number=f"{work.used:,}",
            most_number=f"{work.most:,}",
            left_number=f"{work.tokens_left:,}",
        )
    )
    if work.compactions:
        summarised = mark_text(
            "It was summarised {summaries_number} of {most_number} times; the tokens are counted "
            "from the last summary."
        )
        lines.append(
            summarised.format(summaries_number=work.compactions, most_number=work.max_compactions)
        )
    return lines


def _render_goal(work: LongWork) -> str:
    goal = mark_text("Goal: {goal}").format(goal=work.goal)
    form = mark_text(
        "Worked on again {round_number} of {rounds_number} times, {used_number} of {most_number} "
        "tokens used; {state_text}."
    )
    if work.deep:
        form = mark_text(
            "Worked on again {round_number} of {rounds_number} times, {used_number} of "
            "{most_number} tokens used."
        )
    worked = form.format(
        round_number=work.round,
        rounds_number=work.rounds,
        used_number=f"{work.goal_used:,}",
        most_number=f"{work.goal_most:,}",
        state_text=STATES[work.state],
    )
    return f"{goal}\n{worked}"
