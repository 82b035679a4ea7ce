"""What long work does next: go on, summarise, tell the person, rest, or stop. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import msgspec

from ..config.sections import DeepWorkConfig
from ..tools.task_graph import find_stuck
from ..tools.task_words import list_open, list_tasks, render_progress, render_tasks
from ..types.goals import DEEP_WORK_SPENT, GOAL_ENDED
from ..types.tasks import Task, TaskGraph
from .fold import DEEP, LongRun

MAX_SHOWN_TASKS = 12
RETRY_S = (60.0, 600.0, 3600.0)
"""How long to wait after a failed turn before the next try: the model may be back then."""


class Nudge(msgspec.Struct, frozen=True):
    """Tell the agent to go on."""

    key: str
    by: str
    text: str


class StateNote(msgspec.Struct, frozen=True):
    """Tell the person something. The model does not see it."""

    key: str
    name: str
    text: str


class CompactContext(msgspec.Struct, frozen=True):
    """Summarise the conversation and count the tokens from there. The person is told `text`."""

    key: str
    text: str


class JudgeGoal(msgspec.Struct, frozen=True):
    """Ask the judge whether the goal is reached."""

    key: str


class Later(msgspec.Struct, frozen=True):
    """Look again at this time (seconds since the epoch)."""

    at: float


class Halt(msgspec.Struct, frozen=True):
    """Stop the running turn: its tokens are used up."""

    key: str


Move = Nudge | StateNote | CompactContext | JudgeGoal | Later | Halt


def fingerprint_graph(graph: TaskGraph) -> str:
    """A short text that differs whenever the progress of the tasks differs."""
    told = [(task.id, task.status, task.title, task.result) for task in graph.values()]
    return blake2b(msgspec.json.encode(told), digest_size=6).hexdigest()


def next_moves(
    run: LongRun, graph: TaskGraph, config: DeepWorkConfig, now: float
) -> tuple[Move, ...]:
    """What to do now, in this order. Doing a move twice does no harm: it has the same key again."""
    if run.halted:
        return ()
    if run.open and is_due_for_compaction(run, config):
        return (_make_compaction(run, config),)
    if run.open:
        return _halt_moves(run, config)
    if not run.end_n:
        return ()
    if not (run.deep and run.touched and list_tasks(graph)):
        return _goal_moves(run, config, now)

    moves = _deep_moves(run, graph, config, now)
    if list_open(graph) or run.planning or any(isinstance(move, Nudge) for move in moves):
        return moves
    return (*moves, *_goal_moves(run, config, now))


def is_due_for_compaction(run: LongRun, config: DeepWorkConfig) -> bool:
    """Whether deep work has used enough tokens to be summarised, and may be once more."""
    return (
        run.deep
        and run.compactions < config.compactions
        and run.used >= config.compact_at * config.tokens
    )


def is_spent(run: LongRun, config: DeepWorkConfig) -> bool:
    """Whether deep work has no tokens left."""
    return run.deep and run.compactions >= config.compactions and run.used >= config.tokens


def is_running_low(run: LongRun, config: DeepWorkConfig) -> bool:
    """Whether deep work is using its last tokens."""
    return (
        run.deep
        and run.compactions >= config.compactions
        and run.used >= config.warn_at * config.tokens
    )


def _make_compaction(run: LongRun, config: DeepWorkConfig) -> CompactContext:
    number = run.compactions + 1
    words = (
        f"{run.used / config.tokens:.0%} of the tokens for this work are used. I summarise what "
        f"was said before and count them from there (time {number} of {config.compactions})."
    )
    return CompactContext(f"deep:{run.session}:compact:{run.deep_n}:{number}", words)


def _halt_moves(run: LongRun, config: DeepWorkConfig) -> tuple[Move, ...]:
    """Stop the running turn when it has just used up the tokens. A turn that a person began is not
    stopped for a goal, and deep work is not stopped for the tokens of a goal."""
    if is_spent(run, config) and run.used_before < config.tokens:
        return (Halt(f"deep:{run.session}:halt:{run.deep_n}"),)
    if not run.goal or run.deep or run.spoke:
        return ()
    if run.goal_used >= config.goal_tokens > run.goal_before:
        return (Halt(f"goal:{run.session}:halt:{run.goal_n}"),)
    return ()


def _deep_moves(
    run: LongRun, graph: TaskGraph, config: DeepWorkConfig, now: float
) -> tuple[Move, ...]:
    if is_spent(run, config):
        return (_make_spent_note(run, graph, config),)
    state = fingerprint_graph(graph)
    pushed = run.pushes.count(state) >= config.nudges
    if not list_open(graph):
        if not run.said.strip() and not pushed and not run.failures:
            return (_make_nudge(run, state, REPORT),)
        words = f"{render_progress(graph)}; {run.used:,} tokens used."
        return (_make_note(run, f"done:{run.deep_n}:{state}", words),)
    if rest := _rest_moves(run, now, _render_progress(graph)):
        return rest
    if blocked := find_stuck(graph):
        return (_make_blocked_note(run, blocked),)
    if pushed or len(run.pushes) >= config.rounds:
        why = f"I went on {len(run.pushes)} times by myself, and stop to ask"
        if pushed:
            why = "I got no further by myself"
        words = f"{why}. {_render_progress(graph)}\nTell me how to go on, or write /deep off."
        return (_make_note(run, f"stuck:{run.end_n}", words),)
    return _go_on_moves(run, graph, config, state)


def _go_on_moves(
    run: LongRun, graph: TaskGraph, config: DeepWorkConfig, state: str
) -> tuple[Move, ...]:
    """Tell the agent to go on, after a summary when one is due, with a warning when tokens run
    low."""
    told = PLAN if run.planning else GO_ON.format(len(list_open(graph)))
    if is_due_for_compaction(run, config):
        return (_make_compaction(run, config), _make_nudge(run, state, told))
    if not is_running_low(run, config):
        return (_make_nudge(run, state, told),)
    share = run.used / config.tokens
    warning = f"{share:.0%} of the tokens for this work are used"
    return (
        _make_note(run, f"warned:{run.deep_n}", f"{warning}. {render_progress(graph)}."),
        _make_nudge(run, state, f"{told} {warning}: do what matters most first."),
    )


def _make_spent_note(run: LongRun, graph: TaskGraph, config: DeepWorkConfig) -> StateNote:
    words = f"The {config.tokens:,} tokens of this deep work are used up. {_render_progress(graph)}"
    if list_open(graph):
        words += "\nWrite /deep on for as many again, or /deep off."
    return StateNote(f"deep:{run.session}:spent:{run.deep_n}", DEEP_WORK_SPENT, words)


def _make_blocked_note(run: LongRun, blocked: Sequence[Task]) -> StateNote:
    tasks = [
        f"#{task.id} {task.title}: {task.result or 'it is blocked'}"
        for task in blocked[:MAX_SHOWN_TASKS]
    ]
    asked = "\n".join(["I cannot go on without you:", *tasks])
    return _make_note(run, f"ask:{run.end_n}", asked)


GO_ON = (
    "Go on: {} tasks are open. Take the next one, do it, and complete it with its result. "
    "Where you need the person,"
    " set the task blocked and write into its result what you need."
)
PLAN = (
    "The plan is not approved yet: show it with exit_plan_mode, or ask with ask_user what you "
    "must know first."
)
REPORT = "All tasks are done. Tell the person what was done, what came of it and what is left."


def _rest_moves(run: LongRun, now: float, left_: str) -> tuple[Move, ...]:
    """After a turn that did not end well: go on later, or when somebody writes. () after any other
    turn."""
    if run.reason not in ("failed", "dead", "loop", "stopped"):
        return ()
    if 0 < run.failures <= len(RETRY_S):
        again = run.end_at + RETRY_S[run.failures - 1]
        if not run.end_at <= now < again:  # a clock that was set back delays nothing
            return ()
        if run.failures > 1:
            return (Later(again),)
        words = (
            "That turn failed. I try again in a minute, and twice more after that, with longer "
            "pauses. Write /stop to end that."
        )
        return (_make_note(run, f"again:{run.end_n}", words), Later(again))
    words = f"I rest here, since that turn did not end well. {left_}\nWrite to me, and I go on."
    return (_make_note(run, f"rest:{run.end_n}", words),)


def _goal_moves(run: LongRun, config: DeepWorkConfig, now: float) -> tuple[Move, ...]:
    if not run.goal:
        return ()
    spent = run.goal_used >= config.goal_tokens
    if spent or run.rounds >= config.goal_rounds:
        what = f"{config.goal_tokens:,} tokens" if spent else f"{config.goal_rounds} rounds"
        words = (
            f"I end the goal here, not reached: its {what} are used up. /goal TEXT sets it again."
        )
        return (StateNote(f"goal:{run.session}:ended:{run.goal_n}", GOAL_ENDED, words),)
    if rest := _rest_moves(run, now, "The goal stays."):
        return rest
    if run.spoke and run.end_at <= now < (quiet := run.end_at + config.quiet_s):
        return (Later(quiet),)
    return (JudgeGoal(f"goal:{run.session}:{run.end_n}"),)


def _make_nudge(run: LongRun, state: str, text: str) -> Nudge:
    return Nudge(f"deep:{run.session}:{run.end_n}:{state}", DEEP, text)


def _make_note(run: LongRun, key: str, text: str) -> StateNote:
    return StateNote(f"deep:{run.session}:{key}", DEEP, text)


def _render_progress(graph: TaskGraph) -> str:
    """The progress in words, with the tasks that are left."""
    open_ = {task.id: task for task in list_open(graph)}
    if not open_:
        return f"{render_progress(graph)}."
    return f"{render_progress(graph)}. Left:\n{render_tasks(open_, MAX_SHOWN_TASKS)}"
