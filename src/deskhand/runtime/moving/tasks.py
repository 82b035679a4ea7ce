"""Tasks of other systems as ours: each list becomes the graph of a conversation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from ...tools.task_graph import METADATA_BYTES, TEXT_CHARS, TITLE_CHARS, cycle, one_line
from ...types.labels import Label
from ...types.messages import clean
from ...types.tasks import Status, Task
from .found import Tasks

MOST = 5_000
_STATUS: dict[str, Status] = {name: name for name in ("pending", "in_progress", "completed", "blocked")}
_NODES = ("agent", "tool", "gather")


def tasks_of(found: Tasks, source: str) -> tuple[Task, ...]:
    """The tasks of one list. What is no task is left out; what would wait for itself waits for nothing."""
    read = _of_computer if found.form == "agent_computer" else _of_openagent
    graph: dict[int, Task] = {}
    for task in read(found.raw[:MOST]):
        if task.id > 0 and task.title and task.id not in graph:
            graph[task.id] = replace(task, label=Label("tool_local", source=source))
    kept = {id_: _rooted(task, graph) for id_, task in graph.items()}
    while circle := cycle(kept):
        kept |= {id_: replace(kept[id_], depends_on=(), parent=0) for id_ in circle}
    return tuple(kept.values())


def _of_computer(raw: Sequence[Mapping[str, Any]]) -> Iterator[Task]:
    for each in raw:
        given = each.get("config")
        config: dict[str, Any] = given if isinstance(given, dict) else {}
        called = "tool_name" in config
        call = {"tool": config["tool_name"], "arguments": config.get("tool_args") or {}} if called else {}
        rest = {key: value for key, value in config.items() if key not in ("tool_name", "tool_args")}
        schema = {"output_schema": each["output_schema"]} if each.get("output_schema") else {}
        more = {key: each[key] for key in ("inputs", "output") if isinstance(each.get(key), dict) and each[key]}
        node = str(each.get("node_type") or "agent")
        yield Task(
            _id(each.get("id")),
            _line(each.get("title")),
            _text(each.get("description")),
            _STATUS.get(str(each.get("status")), "pending"),
            _id(each.get("parent_id")),
            _ids(each.get("depends_on")),
            _text(each.get("result")),
            node if node in _NODES else "agent",
            _small(call | rest | schema),
            metadata=_small(more),
        )


def _of_openagent(raw: Sequence[Mapping[str, Any]]) -> Iterator[Task]:
    for each in raw:
        yield Task(
            _id(each.get("id")),
            _line(each.get("subject")),
            _text(each.get("description")),
            _STATUS.get(str(each.get("status")), "pending"),
            depends_on=_ids(each.get("blockedBy")),
            active=_line(each.get("activeForm")),
            owner=_line(each.get("owner")),
            metadata=_small(each.get("metadata")),
        )


def _rooted(task: Task, graph: Mapping[int, Task]) -> Task:
    """The task with those alone that are there."""
    parent = task.parent if task.parent in graph and task.parent != task.id else 0
    return replace(task, parent=parent, depends_on=tuple(n for n in task.depends_on if n in graph and n != task.id))


def _id(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1_000_000 else 0


def _ids(value: Any) -> tuple[int, ...]:
    return tuple(dict.fromkeys(filter(None, map(_id, value)))) if isinstance(value, list) else ()


def _line(value: Any) -> str:
    return one_line(value)[:TITLE_CHARS] if isinstance(value, str) else ""


def _text(value: Any) -> str:
    return clean(value)[:TEXT_CHARS] if isinstance(value, str) else ""


def _small(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        return {}
    try:
        fits = len(msgspec.json.encode(value)) <= METADATA_BYTES
    except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError, TypeError):
        fits = False
    return value if fits else {}
