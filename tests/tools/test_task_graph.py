"""The graph of tasks: what always holds of it, whatever is done to it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskhand.tools import task_graph as graphs
from deskhand.tools.task_nodes import resolve_templates, validate_graph
from deskhand.tools.task_words import percent_done, render_progress, render_tasks, to_openagent
from deskhand.types.errors import ToolError
from deskhand.types.labels import LOCAL, UNTRUSTED
from deskhand.types.tasks import Task, TaskGraph

from ..examples import examples

IDS = st.integers(0, 9)
STATUS = st.sampled_from(["pending", "in_progress", "completed", "blocked"])
STEP = st.one_of(
    st.tuples(st.just("create"), IDS, st.lists(IDS, max_size=3)),
    st.tuples(st.just("status"), IDS, STATUS),
    st.tuples(st.just("parent"), IDS, IDS),
    st.tuples(st.just("connect"), IDS, st.lists(IDS, max_size=3)),
    st.tuples(st.just("disconnect"), IDS, st.lists(IDS, max_size=3)),
    st.tuples(st.just("delete"), IDS, st.just(0)),
)


def made(*titles: str) -> dict[int, Task]:
    graph: dict[int, Task] = {}
    for title in titles:
        graph = graphs.merge_changes(graph, graphs.create(graph, Task(0, title)))
    return graph


def after(graph: TaskGraph, changed: graphs.ChangedTasks) -> dict[int, Task]:
    return graphs.merge_changes(graph, changed)


def complete(graph: TaskGraph, id_: int) -> dict[int, Task]:
    return after(graph, graphs.update(graph, id_, LOCAL, status="completed"))


def apply(graph: TaskGraph, step: tuple[str, int, object]) -> graphs.ChangedTasks:
    """Do this to tasks that are there; 0 stays 0, and 9 is nobody."""

    def meant(number: int) -> int:
        return number if number in (0, 9) or not graph else sorted(graph)[number % len(graph)]

    kind = step[0]
    id_ = meant(step[1])
    value = step[2]
    on = tuple(map(meant, value)) if isinstance(value, list) else ()
    match kind, value:
        case "create", list():
            return graphs.create(
                graph, Task(0, "x", parent=id_, depends_on=tuple(n for n in on if n))
            )
        case "status", str():
            return graphs.update(graph, id_, LOCAL, status=value)
        case "parent", int():
            return graphs.update(graph, id_, LOCAL, parent=meant(value))
        case "connect", list():
            return graphs.connect(graph, id_, on, LOCAL)
        case "disconnect", list():
            return graphs.disconnect(graph, id_, on, LOCAL)
        case _:
            return graphs.delete(graph, id_)


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(STEP, min_size=4, max_size=40))
def test_what_always_holds(steps: list[tuple[str, int, object]]) -> None:
    graph = made(*"abcd")
    given_ids = 4
    for step in steps:
        try:
            changed = apply(graph, step)
        except ToolError:
            continue
        if step[0] == "create":
            assert [task.id for task in changed] == [given_ids + 1]
            given_ids += 1
        graph = after(graph, changed)
        assert not graphs.find_cycle(graph)
        there = {id_ for id_, task in graph.items() if task.status != "deleted"}
        for task in graph.values():
            if task.status == "completed":
                assert not graphs.list_prerequisites(graph, task)
            if task.status != "deleted" and task.parent:
                assert task.parent in there
        assert (
            percent_done(graph) == 100
            or not there
            or any(not graph[id_].is_closed for id_ in there)
        )
        assert len(render_tasks(graph).splitlines()) == len(there)


def test_a_parent_is_completed_after_its_subtasks_and_a_task_after_what_it_depends_on() -> None:
    graph = made("whole", "part", "before")
    graph = after(graph, graphs.update(graph, 2, LOCAL, parent=1))
    graph = after(graph, graphs.connect(graph, 2, (3,), LOCAL))
    with pytest.raises(ToolError, match="task #1 cannot be completed before its subtasks: #2 part"):
        complete(graph, 1)
    with pytest.raises(
        ToolError, match="task #2 cannot be completed before what it depends on: #3 before"
    ):
        complete(graph, 2)
    graph = complete(complete(complete(graph, 3), 2), 1)
    assert render_progress(graph) == "3 of 3 tasks done (100 %)"
    with pytest.raises(ToolError, match="#2 is completed, and it needs #3: reopen #2 first"):
        graphs.update(graph, 3, LOCAL, status="pending")


def test_nothing_waits_for_itself() -> None:
    graph = made("a", "b", "c")
    graph = after(graph, graphs.connect(graph, 2, (1,), LOCAL))
    graph = after(graph, graphs.update(graph, 3, LOCAL, parent=1))
    with pytest.raises(ToolError, match="cannot wait for itself"):
        graphs.connect(graph, 1, (1,), LOCAL)
    with pytest.raises(ToolError, match="forever: #1 -> #2 -> #1"):
        graphs.connect(graph, 1, (2,), LOCAL)
    with pytest.raises(ToolError, match="forever"):
        graphs.connect(graph, 3, (2,), LOCAL)  # it is a part of what #2 waits for
    with pytest.raises(
        ToolError, match=r"task #9 does not exist in this conversation; open tasks: #1, #2, #3"
    ):
        graphs.connect(graph, 3, (9,), LOCAL)


def test_what_is_deleted_takes_its_subtasks_along_and_blocks_nobody() -> None:
    graph = made("a", "b", "c")
    graph = after(graph, graphs.update(graph, 2, LOCAL, parent=1))
    graph = after(graph, graphs.connect(graph, 3, (2,), LOCAL))
    assert to_openagent(graph)[2]["blockedBy"] == ["2"] and to_openagent(graph)[1]["blocks"] == [
        "3"
    ]
    graph = after(graph, graphs.delete(graph, 1))
    assert [task.status for task in graph.values()] == ["deleted", "deleted", "pending"]
    assert [task["id"] for task in to_openagent(graph)] == ["3"] and to_openagent(graph)[0][
        "blockedBy"
    ] == []
    assert (
        after(graph, graphs.create(graph, Task(0, "d")))[4].title == "d"
    )  # an id is never given twice
    with pytest.raises(ToolError, match="#1 was deleted"):
        graphs.update(graph, 1, LOCAL, status="completed")


def test_a_task_that_a_person_must_see_to_holds_up_what_waits_for_it() -> None:
    graph = made("ask", "then", "beside")
    graph = after(graph, graphs.connect(graph, 2, (1,), LOCAL))
    graph = after(graph, graphs.update(graph, 1, LOCAL, status="blocked", result="which one?"))
    assert graphs.find_stuck(graph) == ()
    graph = complete(graph, 3)
    assert [task.id for task in graphs.find_stuck(graph)] == [1]
    assert "[!] #1 ask (blocked: which one?)" in render_tasks(graph)
    assert "[ ] #2 then (waits for #1)" in render_tasks(graph)


@pytest.mark.parametrize(
    ("title", "kept"),
    [
        ("a\x1b[31mb\x00\x07c", "a [31mb c"),
        ("one\ntwo\r\n three", "one two three"),
        ("\u202eev\u200bil", "evil"),
    ],
)
def test_a_title_is_one_line_of_words(title: str, kept: str) -> None:
    assert made(title)[1].title == kept


def test_what_is_too_much_is_refused_in_words() -> None:
    for title in ("", " \x1b\n", "\u202e"):
        with pytest.raises(ToolError, match="needs a title"):
            made(title)
    with pytest.raises(ToolError, match="at most 200 characters"):
        made("x" * 201)
    with pytest.raises(ToolError, match="at most 20,000"):
        graphs.update(made("x"), 1, LOCAL, result="x" * 20_001)
    with pytest.raises(ToolError, match="there is no status 'ready'"):
        graphs.parse_status("ready")


def test_ten_thousand_tasks_are_contained() -> None:
    many = {
        n: Task(n, f"t{n}", parent=n // 2, depends_on=(n - 1,) if n % 2 else ())
        for n in range(2, 1_001)
    }
    with pytest.raises(ToolError, match="1,000 open tasks"):
        graphs.create(many | {1: Task(1, "t1")}, Task(0, "one more"))
    chain = {n: Task(n, f"t{n}", depends_on=(n - 1,) if n > 1 else ()) for n in range(1, 10_001)}
    assert not graphs.find_cycle(chain)
    with pytest.raises(ToolError, match="forever"):
        graphs.connect(chain, 1, (10_000,), LOCAL)
    deep = {n: Task(n, f"t{n}", parent=n - 1) for n in range(1, 10_001)}
    assert len(graphs.delete(deep, 1)) == 10_000
    assert len(render_tasks(chain).splitlines()) == 201 and "and 9800 more open" in render_tasks(
        chain
    )


def test_whose_words_they_are_stays_with_them() -> None:
    (task,) = graphs.update(made("x"), 1, UNTRUSTED, result="from the web")
    assert task.label.integrity == "untrusted"
    (again,) = graphs.update({1: task}, 1, LOCAL, status="completed")
    assert again.label.integrity == "untrusted"


def kinds(*tasks: Task) -> list[str]:
    return [finding.kind for finding in validate_graph({task.id: task for task in tasks})]


def test_what_is_wrong_in_a_graph_is_named() -> None:
    one = Task(1, "one")
    two = Task(2, "two", depends_on=(1,))
    assert kinds(one, two) == []
    assert kinds(Task(1, "a", depends_on=(2,)), Task(2, "b", depends_on=(1,))) == ["cycle"]
    assert kinds(Task(1, "a", depends_on=(7,))) == ["missing_dependency"]
    assert kinds(Task(1, "a", node="robot")) == ["unknown_node_type"]
    assert kinds(Task(1, "a", node="tool")) == ["missing_config"]
    assert kinds(Task(1, "a", node="gather")) == ["missing_config"]
    assert kinds(
        one, Task(2, "b", node="tool", depends_on=(1,), config={"tool": "{{task_1.result}}"})
    ) == ["templated_tool_name"]
    assert kinds(Task(1, "a", config={"output_schema": {"type": "thing"}})) == [
        "invalid_output_schema"
    ]
    assert kinds(one, Task(2, "b", "use {{task_1.result}}")) == ["unresolvable_template"]
    assert kinds(one, Task(2, "b", "use {{task_1.result}}", depends_on=(1,))) == []
    assert kinds(one, Task(2, "b", "use {{task_1}}", depends_on=(1,))) == ["malformed_template"]
    assert kinds(one, Task(2, "b", "use {{task_1.result", depends_on=(1,))) == [
        "malformed_template"
    ]
    promising = Task(
        1,
        "a",
        config={"output_schema": {"type": "object", "properties": {"price": {"type": "number"}}}},
    )
    good = Task(
        2,
        "b",
        node="tool",
        depends_on=(1,),
        config={"tool": "x", "arguments": {"p": "{{task_1.output.price}}"}},
    )
    assert kinds(promising, good) == []
    assert kinds(promising, Task(2, "b", "{{task_1.output.size}}", depends_on=(1,))) == [
        "unresolvable_template"
    ]
    apart = validate_graph({1: one, 2: two, 3: Task(3, "alone")})
    assert [(finding.kind, finding.warning) for finding in apart] == [
        ("disconnected_components", True)
    ]


def test_results_stand_where_templates_were() -> None:
    graph = {
        1: Task(1, "a", status="completed", result='{"price": 3, "tags": ["x"]}'),
        2: Task(2, "b", result="no"),
    }
    assert resolve_templates("{{task_1.output.price}} {{ task_1.output.tags.0 }}", graph) == "3 x"
    assert (
        resolve_templates("{{task_1.output.size}} {{task_2.result}} {{task_9.result}}", graph)
        == "{{task_1.output.size}} {{task_2.result}} {{task_9.result}}"
    )
    assert resolve_templates("{{task_1.result}}", graph) == '{"price": 3, "tags": ["x"]}'


def test_a_conversation_has_only_so_many_tasks_ever() -> None:
    graph = {n: Task(n, "done", status="completed") for n in range(1, graphs.MAX_TASKS)}
    (last,) = graphs.create(graph, Task(0, "one"))
    with pytest.raises(
        ToolError, match="20,000 tasks, which is the maximum: start another one with /start"
    ):
        graphs.create(graph | {last.id: last}, Task(0, "two"))
