"""One trace for all that a turn sets in motion, over the conversations of its sub-agents."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import anyio
import msgspec
from click.testing import CliRunner

from deskhand.assembly.trace import TraceSpan
from deskhand.assembly.trace_tree import TraceTree
from deskhand.cli.root import cli
from deskhand.config.statements import load_statements
from deskhand.runtime.app import App
from deskhand.store.sqlite import SqliteStore
from deskhand.supervision.trace_export import Collector, TraceExporter
from deskhand.testing.temporary_home import wait_for

from .working import PARENT, calls, desk_of, tasks_of, turn_ends


async def test_a_call_of_a_sub_agent_stands_below_the_call_that_gave_the_task(
    tmp_path: Path,
) -> None:
    desk = desk_of(tmp_path)
    inner = calls(("spawn_agent", {"task": calls(("list_files", {}))}))
    async with desk.running() as app:
        tree = TraceTree(app.store, PARENT, str)
        await desk.say(app, calls(("spawn_agent", {"task": inner})))
        await wait_for(partial(turn_ends, app, 1))
        spans = await tree.read()
        (outer,) = tasks_of(app)

        follow_up = {"action": "send", "task_id": outer.id, "task": "and now?"}
        await desk.say(app, calls(("subagents", follow_up)))
        await wait_for(partial(is_told, app, 2))
        later = await tree.read()

    assert [span.seq for span in spans] == sorted(span.seq for span in spans)
    assert len({span.trace_id for span in spans}) == 1, "all of it is one trace"
    assert path_of(spans, "list_files") == [
        "list_files", "scripted/x", "default", "spawn_agent", "scripted/x", "default",
        "spawn_agent", "scripted/x", "default",
    ]  # fmt: skip
    assert tree.depth_of(outer.session) == 1

    call = next(span for span in later if span.name == "subagents")
    turn = next(
        span for span in later if span.kind == "agent_run" and span.session == outer.session
    )
    assert (turn.parent_id, turn.trace_id) == (call.span_id, call.trace_id)
    assert turn.trace_id != spans[0].trace_id, "a later turn is another trace"

    env = {"DESKHAND_HOME": str(tmp_path), "HOME": str(tmp_path)}
    run = partial(CliRunner().invoke, cli, ("trace", PARENT), env=env, prog_name="deskhand")
    shown = await anyio.to_thread.run_sync(lambda: run().stdout)
    names = [line.split("\t")[2] for line in shown.splitlines()]
    assert "> > list_files" in names and "> spawn_agent" in names and "spawn_agent" in names
    assert await exported(tmp_path) == {span.span_id: span.parent_id for span in (*spans, *later)}


async def is_told(app: App, number: int) -> bool:
    tasks = tasks_of(app)
    told = len(tasks) == number and all(task.told for task in tasks)
    return told and not await app.store.open_sessions()


def path_of(spans: list[TraceSpan], name: str) -> list[str]:
    """The names from this call up to the turn of people."""
    by_id = {span.span_id: span for span in spans}
    span = next(each for each in spans if each.name == name)
    names = [span.name]
    while span.parent_id:
        span = by_id[span.parent_id]
        names.append(span.name)
    return names


class Kept(Collector):
    """Keeps what it is to send."""

    def __init__(self) -> None:
        self.spans = list[TraceSpan]()

    async def send(self, spans: object) -> None:
        self.spans += msgspec.convert(spans, list[TraceSpan], from_attributes=True)


async def exported(home: Path) -> dict[str, str]:
    """What a collector is sent of it, from the beginning."""
    store = SqliteStore(home / "state" / "deskhand.db", load_statements())
    cursor = home / "cursor"
    cursor.write_text("0")
    kept = Kept()
    await TraceExporter(store, kept, str, cursor).export()
    await store.close()
    await anyio.lowlevel.checkpoint()
    return {span.span_id: span.parent_id for span in kept.spans}
