"""The progress of long work as the model sees it, at the end of its newest message. Everything
before that stays the same, so that it can be cached."""

from __future__ import annotations

from collections.abc import Iterator

from ..config.sections import DeepWorkConfig
from ..tools.task_words import SHORT_LIST_LINES, list_tasks, render_progress, render_tasks
from ..types.tasks import TaskGraph
from ..types.turn import SESSION_SUMMARY_PREFIX, TASK_LIST_PREFIX
from .fold import LongRun
from .next_moves import is_running_low

MAX_TITLES = 20
"""The summary names so many of the completed tasks, the newest first."""


def render_context(
    graph: TaskGraph, run: LongRun, config: DeepWorkConfig, *, left_out: bool
) -> str:
    """The completed tasks, the task list, a warning when tokens run low, and a note when earlier
    messages are `left_out`. '' without tasks."""
    if not list_tasks(graph):
        return ""
    return "\n".join(_render_parts(graph, run, config, left_out))


def render_session_summary(graph: TaskGraph) -> str:
    """The titles of completed tasks, the newest first; '' for none."""
    done = [task for task in graph.values() if task.status == "completed"]
    if not done:
        return ""
    newest = sorted(done, key=lambda task: -task.id)[:MAX_TITLES]
    titles = "; ".join(task.title for task in newest)
    before = f"; and {len(done) - len(newest)} before them" if len(done) > len(newest) else ""
    return f"Done so far: {titles}{before}"


def _render_parts(
    graph: TaskGraph, run: LongRun, config: DeepWorkConfig, left_out: bool
) -> Iterator[str]:
    if summary := render_session_summary(graph):
        yield f"{SESSION_SUMMARY_PREFIX}\n{summary}\n</session_summary>"

    yield (
        f"{TASK_LIST_PREFIX}\n{render_tasks(graph, SHORT_LIST_LINES)}\n"
        f"{render_progress(graph)}\n</tasks>"
    )

    if is_running_low(run, config):
        left = max(config.tokens - run.used, 0)
        share = run.used / config.tokens
        warning = (
            f"{share:.0%} of the tokens for this work are used, {left:,} are left: do what "
            "matters most first."
        )
        yield f"<budget_warning>\n{warning}\n</budget_warning>"

    if left_out:
        yield (
            "<archived_context>\nEarlier messages of this conversation are no longer shown. "
            "The tasks say how far it"
            " is; search_past and read_past find the words.\n</archived_context>"
        )
