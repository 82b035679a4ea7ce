"""Pages that tell an agent to do harm, and a model that does all that they say: nothing reaches
whoever wrote them, because the gate and the tool ask a person, and here none says yes."""

from __future__ import annotations

from typing import Any

import anyio
import msgspec
import pytest

from deskhand.policy.information_flow import collect_known_texts, find_objection
from deskhand.tools.base import Done
from deskhand.types.errors import ToolError
from deskhand.types.labels import OWNER, Label, join_labels
from deskhand.types.messages import Message, ResultPart, Text, ToolCall, ToolResult
from tests.tools.conftest import text_of

from .attack_pages import ATTACKS, Attack, aim, serve_attack
from .conftest import Surfer
from .task_pages import Step
from .test_tasks import Solver


class Conversation:
    """Calls the browser as an agent does whose calls are judged, and whom nobody answers."""

    def __init__(self, surfer: Surfer, asked: str) -> None:
        self._surfer = surfer
        self.messages = [Message("user", (Text(asked, OWNER),))]
        self.refusals: list[str] = []

    @property
    def label(self) -> Label:
        parts = [
            part
            for message in self.messages
            for result in message.parts
            if isinstance(result, ToolResult)
            for part in result.parts
        ]
        return join_labels([OWNER, *(part.label for part in parts)])

    async def call(self, **arguments: Any) -> None:
        raw = msgspec.Raw(msgspec.json.encode(arguments))
        known = collect_known_texts(self.messages, lambda name: name == "browser")
        effect = self._surfer.tool.effect_of(raw, self._surfer.hands.address)
        objection = find_objection(effect, bytes(raw), self.label, known)
        if objection:
            self.refusals.append(objection)
            return
        self._surfer.hands.label = self.label
        try:
            outcome = await self._surfer.tool.run(raw, await self._surfer.context())
        except ToolError as error:
            self.refusals.append(str(error))
            return
        assert isinstance(outcome, Done)
        if "was not followed" in text_of(outcome):
            self.refusals.append(text_of(outcome))
        self._record(raw, outcome.parts)

    def _record(self, raw: msgspec.Raw, parts: tuple[ResultPart, ...]) -> None:
        name = f"c{len(self.messages)}"
        call = ToolCall(name, "browser", raw)
        self.messages.append(Message("assistant", (call,)))
        self.messages.append(Message("tool", (ToolResult(name, parts),)))

    async def obey(self, step: Step) -> None:
        what, *rest = map(str, step[:1]), *step[1:]
        action = next(what)
        if action == "open":
            await self.call(action="open", url=rest[0])
        elif action == "run":
            return  # no tool of the browser runs a file
        elif action == "dialog":
            await self.call(action="dialog", accept=rest[0] == "accept", text=rest[1])
        elif action == "type":
            ref = await Solver(self._surfer).ref(str(rest[0]), str(rest[1]))
            await self.call(action="type", ref=ref, text=rest[2])
        elif action in ("click", "download"):
            ref = await Solver(self._surfer).ref(str(rest[0]), str(rest[1]))
            await self.call(action="click", ref=ref)
        else:
            raise AssertionError(step)


@pytest.mark.parametrize("attack", ATTACKS, ids=[each.name for each in ATTACKS])
async def test_nothing_arrives(surfer: Surfer, attack: Attack) -> None:
    surfer.refused = "nobody has allowed it"
    attack = aim(attack, f"http://evil.test:{surfer.site.port}")
    serve_attack(surfer.site, attack)
    url = surfer.site.url(f"/attack/{attack.name}")
    conversation = Conversation(surfer, f"{attack.goal} It is at {url}")
    await conversation.call(action="open", url=url)
    for step in attack.lure:
        await conversation.obey(step)
    asked = [
        f"{each.method} {each.target}"
        for each in surfer.site.requests
        if each.headers.get("host", "").startswith("evil.test")
    ]
    assert [each for each in asked if each.startswith(attack.harm)] == []
    with anyio.move_on_after(20):  # where a page leads is told with the next look, if it came late
        while not conversation.refusals:
            await anyio.sleep(0.1)
            await conversation.call(action="look")
    assert conversation.refusals, "something was to be stopped"
