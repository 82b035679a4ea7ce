"""Tasks of other systems come over whole, and what is broken in them is mended and told."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from deskhand.tools import task_graph as graphs
from deskhand.tools.task_import import ImportedTasks, parse_computer_tasks, parse_openagent_tasks
from deskhand.tools.task_words import render_tasks
from deskhand.types.tasks import Task

from ..examples import examples


def computer(*rows: Any) -> ImportedTasks:
    return parse_computer_tasks(json.dumps({"next_id": 9, "tasks": rows}).encode())


def openagent(*rows: Any) -> ImportedTasks:
    return parse_openagent_tasks(json.dumps(row).encode() for row in rows)


def holds(tasks: tuple[Task, ...]) -> None:
    graph = {task.id: task for task in tasks}
    assert len(graph) == len(tasks) and not graphs.find_cycle(graph)
    assert all(
        not graphs.list_prerequisites(graph, task) for task in tasks if task.status == "completed"
    )
    assert all(n in graph for task in tasks for n in task.depends_on)
    assert all(
        graphs.to_one_line(task.title) == task.title and 0 < len(task.title) <= 200
        for task in tasks
    )


def test_what_agent_computer_kept() -> None:
    made = computer(
        {
            "id": 1,
            "title": "whole",
            "description": "all",
            "status": "in_progress",
            "parent_id": None,
            "result": None,
        },
        {"id": 2, "title": "part", "status": "completed", "parent_id": 1, "result": "done"},
        {
            "id": 5,
            "title": "then",
            "depends_on": [2],
            "node_type": "tool",
            "config": {"tool": "shell"},
        },
    )
    one, two, five = made.tasks
    assert (one.id, one.title, one.description, one.status, one.result) == (
        1,
        "whole",
        "all",
        "in_progress",
        "",
    )
    assert (two.id, two.parent, two.status, two.result) == (2, 1, "completed", "done")
    assert (five.id, five.depends_on, five.node, five.config) == (
        5,
        (2,),
        "tool",
        {"tool": "shell"},
    )
    assert made.notes == ()
    assert (
        render_tasks({task.id: task for task in made.tasks})
        == "[>] #1 whole\n  [x] #2 part\n[ ] #5 then"
    )


def test_what_openagent_kept() -> None:
    whole = {
        "status": "pending",
        "blockedBy": [],
        "blocks": [],
        "owner": "",
        "activeForm": "",
        "metadata": {},
    }
    made = openagent(
        {
            **whole,
            "id": "2",
            "subject": "second",
            "blockedBy": ["1"],
            "owner": "bob",
            "metadata": {"k": 1},
        },
        {**whole, "id": "1", "subject": "first", "blocks": ["3"], "activeForm": "Doing the first"},
        {**whole, "id": 3, "subject": "third", "description": "words"},
    )
    by_id = {task.id: task for task in made.tasks}
    assert by_id[2].depends_on == (1,) and by_id[3].depends_on == (1,) and made.notes == ()
    assert (by_id[2].owner, by_id[2].metadata, by_id[1].active) == (
        "bob",
        {"k": 1},
        "Doing the first",
    )


def test_what_is_broken_is_mended_and_told() -> None:
    made = computer(
        {"id": 1, "title": "a", "depends_on": [2]},
        {"id": 2, "title": "b", "depends_on": [1, 1, 7, "x"]},
        {"id": 2, "title": "twice\u001b[31m"},
        {"id": "task_4", "title": "x" * 300, "parent_id": 4, "status": "nonsense"},
        {"title": ""},
        {"id": 6, "title": "p", "status": "completed"},
        {"id": 8, "title": "c", "parent_id": 6},
        "junk",
    )
    holds(made.tasks)
    assert [task.id for task in made.tasks] == [1, 2, 9, 4, 10, 6, 8]
    assert {task.id: task.status for task in made.tasks}[6] == "pending"
    assert [note.split(" ", 1)[0] for note in made.notes] == ["2", "1", "1"]
    for bad in (b"", b"[", b"null", b'{"tasks": 3}', b"\xff", b"[" * 10_000):
        assert parse_computer_tasks(bad).tasks == () and parse_computer_tasks(bad).notes
    assert parse_openagent_tasks([b"{", b"[]"]).notes == ("2 files could not be read",)


def test_ten_thousand_tasks_and_more() -> None:
    made = computer(
        *({"id": n, "title": f"t{n}", "depends_on": [n - 1 or 12_000]} for n in range(1, 12_001))
    )
    holds(made.tasks)
    assert len(made.tasks) == 10_000 and made.notes[0] == "2,000 of 12,000 tasks were left out"
    circle = computer(
        *({"id": n, "title": f"t{n}", "parent_id": n % 9_000 + 1} for n in range(1, 9_001))
    )
    holds(circle.tasks)
    assert circle.notes == ("1 tasks depended on themselves; these dependencies were removed",)


ROW = st.fixed_dictionaries(
    {"id": st.one_of(st.integers(-2, 8), st.none(), st.text(max_size=3))},
    optional={
        "title": st.one_of(st.text(max_size=20), st.integers()),
        "status": st.sampled_from(
            ["pending", "completed", "in_progress", "deleted", "blocked", "?"]
        ),
        "parent_id": st.one_of(st.integers(0, 8), st.none()),
        "depends_on": st.lists(st.integers(0, 8), max_size=3),
        "metadata": st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
    },
)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(ROW, max_size=12))
def test_whatever_stands_in_a_file_the_graph_is_sound(rows: list[dict[str, Any]]) -> None:
    made = computer(*rows)
    holds(made.tasks)
    assert len(made.tasks) == len(rows)
