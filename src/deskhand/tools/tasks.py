"""`manage_tasks`: the task list of a long work, as agent_computer has it. Offered while deep work
is on, and elsewhere once it was loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from ..types.errors import ToolError
from ..types.labels import LOCAL, Label
from ..types.messages import Text
from ..types.tasks import Task, TaskComment, TaskGraph
from . import task_graph as graphs
from .base import Context, Done
from .define import tool
from .label_marks import needs_mark
from .output import make_bounded_result
from .task_graph import ChangedTasks, merge_changes, parse_status, require_task
from .task_nodes import Finding, referenced_ids, resolve_templates, validate_graph
from .task_rows import load_graph, make_undoable_rows
from .task_words import graph_label, list_open, render_progress, render_task_line, render_tasks

ALL_DONE_TEXT = (
    "\nAll tasks are done. Check that the whole request is met; then tell the person what was "
    "done, what came of it and what is left."
)
TaskAction = Literal[
    "create", "list", "get", "update", "complete", "delete", "connect", "disconnect", "validate"
]


@tool(replay="commit")
async def manage_tasks(  # noqa: PLR0913 -- one parameter for each argument
    action: TaskAction,
    context: Context,
    task_id: int = 0,
    title: str = "",
    description: str = "",
    status: str = "",
    parent_id: int | None = None,
    result: str = "",
    depends_on: list[int] | None = None,
    node_type: str = "",
    config: dict[str, Any] | None = None,
    owner: str | None = None,
    comment: str = "",
) -> Done:
    """The task list of a larger work. Break the request into tasks, set one in_progress when you
    begin it, complete it with its result when it is done; subtasks first, then their parent.

    task_id: which task; create gives the new one's
    status: pending, in_progress, completed or blocked (then result says what you need)
    parent_id: the task that this one is a part of
    result: what came of it, in a sentence
    depends_on: tasks that must be completed before it; {{task_3.result}} in a description is their
        result
    node_type: agent (you do it), tool or gather
    owner: who has it; in a team a teammate
    config: of a tool node: {"tool": name, "arguments": {...}}; "output_schema" says what a result
        looks like
    """
    graph = await load_graph(context)
    if action in ("list", "get", "validate"):
        return await _show_tasks(action, graph, task_id, context)
    texts = {"title": title, "description": description, "result": result, "node": node_type}
    given: dict[str, Any] = {name: text for name, text in texts.items() if text}
    others = {"parent": parent_id, "config": config, "owner": owner}
    given |= {name: value for name, value in others.items() if value is not None}
    if comment:
        given["comments"] = add_comment(graph.get(task_id), comment, context)
    if status:
        given["status"] = parse_status(status)
    on = tuple(dict.fromkeys(depends_on or ()))
    label = task_label(context)
    match action:
        case "create":
            fields = {"title": ""} | given
            changed = graphs.create(graph, Task(0, **fields, depends_on=on, label=label))
        case "update":
            if depends_on is not None:
                given["depends_on"] = on
            changed = _update_task(graph, task_id, given, label)
        case "complete":
            changed = graphs.update(graph, task_id, label, **(given | {"status": "completed"}))
        case "delete":
            changed = graphs.delete(graph, task_id)
        case "connect" | "disconnect":
            if not on:
                raise ToolError(f"{action} needs depends_on: which tasks #{task_id} waits for")
            change = graphs.connect if action == "connect" else graphs.disconnect
            changed = change(graph, task_id, on, label)
    return make_task_result(graph, changed, context)


def add_comment(task: Task | None, text: str, context: Context) -> tuple[TaskComment, ...]:
    """The comments of this task with one of whoever makes this call."""
    who = context.membership.name if context.membership is not None else context.agent
    return graphs.with_comment(task, TaskComment(who, text, context.clock.now()))


def task_label(context: Context) -> Label:
    """The label of what a model writes into a task now."""
    return context.label if needs_mark(context.label) else LOCAL


def make_task_result(
    graph: TaskGraph, changed: ChangedTasks, context: Context, *, todos: bool = False
) -> Done:
    """What has changed, how far the whole is (with `todos`: the to-do list alone), and the rows of
    it."""
    after = merge_changes(graph, changed)
    if not changed:
        said = "ok, nothing changed"
    elif len(changed) == 1:
        said = f"ok, {render_task_line(after, changed[0])}"
    else:
        said = f"ok, {len(changed)} tasks changed"
    counted = {task.id: task for task in after.values() if task.todo} if todos else after
    said = "\n".join(filter(None, (said, render_progress(counted))))
    has_completed = any(task.status == "completed" for task in changed)
    is_all_done = has_completed and not list_open(after)
    said += ALL_DONE_TEXT if is_all_done else _render_freed(after, changed)
    words = Text(said, graph_label(after))
    return Done((words,), changes=make_undoable_rows(graph, changed, context))


def _render_freed(graph: TaskGraph, changed: ChangedTasks) -> str:
    """After something was completed, what it has freed, with the results that it may use."""
    done = {task.id for task in changed if task.status == "completed"}
    waiting = [task for task in list_open(graph) if not done.isdisjoint(task.depends_on)]
    freed = [task for task in waiting if not graphs.list_blockers(graph, task)]
    said = ""
    for task in freed[:5]:
        said += f"\nnow free: {render_task_line(graph, task)}{_render_resolved(graph, task)}"
    return said


def _render_resolved(graph: TaskGraph, task: Task) -> str:
    text = resolve_templates(task.description, graph)
    return f": {text[:2000]}" if text != task.description else ""


def _update_task(graph: TaskGraph, id_: int, given: dict[str, Any], label: Label) -> ChangedTasks:
    if given.get("status") == "deleted":
        return graphs.delete(graph, id_)
    if not given:
        raise ToolError(
            f"name a change to #{id_}: status, title, description, result, parent_id, depends_on"
        )
    return graphs.update(graph, id_, label, **given)


async def _show_tasks(action: TaskAction, graph: TaskGraph, id_: int, context: Context) -> Done:
    if action == "validate":
        text = _render_findings(validate_graph(graph))
        return await make_bounded_result(text, context, graph_label(graph))

    if action == "list" and not id_:
        text = "\n".join(filter(None, (render_tasks(graph), render_progress(graph))))
        text = text or "no tasks yet: create the first one"
        return await make_bounded_result(text, context, graph_label(graph))

    task = require_task(graph, id_)
    fields = msgspec.to_builtins(task)
    fields["description"] = resolve_templates(task.description, graph)
    fields.pop("label", None)
    ids = (id_, *referenced_ids(task.description))
    told = {each: graph[each] for each in ids if each in graph}
    return await make_bounded_result(
        msgspec.json.encode(fields).decode(), context, graph_label(told)
    )


def _render_findings(findings: Sequence[Finding]) -> str:
    lines = list[str]()
    if all(finding.warning for finding in findings):
        lines.append("valid: nothing is wrong")
    for finding in findings:
        where = f" in #{finding.task}" if finding.task else ""
        lines.append(f"{finding.kind}{where}: {finding.words}")
    return "\n".join(lines)


TOOLS = (manage_tasks.with_mode("deep_work"),)
