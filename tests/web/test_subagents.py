"""The tasks of sub-agents over HTTP: what they do, and what came of them."""

from __future__ import annotations

from pathlib import Path

from deskhand.subagents.queries import TaskEnd, TaskName, TaskPlace, add_task, mark_ended
from deskhand.types.identity import Address, Principal
from deskhand.types.labels import LOCAL, Label
from deskhand.types.subagents import SubagentTask, TaskRequest, TaskState
from deskhand.web.subagents import OUTCOME_CHARS, WITHHELD

from .calling import ALLOW, Caller
from .served import Served, serving

OWNER = Principal("owner", ("owner",))
SESSION = "default/web:owner:one"


async def _end(served: Served, id_: str, state: TaskState, said: str, label: Label = LOCAL) -> None:
    """A task that was given in SESSION and ended so."""
    request = TaskRequest(
        principal=OWNER,
        task="count",
        label=LOCAL,
        audience=("owner", "bob"),
        root=SESSION,
        people=Address("web", "owner", "one"),
        address=Address("web", "owner", "one"),
        path=("count",),
        agents=("default",),
    )
    place = TaskPlace(SESSION, f"default/subagent:{id_}")
    task = SubagentTask(
        id=id_,
        round=1,
        parent=place.parent,
        session=place.session,
        title="count",
        state="wanted",
        told=True,
        stop="",
        at=1.0,
        ended_at=None,
        input_tokens=0,
        output_tokens=0,
        request=request,
    )
    rows = (
        add_task(TaskName(id_), place, request, 1.0, told=True),
        mark_ended(task, TaskEnd(state, said, label), 2.0),
    )
    await served.app.store.change(rows)


async def test_how_its_answer_begins_is_one_line(tmp_path: Path) -> None:
    caller = Caller()
    async with serving(tmp_path, caller.model, tools=None, policy=ALLOW) as served:
        await caller.does(served.owner, "one")
        for_bob_alone = Label("owner", readers=("bob",))
        for_nobody_here = Label("owner", readers=("carol",))
        await _end(served, "a", "done", "# Twelve\n\n  letters")
        await _end(served, "b", "done", "word " * 1_000)
        await _end(served, "c", "error", "the key is wrong")
        await _end(served, "d", "done", "the code is 7719", for_bob_alone)
        await _end(served, "e", "done", "the code is 7719", for_nobody_here)

        listed = await served.owner.get("/api/subagents?all=true&session=one")
        outcomes = {each["id"]: each["outcome"] for each in listed}
        cut = outcomes.pop("b")
        assert cut.startswith("word word") and len(cut) == OUTCOME_CHARS + 1 and cut[-1] == "…"
        assert outcomes == {
            "a": "# Twelve letters",
            "c": "the key is wrong",
            "d": "the code is 7719",
            "e": WITHHELD,
        }


async def test_what_a_teammate_said_last_is_told(tmp_path: Path) -> None:
    caller = Caller()
    caller.final = "twelve\nletters"
    async with serving(tmp_path, caller.model, tools=None, policy=ALLOW) as served:
        await caller.does(served.owner, "one")
        await served.owner.ask("PATCH", "/api/sessions/one", {"teams": True})
        given = {"name": "ann", "role": "reader", "prompt": "count them"}
        await caller.does(served.owner, "one", ("spawn_teammate", given))

        mate = (await served.owner.get("/api/sessions/one/team"))["teammates"][0]
        while not mate["outcome"]:
            assert mate["status"] == "working"
            mate = (await served.owner.get("/api/sessions/one/team"))["teammates"][0]
        assert (mate["doing"], mate["step"], mate["outcome"]) == ("", "", "ok")
