"""Conversations in which the tools of memory are called as the agent calls them, without a
model."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from deskhand.agent.fold import fold
from deskhand.agent.state import State
from deskhand.config.clock import RandomIds
from deskhand.learning.recall import make_viewer
from deskhand.memory.facts import Keeping, Viewer
from deskhand.memory.recall import Memory
from deskhand.memory.rendering import make_recalled, render_pinned
from deskhand.memory.tools import memory_tools
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.clock import SetClock
from deskhand.tools.base import Context, Done
from deskhand.types.errors import ToolError
from deskhand.types.events import MessageReceived, Recorded
from deskhand.types.identity import Address, Principal
from deskhand.types.labels import OWNER, Label
from deskhand.types.messages import Message, Text

T0 = 1_800_000_000.0


class House:
    """One memory, and who talks to it."""

    def __init__(self, store: SqliteStore, most: int = 10_000) -> None:
        self.store, self.clock = store, SetClock(T0)
        self.memory = Memory(store, self.clock)
        tools = memory_tools(
            self.memory,
            keeping=lambda: Keeping(most),
            redact=lambda text: text.replace("sk-123", "[hidden]"),
        )
        self.tools = {tool.spec.name: tool for tool in tools}
        self.calls = 0


class Talk:
    """A conversation of these people with an agent: the last of them speaks."""

    def __init__(
        self, house: House, *people: str, agent: str = "default", group: bool = False
    ) -> None:
        self.house = house
        self.agent = agent
        self.address = Address("chat", chat="1", group=group)
        self.label = OWNER
        self.approved = False
        self.state = State(f"{agent}/chat:{'+'.join(people)}{'g' * group}")
        for n, person in enumerate(people, 1):
            self.principal = Principal(person, ("owner",) if person == "ann" else ("user",))
            said = MessageReceived(
                n, self.principal, self.address, Message("user", (Text("hello", self.label),))
            )
            fold(self.state, [Recorded(n, self.state.session, n, T0, said)])

    @property
    def viewer(self) -> Viewer:
        return make_viewer(self.agent, self.state)

    async def call(self, name: str, **arguments: Any) -> Done:
        self.house.calls += 1
        house = self.house
        reach = msgspec.convert({}, Nothing)
        context = Context(
            session=self.state.session,
            principal=self.principal,
            address=self.address,
            agent=self.agent,
            reach=reach,  # type: ignore[arg-type]  # these tools reach nothing
            clock=house.clock,
            ids=RandomIds(),
            key=f"{self.state.session}#{house.calls}.c",
            label=self.label,
            audience=self.state.audience,
            approver=self.principal if self.approved else None,
            person=self.state.person,
        )
        outcome = await house.tools[name].run(msgspec.Raw(json.dumps(arguments).encode()), context)
        assert isinstance(outcome, Done)
        await house.store.change(outcome.changes)
        return outcome

    async def __call__(self, name: str, **arguments: Any) -> str:
        try:
            return "".join(
                part.text
                for part in (await self.call(name, **arguments)).parts
                if isinstance(part, Text)
            )
        except ToolError as error:
            return f"[error: {error}]"

    async def recall(self, said: str, top_k: int = 5) -> tuple[tuple[int, ...], str, Label | None]:
        """What is shown beside a message here: ids, text and label."""
        found = await self.house.memory.search(said, self.viewer, top_k)
        told = make_recalled([each.fact for each in found])
        return (told.facts, told.part.text, told.part.label) if told else ((), "", None)

    def pinned(self) -> str:
        """What is always told here."""
        viewer = self.viewer
        return render_pinned(
            self.house.memory.pinned(
                Viewer(viewer.person, self.agent, viewer.private, viewer.audience)
            )
        )


class Nothing(msgspec.Struct):
    """Stands where a tool would reach for files."""
