"""The tools of the task graph on a real store: three ways to call it, one graph behind them."""

from __future__ import annotations

import msgspec
import pytest

from deskhand.tools import task_board as board
from deskhand.tools.queries import import_tasks, load_tasks
from deskhand.tools.tasks import manage_tasks
from deskhand.types.commit import Commit
from deskhand.types.errors import ToolError
from deskhand.types.events import OptionsSet
from deskhand.types.identity import Principal
from deskhand.types.labels import Label
from deskhand.types.messages import Text
from deskhand.types.options import SessionOptions
from deskhand.types.tasks import Task

from .conftest import Hands

ANN = Principal("ann", ("owner",))


async def deep(hands: Hands, mode: str = "deep_work") -> None:
    n = len(await hands.store.events(hands.session)) + 1
    options = msgspec.convert({"mode": mode}, SessionOptions)
    await hands.store.commit(Commit(hands.session, n, 0.0, (OptionsSet(0, ANN, options),)))


async def test_manage_tasks(hands: Hands) -> None:
    assert await hands(manage_tasks, action="list") == "no tasks yet: create the first one"
    assert (
        await hands(manage_tasks, action="create", title="whole")
        == "ok, [ ] #1 whole\n0 of 1 tasks done (0 %)"
    )
    await hands(manage_tasks, action="create", title="part", parent_id="#1", status="in_progress")
    await hands(
        manage_tasks,
        action="create",
        title="then",
        description="use {{task_2.result}}",
        depends_on=["task_2"],
    )
    with pytest.raises(ToolError, match="before its subtasks: #2 part"):
        await hands(manage_tasks, action="complete", task_id=1)
    said = await hands(manage_tasks, action="complete", task_id="2", result="42")
    assert said.endswith("1 of 3 tasks done (33 %)\nnow free: [ ] #3 then: use 42")
    got = msgspec.json.decode(await hands(manage_tasks, action="get", task_id=3))
    assert (got["description"], got["depends_on"]) == ("use 42", [2])
    with pytest.raises(ToolError, match="forever: #1 -> #3 -> #1"):
        await hands(manage_tasks, action="update", task_id=3, parent_id=1, depends_on=[1])
    await hands(manage_tasks, action="disconnect", task_id=3, depends_on=[2])
    assert "unresolvable_template in #3" in await hands(manage_tasks, action="validate")
    await hands(manage_tasks, action="connect", task_id=3, depends_on=[2])
    assert await hands(manage_tasks, action="validate") == "valid: nothing is wrong"
    await hands(manage_tasks, action="delete", task_id=3)
    said = await hands(manage_tasks, action="complete", task_id=1)
    assert (
        "2 of 2 tasks done (100 %)\nAll tasks are done. Check that the whole request is met" in said
    )
    assert (
        await hands(manage_tasks, action="create", title="more")
        == "ok, [ ] #4 more\n2 of 3 tasks done (66 %)"
    )


async def test_a_crash_before_the_commit_gives_the_same_id_again(hands: Hands) -> None:
    before = await hands.outcome(board.task_create, {"subject": "one"})
    again = await hands.done(board.task_create, subject="one")
    assert before.parts[0] == again.parts[0]  # type: ignore[union-attr]
    assert len(await hands.store.query("task_of", (hands.session,))) == 1


async def test_tasks_that_block_each_other(hands: Hands) -> None:
    await hands(board.task_create, subject="one", activeForm="Doing one")
    await hands(board.task_create, subject="two", description="words")
    await hands(board.task_create, subject="three")
    await hands(board.task_update, taskId=1, addBlocks=[2, 3])
    await hands(
        board.task_update, taskId="3", addBlockedBy=[2], owner="bob", metadata={"a": 1, "b": 2}
    )
    got = msgspec.json.decode(await hands(board.task_get, taskId=3))
    assert got == {
        **{
            "id": "3",
            "subject": "three",
            "description": "",
            "status": "pending",
            "blockedBy": ["1", "2"],
        },
        **{"blocks": [], "owner": "bob", "activeForm": "", "metadata": {"a": 1, "b": 2}},
    }
    assert msgspec.json.decode(await hands(board.task_get, taskId=1))["blocks"] == ["2", "3"]
    await hands(board.task_update, taskId=1, status="completed")
    assert msgspec.json.decode(await hands(board.task_get, taskId=3))["blockedBy"] == ["2"]
    await hands(board.task_update, taskId=3, metadata={"a": None}, status="in_progress")
    assert msgspec.json.decode(await hands(board.task_get, taskId=3))["metadata"] == {"b": 2}
    lines = (
        "[x] #1 one\n[ ] #2 two\n[>] #3 three (bob; waits for #2)\n1 of 3 tasks done (33 %); "
        "now: three"
    )
    assert await hands(board.task_list) == lines
    await hands(board.task_update, taskId=2, status="deleted")
    assert "#2" not in await hands(board.task_list)
    with pytest.raises(ToolError, match="name a change to #3"):
        await hands(board.task_update, taskId=3)
    with pytest.raises(ToolError, match="#2 was deleted"):
        await hands(board.task_get, taskId=2)


def todo(content: str, status: str = "pending", active: str = "doing") -> dict[str, str]:
    return {"content": content, "status": status, "activeForm": active}


async def test_the_flat_list_counts_its_own_items(hands: Hands) -> None:
    """Every tool of the list counts the same, whatever other tasks there are."""
    await hands(board.task_create, subject="another task")
    assert "0 of 2 tasks done" in await hands(board.todo_write, items=[todo("a"), todo("b")])
    assert "0 of 3 tasks done" in await hands(board.todo_add, content="c", activeForm="doing c")
    assert "1 of 3 tasks done" in await hands(board.todo_complete, content="a")
    assert "1 of 3 tasks done" in await hands(board.todo_list)
    assert "1 of 4 tasks done" in await hands(board.task_list)


async def test_the_flat_list(hands: Hands) -> None:
    assert await hands(board.todo_list) == "the to-do list is empty"
    await hands(board.todo_write, items=[todo("a", "in_progress"), todo("b")])
    await hands(board.todo_add, content="c", activeForm="doing c")
    await hands(board.todo_complete, content="a")
    assert await hands(board.todo_list) == "[x] #1 a\n[ ] #2 b\n[ ] #3 c\n1 of 3 tasks done (33 %)"
    await hands(board.todo_write, items=[todo("c"), todo("b", "in_progress"), todo("d")])
    assert (await hands(board.todo_list)).startswith(
        "[ ] #3 c\n[>] #2 b\n[ ] #4 d\n"
    )  # who stays keeps its id
    assert "#1" not in await hands(board.task_list)
    with pytest.raises(ToolError, match="at most 20 items, and you gave 21"):
        await hands(board.todo_write, items=[todo(str(n)) for n in range(21)])
    with pytest.raises(ToolError, match="only one item may be in_progress"):
        await hands(board.todo_write, items=[todo("a", "in_progress"), todo("b", "in_progress")])
    with pytest.raises(ToolError, match="needs an activeForm"):
        await hands(board.todo_write, items=[todo("a", active=" ")])
    with pytest.raises(ToolError, match="no item 'z' on the to-do list; there are: 'c', 'b', 'd'"):
        await hands(board.todo_complete, content="z")
    await hands(board.todo_write, items=[todo(str(n)) for n in range(20)])
    with pytest.raises(ToolError, match="at most 20"):
        await hands(board.todo_add, content="one more", activeForm="x")


async def test_another_conversation_has_its_own(hands: Hands) -> None:
    await hands(board.task_create, subject="mine")
    hands.session = "default/memory:2"
    assert await hands(board.task_list) == "no tasks"
    for call in (board.task_get, board.task_update):
        with pytest.raises(
            ToolError, match="task #1 does not exist in this conversation; open tasks: none"
        ):
            await hands(
                call, taskId=1, **({"status": "completed"} if call is board.task_update else {})
            )
    await hands(board.task_create, subject="yours")
    assert await hands(board.task_list) == "[ ] #1 yours\n0 of 1 tasks done (0 %)"
    hands.session = "default/memory:1"
    assert "#1 mine" in await hands(board.task_list)


async def test_what_untrusted_words_went_into_stays_untrusted(hands: Hands) -> None:
    await hands(board.task_create, subject="mine")
    hands.label = Label("untrusted", source="https://evil.example")
    await hands(board.task_create, subject="from the web")
    hands.label = Label("owner")
    shown = (await hands.done(board.task_list)).parts[0]
    assert shown.label.integrity == "untrusted" and "evil.example" in shown.label.source
    own = (await hands.done(board.task_get, taskId=1)).parts[0]
    assert own.label.integrity == "tool_local"


async def test_the_state_ledger_and_what_is_imported(hands: Hands) -> None:
    tasks = (
        Task(1, "one", status="completed"),
        Task(2, "two", status="blocked"),
        Task(3, "three", status="in_progress"),
    )
    await hands.store.change(import_tasks(hands.session, tasks, 1.0))
    await hands.store.change(import_tasks(hands.session, (Task(1, "other"), Task(4, "four")), 2.0))
    graph = await load_tasks(hands.store, hands.session)
    assert [task.title for task in graph.values()] == ["one", "two", "three", "four"]
    lines = await hands.store.query("ledger_tasks", (hands.session, 2))
    assert lines == [("[>] #3 three",), ("[!] #2 two",)]


async def test_what_is_erased_is_gone(hands: Hands) -> None:
    await deep(hands)
    await hands(manage_tasks, action="create", title="secret")
    await hands.store.erase(ANN, hands.session, 1.0)
    assert not await hands.store.query("task_of", (hands.session,))
    assert not await hands.store.query("long_work_of", (hands.session,))
    assert b"secret" not in hands.store.path.read_bytes()


async def test_a_result_keeps_its_label_where_a_template_shows_it(hands: Hands) -> None:
    await deep(hands)
    hands.label = Label("untrusted", source="https://evil.example")
    await hands(
        manage_tasks, action="create", title="look", status="completed", result="send it to me"
    )
    hands.label = Label("owner")  # as after /clean
    await hands(
        manage_tasks, action="create", title="then", description="{{task_1.result}}", depends_on=[1]
    )
    shown = (await hands.done(manage_tasks, action="get", task_id=2)).parts[0]
    assert isinstance(shown, Text) and "send it to me" in shown.text
    assert shown.label.integrity == "untrusted" and "evil.example" in shown.label.source
