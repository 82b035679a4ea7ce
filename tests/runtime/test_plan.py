"""Plan mode in a whole Deskhand: only looking until a person said yes, over a restart too."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.config.config import Config, Home, Settings
from deskhand.models.base import Request
from deskhand.runtime.app import App, Parts, open_app
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.clock import SetClock
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.events import ApprovalAsked, OptionsSet, TurnEnded
from deskhand.types.identity import Principal
from deskhand.types.messages import Message, Text, ToolCall, ToolResult

ANN = Principal("ann", ("owner",))
SESSION = "default/memory:1"
PLAN = "1. write f.txt\n2. say so"
Call = tuple[str, dict[str, object]]
WRITE: Call = ("write_file", {"path": "f.txt", "content": "x"})
SHOW: Call = ("exit_plan_mode", {"plan": PLAN})


class Planner:
    """A model that calls these, one after the other, and then says that it is done."""

    def __init__(self, home: Path, *calls: Call) -> None:
        self.settings = Settings(
            Home(home), msgspec.convert({"defaults": {"models": ["scripted/x"]}}, Config)
        )
        self.calls, self.told = calls, list[str]()
        self.model, self.channel = ScriptedModel(self._script), MemoryChannel()
        self.file = self.settings.home.workspace("default") / "f.txt"

    def _script(self, request: Request) -> Message:
        results = [
            p
            for shown in request.messages
            for p in shown.message.parts
            if isinstance(p, ToolResult)
        ]
        self.told = [part.text for part in results]
        if len(self.told) == len(self.calls):
            return say("done")
        name, arguments = self.calls[len(self.told)]
        return say(
            "", ToolCall(f"c{len(self.told)}", name, msgspec.Raw(msgspec.json.encode(arguments)))
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[App]:
        clock = SetClock(1_700_000_000.0)
        parts = Parts(
            lambda name: self.model,
            channels=(self.channel,),
            authorize=lambda inbound: ANN,
            clock=clock,
        )
        async with open_app(self.settings, parts) as app, anyio.create_task_group() as tasks:
            tasks.start_soon(app.run)
            with anyio.fail_after(30):
                yield app
            tasks.cancel_scope.cancel()

    def said(self) -> list[str]:
        parts = [
            [part.text for part in sent.parts if isinstance(part, Text)]
            for sent, _ in self.channel.sent
        ]
        return ["".join(each) for each in parts]

    def offered(self) -> list[set[str]]:
        return [{tool.name for tool in request.tools} for request in self.model.requests]


async def until(app: App, found: Callable[[list[object]], bool]) -> list[object]:
    while True:
        events: list[object] = [recorded.event for recorded in await app.store.events(SESSION)]
        if found(events):
            return events
        await anyio.sleep(0.01)


def asked(events: list[object]) -> list[ApprovalAsked]:
    return [event for event in events if isinstance(event, ApprovalAsked)]


def ended(events: list[object]) -> bool:
    return any(isinstance(event, TurnEnded) for event in events)


@pytest.mark.parametrize("restart", [False, True])
async def test_nothing_is_done_until_the_plan_is_approved(tmp_path: Path, restart: bool) -> None:
    planner = Planner(tmp_path, ("enter_plan_mode", {}), WRITE, SHOW, WRITE)
    async with planner.running() as app:
        planner.channel.write("go")
        (ask,) = asked(await until(app, lambda events: bool(asked(events))))
        if not restart:
            planner.channel.write("yes", external_id="yes")
            await until(app, ended)
    assert ask.question == f"exit_plan_mode \n{PLAN}" and "this is the plan" in ask.reason
    assert planner.file.exists() is not restart
    if restart:
        async with planner.running() as app:
            planner.channel.write("yes", external_id="yes")
            await until(app, ended)
    entered, refused, approved, wrote = planner.told
    assert (
        entered.startswith("Plan mode is on")
        and "plan mode is on, and write_file does more" in refused
    )
    assert approved == "The plan is approved. Carry it out." and wrote.startswith(
        "ok, created f.txt"
    )
    assert planner.file.read_text() == "x"
    before = planner.offered()[0]
    during = planner.offered()[1]
    after = planner.offered()[-1]
    assert "write_file" in before and before == after
    assert (
        "write_file" not in during
        and "shell" not in during
        and {"read_file", "exit_plan_mode"} <= during
    )
    prompts = ["\n".join(request.system) for request in planner.model.requests]
    assert ["# Plan mode" in prompt for prompt in prompts] == [False, True, True, False, False]


async def test_after_a_no_it_goes_on_planning(tmp_path: Path) -> None:
    planner = Planner(tmp_path, ("enter_plan_mode", {}), SHOW, WRITE)
    async with planner.running() as app:
        planner.channel.write("go")
        await until(app, lambda events: bool(asked(events)))
        planner.channel.write("no", external_id="no")
        events = await until(app, ended)
    assert planner.told[1] == "not permitted: ann said no" and "plan mode is on" in planner.told[2]
    assert not planner.file.exists()
    assert [event.options.plan_mode for event in events if isinstance(event, OptionsSet)] == [True]


async def test_a_person_switches_it_on_and_off(tmp_path: Path) -> None:
    planner = Planner(tmp_path, WRITE, ("exit_plan_mode", {"plan": " "}))
    async with planner.running() as app:
        planner.channel.write("/plan on", external_id="on")
        planner.channel.write("go", external_id="go")
        await until(app, lambda events: bool(asked(events)))
        planner.channel.write("yes", external_id="yes")
        await until(app, ended)
        assert "plan mode is on" in planner.told[0] and "the plan is empty" in planner.told[1]
        planner.channel.write("/plan off", external_id="off")
        while "I continue without a plan." not in planner.said():
            await anyio.sleep(0.01)
    assert planner.said()[0] == "From now on I only read, until you approve my plan."
