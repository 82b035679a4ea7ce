"""Tasks of agent_computer and openagent-core, as their files hold them. Pure.

What is broken in them is mended and told, never an error: what waits for itself waits no more, what
depends on nothing that is there does not, and what was called done before what it needs is to be
done again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from ..types.errors import ToolError
from ..types.labels import LOCAL, Label
from ..types.messages import clean_text
from ..types.tasks import Task
from .task_graph import (
    MAX_METADATA_BYTES,
    MAX_TEXT_CHARS,
    MAX_TITLE_CHARS,
    parse_status,
    to_one_line,
)

MAX_TASKS = 10_000
"""So many tasks of one conversation are taken over."""


class ImportedTasks(msgspec.Struct, frozen=True):
    """The tasks, and in sentences what was not taken as it was."""

    tasks: tuple[Task, ...]
    notes: tuple[str, ...] = ()


def parse_computer_tasks(data: bytes, label: Label = LOCAL) -> ImportedTasks:
    """The tasks of a `sessions/NAME.tasks.json`."""
    found = _decode_json(data)
    rows = found.get("tasks") if isinstance(found, Mapping) else found
    if not isinstance(rows, list):
        return ImportedTasks((), ("it contains no list of tasks",))
    return _make_tasks(
        [_rename_fields(row, _COMPUTER_FIELDS) for row in rows if isinstance(row, Mapping)], label
    )


def parse_openagent_tasks(files: Iterable[bytes], label: Label = LOCAL) -> ImportedTasks:
    """The tasks of the files `.tasks/task_*.json`. Who is blocked may stand in either of two of
    them."""
    rows = []
    broken = 0
    for data in files:
        found = _decode_json(data)
        if isinstance(found, Mapping):
            rows.append(_rename_fields(found, _OPENAGENT_FIELDS))
        else:
            broken += 1
    by_id = {str(row.get("id")): row for row in rows}
    for row in rows:
        for blocked in _task_names(row.get("blocks")):
            if blocked in by_id:
                by_id[blocked]["depends_on"] = [
                    *_task_names(by_id[blocked].get("depends_on")),
                    str(row.get("id")),
                ]
    made = _make_tasks(rows, label)
    return replace(
        made, notes=(*made.notes, *([f"{broken} files could not be read"] if broken else []))
    )


_COMPUTER_FIELDS = {"parent_id": "parent", "node_type": "node"}
_OPENAGENT_FIELDS = {
    "subject": "title",
    "blockedBy": "depends_on",
    "blocked_by": "depends_on",
    "activeForm": "active",
}


def _rename_fields(row: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(str(name), str(name)): value for name, value in row.items()}


def _decode_json(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _make_tasks(rows: list[dict[str, Any]], label: Label) -> ImportedTasks:
    notes = list[str]()
    if len(rows) > MAX_TASKS:
        notes.append(f"{len(rows) - MAX_TASKS:,} of {len(rows):,} tasks were left out")
        rows = rows[:MAX_TASKS]

    ids = _assign_ids(rows)
    tasks = dict[int, Task]()
    lost = 0
    for id_, row in zip(ids.values(), rows, strict=True):
        tasks[id_] = _make_task(id_, row, ids, label)
        lost += len(set(_task_names(row.get("depends_on"))) - ids.keys())
    if lost:
        notes.append(f"{lost} dependencies on missing tasks were removed")

    cut = _break_cycles(tasks)
    if cut:
        notes.append(f"{cut} tasks depended on themselves; these dependencies were removed")
    again = _reopen_tasks(tasks)
    if again:
        notes.append(
            f"{again} tasks were marked as done before the tasks that they depend on, and "
            "are open again"
        )
    return ImportedTasks(tuple(tasks.values()), tuple(notes))


def _assign_ids(rows: list[dict[str, Any]]) -> dict[str, int]:
    """Their names of tasks -> our ids: the same number where it is one, and nobody else has it."""
    found: dict[str, int] = {}
    taken: set[int] = set()
    later: list[str] = []
    for place, row in enumerate(rows):
        name = _task_name(row.get("id"))
        if not name or name in found or name in later:
            name = f"\0{place}"  # nobody can depend on it
        number = int(name) if name.isascii() and name.isdigit() and len(name) < 10 else 0
        if number > 0 and number not in taken:
            found[name] = number
            taken.add(number)
        else:
            found[name] = 0
            later.append(name)
    following = max(taken, default=0) + 1
    for name in later:
        found[name] = following
        following = following + 1
    return found


def _make_task(id_: int, row: dict[str, Any], ids: Mapping[str, int], label: Label) -> Task:
    said = to_one_line(_to_text(row.get("title")))
    text = clean_text(_to_text(row.get("description")))
    if len(said) > MAX_TITLE_CHARS:
        text = f"{said}\n{text}"
        said = said[: MAX_TITLE_CHARS - 1] + "…"
    try:
        status = parse_status(_to_text(row.get("status")) or "pending")
    except ToolError:
        status = "pending"
    needed = [ids[name] for name in _task_names(row.get("depends_on")) if name in ids]
    on = tuple(dict.fromkeys(each for each in needed if each != id_))
    parent = ids.get(_task_name(row.get("parent")), 0)
    return Task(
        id_,
        said or "(no title)",
        text[:MAX_TEXT_CHARS],
        status,
        parent if parent != id_ else 0,
        on,
        clean_text(_to_text(row.get("result")))[:MAX_TEXT_CHARS],
        to_one_line(_to_text(row.get("node")))[:MAX_TITLE_CHARS] or "agent",
        _small_dict(row.get("config")),
        owner=to_one_line(_to_text(row.get("owner")))[:MAX_TITLE_CHARS],
        active=to_one_line(_to_text(row.get("active")))[:MAX_TITLE_CHARS],
        metadata=_small_dict(row.get("metadata")),
        label=label,
    )


def _to_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _task_name(value: Any) -> str:
    return _to_text(value).strip().removeprefix("#").removeprefix("task_")


def _task_names(value: Any) -> list[str]:
    return [_task_name(each) for each in value] if isinstance(value, list) else []


def _small_dict(value: Any) -> dict[str, Any]:
    good = isinstance(value, dict) and len(msgspec.json.encode(value)) <= MAX_METADATA_BYTES
    return value if good and isinstance(value, dict) else {}


def _list_prerequisites(task: Task, children: Mapping[int, list[int]]) -> list[int]:
    return [*task.depends_on, *children.get(task.id, ())]


def _map_children(tasks: Mapping[int, Task]) -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for task in tasks.values():
        if task.parent:
            children.setdefault(task.parent, []).append(task.id)
    return children


def _break_cycles(tasks: dict[int, Task]) -> int:
    """Take out what leads back to where one came from. Returns how many tasks changed."""
    children = _map_children(tasks)
    done = set[int]()
    changed = set[int]()
    for begin in tasks:
        path: list[tuple[int, list[int]]] = (
            [] if begin in done else [(begin, _list_prerequisites(tasks[begin], children))]
        )
        on_path = {begin} if path else set()
        while path:
            id_, left = path[-1]
            if not left:
                done.add(id_)
                on_path.discard(id_)
                path.pop()
                continue
            following = left.pop()
            if following in on_path:
                changed.add(_cut_dependency(tasks, children, id_, following))
            elif following not in done:
                on_path.add(following)
                path.append((following, _list_prerequisites(tasks[following], children)))
    return len(changed)


def _cut_dependency(
    tasks: dict[int, Task], children: dict[int, list[int]], id_: int, before: int
) -> int:
    """`id_` waits for `before` no more. Returns which task changed."""
    if before in tasks[id_].depends_on:
        tasks[id_] = replace(
            tasks[id_], depends_on=tuple(n for n in tasks[id_].depends_on if n != before)
        )
        return id_
    tasks[before] = replace(tasks[before], parent=0)
    children[id_] = [n for n in children.get(id_, ()) if n != before]
    return before


def _reopen_tasks(tasks: dict[int, Task]) -> int:
    """Open again what is completed before what it needs, and what needs that in turn."""
    children = _map_children(tasks)
    needed_by = dict[int, list[int]]()
    for task in tasks.values():
        for before in _list_prerequisites(task, children):
            needed_by.setdefault(before, []).append(task.id)
    left = [task.id for task in tasks.values() if not task.is_closed]
    again = 0
    while left:
        for id_ in needed_by.get(left.pop(), ()):
            if tasks[id_].status == "completed":
                tasks[id_] = replace(tasks[id_], status="pending")
                again += 1
                left.append(id_)
    return again
