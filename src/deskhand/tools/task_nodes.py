"""Tasks that make use of each other's results: templates, and what is wrong in a graph of them.
Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ..types.tasks import Task, TaskGraph
from .task_graph import find_cycle
from .task_words import list_tasks

NODE_TYPES = ("agent", "tool", "gather")
TEMPLATE = re.compile(r"\{\{\s*task_(\d{1,9})\.(result|output(?:\.\w+)+)\s*\}\}")
_TEMPLATE_LIKE = re.compile(r"\{\{.*?(?:\}\}|$)", re.DOTALL)
_JSON_TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
MAX_RESULT_CHARS = 4_000
"""So much of a result stands where a template was."""


class Finding(msgspec.Struct, frozen=True):
    """Something about a graph. `kind` is one of agent_computer's names for it."""

    kind: str
    task: int
    words: str
    warning: bool = False


def validate_graph(graph: TaskGraph) -> tuple[Finding, ...]:
    """What is wrong, the errors first."""
    tasks = list_tasks(graph)
    found = list[Finding]()
    for task in tasks:
        found += _validate_task(graph, task)
    circle = find_cycle(graph)
    if circle:
        told = " -> ".join(f"#{id_}" for id_ in circle)
        found.append(Finding("cycle", circle[0], f"these depend on each other: {told}"))
    parts = _count_components(tasks)
    if parts > 1 and any(task.depends_on for task in tasks):
        told = f"the tasks form {parts} groups that are not connected"
        found.append(Finding("disconnected_components", 0, told, warning=True))
    return tuple(sorted(found, key=lambda finding: finding.warning))


def _validate_task(graph: TaskGraph, task: Task) -> Iterator[Finding]:
    for id_ in task.depends_on:
        if id_ not in graph or graph[id_].status == "deleted":
            yield Finding(
                "missing_dependency", task.id, f"it depends on #{id_}, which does not exist"
            )
    if task.node not in NODE_TYPES:
        known = ", ".join(NODE_TYPES)
        yield Finding(
            "unknown_node_type",
            task.id,
            f"{task.node!r} is not a kind of node; choose one of: {known}",
        )
    name = task.config.get("tool")
    if task.node == "tool":
        if not isinstance(name, str) or not name:
            yield Finding(
                "missing_config", task.id, "a tool node names its tool: config {tool, arguments}"
            )
        elif "{{" in name:
            yield Finding(
                "templated_tool_name",
                task.id,
                f"the name of the tool must not be a template: {name!r}",
            )
    if task.node == "gather" and not task.depends_on:
        yield Finding(
            "missing_config", task.id, "a gather node depends on the tasks whose results it gathers"
        )
    schema = task.config.get("output_schema")
    if schema is not None and not _is_schema(schema):
        yield Finding("invalid_output_schema", task.id, "output_schema is not a JSON schema")
    yield from _validate_templates(graph, task)


def _validate_templates(graph: TaskGraph, task: Task) -> Iterator[Finding]:
    before = _find_dependencies(graph, task)
    for text in _iter_texts(task):
        for piece in _TEMPLATE_LIKE.findall(text):
            match = TEMPLATE.fullmatch(piece)
            if match is None:
                kind = "malformed_template"
                told = f"{piece[:80]!r}: write {{{{task_3.result}}}} or task_3.output.name"
                yield Finding(kind, task.id, told)
                continue
            id_ = int(match[1])
            if id_ not in before:
                told = f"{piece} names a task that it does not depend on"
                yield Finding("unresolvable_template", task.id, told)
            elif match[2] != "result" and not _may_output(graph[id_], match[2].split(".")[1]):
                told = f"{piece}: the output_schema of #{id_} has no {match[2].split('.')[1]!r}"
                yield Finding("unresolvable_template", task.id, told)


def referenced_ids(text: str) -> tuple[int, ...]:
    """The tasks whose results stand where templates are."""
    return tuple(int(match[1]) for match in TEMPLATE.finditer(text))


def resolve_templates(text: str, graph: TaskGraph) -> str:
    """The text with results in the place of templates, as far as there are any."""

    def substitute(match: re.Match[str]) -> str:
        task = graph.get(int(match[1]))
        if task is None or task.status != "completed":
            return match[0]
        if match[2] == "result":
            return task.result[:MAX_RESULT_CHARS]
        try:
            value = msgspec.json.decode(task.result)
            for name in match[2].split(".")[1:]:
                value = value[int(name)] if isinstance(value, list) else value[name]
        except (msgspec.DecodeError, KeyError, IndexError, TypeError, ValueError, RecursionError):
            return match[0]
        return (value if isinstance(value, str) else msgspec.json.encode(value).decode())[
            :MAX_RESULT_CHARS
        ]

    return TEMPLATE.sub(substitute, text)


def _iter_texts(task: Task) -> Iterator[str]:
    yield from (task.title, task.description)
    waiting: list[Any] = [task.config.get("arguments")]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


def _find_dependencies(graph: TaskGraph, task: Task) -> set[int]:
    """All that it depends on, through others too, and its subtasks."""
    children = {each.id for each in graph.values() if each.parent == task.id}
    found = set[int]()
    left = [*task.depends_on, *children]
    while left:
        id_ = left.pop()
        if id_ not in found and id_ in graph and graph[id_].status != "deleted":
            found.add(id_)
            left += graph[id_].depends_on
    return found


def _is_schema(schema: object) -> bool:
    if not isinstance(schema, Mapping):
        return False
    fields = schema.get("properties", {})
    if not isinstance(fields, Mapping):
        return False
    if not all(isinstance(each, Mapping | bool) for each in fields.values()):
        return False

    kind = schema.get("type")
    if kind is None:
        return True
    kinds = kind if isinstance(kind, list) else [kind]
    return all(each in _JSON_TYPES for each in kinds)


def _may_output(task: Task, name: str) -> bool:
    """Whether its output may have this field; without a schema it may have any."""
    schema = task.config.get("output_schema")
    fields = schema.get("properties") if isinstance(schema, Mapping) else None
    return not isinstance(fields, Mapping) or name in fields


def _count_components(tasks: list[Task]) -> int:
    """Into how many parts they fall that neither parents nor dependencies connect."""
    beside: dict[int, set[int]] = {task.id: set() for task in tasks}
    for task in tasks:
        for other in (task.parent, *task.depends_on):
            if other in beside:
                beside[task.id].add(other)
                beside[other].add(task.id)
    seen = set[int]()
    parts = 0
    for id_ in beside:
        if id_ in seen:
            continue
        parts += 1
        left = [id_]
        seen.add(id_)
        while left:
            fresh = beside[left.pop()] - seen
            seen |= fresh
            left += fresh
    return parts
