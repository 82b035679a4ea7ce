"""What is said of sub-agents: to them, of what they do, and of what came of it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ..types.labels import LOCAL
from ..types.messages import Text
from ..types.subagents import SubagentTask
from .kinds import STAND_INS, kind_of

_SUBAGENT = (
    "You are a sub-agent. Nobody reads along: your last message is handed back to whoever gave you "
    "this task, so it must say all that they need. If something is missing, say what, and end."
)


def render_task(
    task: SubagentTask, needed: Sequence[SubagentTask], *, heading: bool
) -> tuple[Text, ...]:
    """What the sub-agent is told: how it works (the `heading`), its task, and what came of those
    before it."""
    if not heading or task.request.kind in STAND_INS:
        return (Text(task.request.task, task.request.label),)
    how = kind_of(task.request.kind).task
    first = "[" if task.request.teammate else f"[{_SUBAGENT}"
    parts = [
        Text(f"{first}{' ' * (len(first) > 1 and bool(how))}{how}]\n\n", LOCAL),
        Text(task.request.task, task.request.label),
    ]
    for each in needed:
        parts.append(Text(f"\n\n[What came of “{each.title}”]\n", LOCAL))
        parts.append(Text(each.said, each.label))
    return tuple(parts)


def render_result(task: SubagentTask, *, heading: bool = True) -> str:
    """What is handed back to whoever gave the task; the `heading` says whose it is."""
    said = task.said.strip() or "[no answer]"
    if task.state == "done" and not heading:
        return said
    who = f"teammate {task.request.teammate}" if task.request.teammate else f"sub-agent {task.id}"
    return f"[{who} “{task.title}” {_STATE_WORDS[task.state]}]\n{said}"


_STATE_WORDS = {
    "wanted": "is about to begin",
    "running": "works",
    "done": "is done",
    "error": "failed",
    "stopped": "was stopped",
}


def render_task_line(task: SubagentTask) -> str:
    """A task in a list, as the model reads it."""
    return f"{task.id} {_STATE_WORDS[task.state]}: {task.title}"
