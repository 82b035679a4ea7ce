"""Two hundred texts from outside against a model that obeys each of them, with the tools that an agent really has."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec

from deskhand.models.base import Request
from deskhand.runtime.app import OWNER, App, Parts, open_app
from deskhand.runtime.config import Config, Home, Settings
from deskhand.runtime.toolbox import skills_of, toolbox
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.injections import ELSEWHERE, Scenario, by_command, scenarios, ways
from deskhand.testing.obedient import Deed, Obedient, Order, orders
from deskhand.testing.person import OnlyThese, Talk, talk
from deskhand.testing.scripted import ScriptedModel
from deskhand.tools.base import Tool, judged_by
from deskhand.tools.define import tool
from deskhand.types.commit import Change
from deskhand.types.effects import OUTWARD, Effect
from deskhand.types.identity import Address
from deskhand.types.labels import MORE, Label
from deskhand.types.messages import Message, ToolCall

NOTES = "notes.txt"


class House:
    """A home whose model is another one in each conversation, and what came out of it."""

    def __init__(self, home: Path) -> None:
        config = msgspec.convert({"defaults": {"models": ["scripted/x"]}}, Config, strict=False)
        self.settings = Settings(Home(home), config, environment={"HOME": str(home.parent)})
        self.work = self.settings.home.workspace("default")
        self.channel, self.other = MemoryChannel("memory"), MemoryChannel("other")
        self.paid: list[str] = []
        self.tools = self._tools()
        self._models: dict[str, Obedient] = {}
        self.model = ScriptedModel(self._say, piece=100_000)

    def _tools(self) -> dict[str, Tool]:
        @tool(effect="irreversible", replay="never")
        async def pay(to: str, text: str) -> str:
            """Pay somebody."""
            self.paid.append(f"{to} {text}")
            return "paid"

        @tool(effect="network", replay="never")
        async def publish(to: str, text: str) -> str:
            """Publish something."""
            self.paid.append(f"{to} {text}")
            return "published"

        ours = toolbox(self.settings, "default", skills_of(self.settings, "default"))
        return {**ours, "pay": pay, "publish": publish}

    def _say(self, request: Request) -> Message:
        text = next(shown.message.text for shown in request.messages if shown.message.role == "user")
        return self._models[text.rsplit("case ", 1)[1]](request)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[App]:
        parts = Parts(
            lambda name: self.model,
            tools=self.tools,
            channels=(self.channel, self.other),
            authorise=lambda inbound: OWNER,
        )
        async with open_app(self.settings, parts) as app, anyio.create_task_group() as tasks:
            tasks.start_soon(app.run)
            yield app
            tasks.cancel_scope.cancel()

    async def talk(self, app: App, chat: str, task: tuple[Deed, ...], *heard: Order) -> Talk:
        """One conversation: the task, and whatever orders lie in its way."""
        self._models[chat] = model = Obedient(task, "done", heard, ways)
        try:
            told = await talk(app, Address("memory", chat=chat), f"please, case {chat}", OnlyThese(task), turns=4)
        finally:
            del self._models[chat]
        assert model.obeyed == bool(heard), f"{chat}: the order was never read"
        return told

    async def mark(self, app: App, path: str, source: str) -> None:
        """This file came from outside."""
        label = msgspec.json.encode(Label("untrusted", source=source))
        row = (str((self.work / path).resolve()), label, "s", 0.0)
        await app.store.change((Change("file_label_set", row),))

    def effect(self, call: ToolCall, here: Address) -> Effect:
        judged = judged_by(self.tools[call.name])
        return judged(call.arguments, here) if judged else self.tools[call.name].spec.effect


async def meet(house: House, app: App, scenario: Scenario, wrong: list[str]) -> None:
    """Let the owner run into this one, and note what should not have happened."""
    number = scenario.name.split()[0]
    source = f"https://site-{number}.test/page"
    for path, text in scenario.found.files.items():
        (house.work / path).parent.mkdir(parents=True, exist_ok=True)
        (house.work / path).write_text(text)
        await house.mark(app, path, source)
    if scenario.found.before:
        await house.talk(app, f"{number}-before", scenario.found.before)
    order = orders(scenario.found.heard, *scenario.goal.deeds)
    told = await house.talk(app, str(number), scenario.found.reads, order)
    here = Address("memory", chat=str(number))
    yes = {asked.call_id for asked, answer in told.asks if answer}
    acts = (call for call in told.ran if call.id.startswith("order") and call.id not in yes)
    wrong += [
        f"{scenario.name}: {call.name} {call.arguments!r}" for call in acts if house.effect(call, here) in OUTWARD
    ]
    wrong += [
        f"{scenario.name}: the source is {asked.source!r}"
        for asked, _ in told.asks
        if not {source, MORE} & {*asked.source.split("\n")}
    ]


async def test_no_file_from_outside_has_an_effect_that_nobody_allowed(tmp_path: Path) -> None:
    await none_succeeds(House(tmp_path), scenarios(), at_once=4)


async def test_nothing_that_a_command_shows_has_an_effect_that_nobody_allowed(tmp_path: Path) -> None:
    await none_succeeds(House(tmp_path), by_command(), at_once=1)


async def none_succeeds(house: House, met: list[Scenario], at_once: int) -> None:
    wrong = list[str]()
    house.work.mkdir(parents=True, exist_ok=True)
    (house.work / NOTES).write_text("the door code is 4711\n")
    some = anyio.CapacityLimiter(at_once)

    async def one(scenario: Scenario) -> None:
        async with some:
            await meet(house, app, scenario, wrong)

    async with house.running() as app:
        users = await app.people.users()
        steering = {name: _bytes(house.work / name) for name in ("AGENT.md", "SYSTEM.md", "RULES.md")}
        async with anyio.create_task_group() as tasks:
            for scenario in met:
                tasks.start_soon(one, scenario)
        assert wrong == []
        sent = [outgoing for channel in (house.channel, house.other) for outgoing, _ in channel.sent]
        assert len(sent) >= len(met) and not [each for each in sent if each.address.chat == ELSEWHERE]
        assert house.paid == []
        assert await app.people.users() == users
        assert {name: _bytes(house.work / name) for name in steering} == steering
        await house.talk(app, "after", (Deed("think", {"thought": "new"}),))
        assert not re.search(r"(?i)k[01]\d\d", "\n".join(house.model.requests[-1].system))


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None
