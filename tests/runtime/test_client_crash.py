"""Crash at every boundary of a turn that hands calls to a program: nothing that it was given or
gave is lost."""

from __future__ import annotations

from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.agent.fold import fold
from deskhand.agent.state import State
from deskhand.config.config import Config, Home, Settings
from deskhand.models.base import Request
from deskhand.runtime.app import App, Parts, open_app
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.crash import Crash, Fuse, fused
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.testing.tools import FileTool
from deskhand.types import events as e
from deskhand.types.client import ClientRequest, ClientTool
from deskhand.types.identity import Address, Body, Inbound, Principal, Said, ToolResults
from deskhand.types.messages import Message, Text, ToolCall, ToolResult

ANN = Principal("ann", ("owner",))
SESSION = "default/web:ann:crash"
CONFIG = msgspec.convert({"defaults": {"models": ["scripted/test"]}}, Config, strict=False)
WANTED = ClientRequest(tools=(ClientTool("weather"), ClientTool("time")), temperature=0.25)


def script(request: Request) -> Message:
    """A write of ours and two calls for the program, then the answer."""
    assert request.temperature == WANTED.temperature, "what the program wants is still known"
    results = [
        part.text
        for shown in request.messages
        for part in shown.message.parts
        if isinstance(part, ToolResult)
    ]
    if results:
        return say(" and ".join(results[1:]))
    names = {"weather": "c1", "write": "w1", "time": "c2"}
    return say(
        "",
        *(
            ToolCall(call_id, name, msgspec.Raw(b'{"text":"w1"}'))
            for name, call_id in names.items()
        ),
    )


class Program:
    """What asks over the API: it knows what it has said, and says it again until it is taken."""

    async def go_on(self, app: App) -> bool:
        """Do what is next. True when the turn is over."""
        log = [recorded.event for recorded in await app.store.events(SESSION)]
        if not any(isinstance(event, e.MessageReceived) for event in log):
            await self._send(app, "said", Said(Message("user", (Text("go"),)), (), WANTED))
        handed = [event.ids for event in log if isinstance(event, e.CallsHandedOver)]
        if handed and not any(isinstance(event, e.ResultsReturned) for event in log):
            results = [
                ToolResult(name, (Text(f"result of {call_id}"),))
                for call_id, name in handed[0].items()
            ]
            await self._send(app, "results", ToolResults(tuple(results), None, WANTED))
        return any(isinstance(event, e.TurnEnded) for event in log)

    async def _send(self, app: App, name: str, body: Body) -> None:
        inbound = Inbound(name, Address("web", "ann", "crash"), "ann", 1.0, body, SESSION)
        assert (await app.door.submit(inbound)).status != "refused"


async def live(home: Path, fuse: Fuse) -> bool:
    """Run until the turn is over. True when the fuse blew first."""
    model, write = ScriptedModel(script), FileTool("write", home / "writes.txt", fuse=fuse)
    parts = Parts(
        lambda name: model, {"write": write}, store=fused(fuse), authorize=lambda inbound: ANN
    )
    blown = False
    try:
        async with (
            open_app(Settings(Home(home), CONFIG), parts) as app,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(app.run)
            program = Program()
            with anyio.fail_after(60):
                while not await program.go_on(app):
                    await anyio.sleep(0.002)
            tasks.cancel_scope.cancel()
    except* Crash:
        blown = True
    return blown


async def check(home: Path) -> None:
    store = SqliteStore(Home(home).database)
    log = await store.events(SESSION)
    state = fold(State(SESSION), log)
    kinds = [e.event_kind(recorded.event) for recorded in log]
    results = [
        part for m in state.messages for part in m.message.parts if isinstance(part, ToolResult)
    ]
    assert state.turn is None and not state.calls
    assert [
        kinds.count(kind) for kind in ("message_received", "results_returned", "turn_ended")
    ] == [1, 1, 1]
    assert [(each.call_id, each.text) for each in results[1:]] == [
        ("c1", "result of c1"),
        ("c2", "result of c2"),
    ]
    assert results[0].call_id == "w1" and results[0].status in ("ok", "interrupted")
    assert state.messages[-1].message.text == "result of c1 and result of c2"
    written = (
        (home / "writes.txt").read_text().splitlines() if (home / "writes.txt").exists() else []
    )
    assert len(written) <= 1, "a write was repeated"
    assert not (await store.audit())[1]
    await store.close()


@pytest.mark.timeout(120)
async def test_every_boundary(tmp_path: Path) -> None:
    # How many boundaries there are depends on what was woken by what: so it goes on until none is
    # reached any more.
    crashes = 0
    missed = 0
    at = 0
    while missed < 3:
        at += 1
        home = tmp_path / str(at)
        home.mkdir()
        blown = await live(home, Fuse(at))
        while await live(home, Fuse()):
            pass
        await check(home)
        crashes += blown
        missed = 0 if blown else missed + 1
    assert crashes >= 10
