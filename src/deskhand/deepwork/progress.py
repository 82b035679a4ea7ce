"""How far long work is, for people: in a conversation, on the page and in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ..config.sections import DeepWorkConfig
from ..store.base import Store
from ..tools.task_graph import stuck
from ..tools.task_rows import read
from ..tools.task_words import left, percent, there
from ..types.goals import LongWork, LongWorkState
from ..types.tasks import TaskGraph
from .state import LongRun, StateNote, fold_run, is_spent, next_moves

STATES: dict[LongWorkState, str] = {
    "planning": "it makes a plan, and changes nothing before your yes",
    "working": "it is at work",
    "asking": "it waits for your answer",
    "blocked": "it waits for you, since tasks are blocked",
    "stopped": "it was stopped; write, and it goes on",
    "resting": "it rests",
    "spent": "its tokens are used up; /deep on gives as many again",
    "done": "all tasks are done",
}


def make_long_work(run: LongRun, graph: TaskGraph, config: DeepWorkConfig) -> LongWork:
    """How it stands now."""
    tasks = there(graph)
    open_ = left(graph)
    doing = next(
        (
            f"#{task.id} {task.active or task.title}"
            for task in open_
            if task.status == "in_progress"
        ),
        "",
    )
    deep = (len(tasks) - len(open_), len(tasks), percent(graph), doing, run.used, config.tokens)
    goal = (
        (run.goal, run.goal_used, config.goal_tokens, run.rounds, config.goal_rounds)
        if run.goal
        else ()
    )
    work = LongWork(run.session, _state(run, graph, config), run.deep, *deep, *goal)
    return (
        replace(work, compactions=run.compactions, max_compactions=config.compactions)
        if run.deep
        else work
    )


def _state(run: LongRun, graph: TaskGraph, config: DeepWorkConfig) -> LongWorkState:
    if run.open:
        return "asking" if run.asks else "planning" if run.planning and run.deep else "working"
    if run.halted:
        return "stopped"
    if run.deep and there(graph) and not left(graph):
        return "done"
    if is_spent(run, config):
        return "spent"
    return "blocked" if stuck(graph) else "resting"


async def load_long_work(
    store: Store, session: str, config: DeepWorkConfig, known: LongRun | None = None
) -> LongWork | None:
    """As the log and the rows say it, whoever drives; None for a conversation that does not go on
    by itself. What is `known` of it is taken further, and not read again."""
    run = known or LongRun(session)
    graph = await _load_graph(store, run)
    return make_long_work(run, graph, config) if graph is not None else None


async def is_continuing(store: Store, run: LongRun, config: DeepWorkConfig, now: float) -> bool:
    """Whether more will come of it without a word of a person, but for an answer that it waits
    for."""
    graph = await _load_graph(store, run)
    if graph is None:
        return False
    return run.open or any(
        not isinstance(move, StateNote) for move in next_moves(run, graph, config, now)
    )


async def _load_graph(store: Store, run: LongRun) -> TaskGraph | None:
    """Its tasks, with the run taken further; None where it does not go on by itself."""
    rows = await store.query("long_work_of", (run.session,))
    if not rows or not any(rows[0]):
        return None
    fold_run(run, await store.events(run.session, run.n))
    return read(await store.query("task_of", (run.session,))) if run.deep or run.goal else None


async def list_long_work(store: Store, config: DeepWorkConfig) -> Sequence[LongWork]:
    """All that go on by themselves."""
    found = [
        await load_long_work(store, session, config)
        for (session,) in await store.query("long_work_all", ())
    ]
    return [each for each in found if each is not None]


def render_long_work(work: LongWork) -> list[str]:
    """In sentences, the most important first."""
    said = []
    if work.deep:
        far = (
            f"{work.percent} % ({work.done} of {work.tasks} tasks)"
            if work.tasks
            else "no tasks yet"
        )
        said.append(f"Deep work: {far}; {STATES[work.state]}.")
        said += [f"Now: {work.doing}"] if work.doing else []
        said.append(
            f"{work.used:,} of {work.most:,} tokens are used, {work.tokens_left:,} are left."
        )
        if work.compactions:
            said.append(
                f"It was summed up {work.compactions} of {work.max_compactions} times; the "
                "tokens count anew."
            )
    if work.goal:
        used = f"{work.goal_used:,} of {work.goal_most:,} tokens used"
        state = "" if work.deep else f"; {STATES[work.state]}"
        said.append(
            f"Goal: {work.goal}\nWorked on again {work.round} of {work.rounds} times, "
            f"{used}{state}."
        )
    return said
