"""One session on a real store, driven step by step by a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from ..agent.loop import Driver
from ..agent.profile import Agent, Ports
from ..assembly.chat_commands import run_command
from ..config.statements import load_statements as all_statements
from ..gateway.door import is_interrupt
from ..models.base import Model
from ..models.meter import UsageMeter
from ..policy.rules import Case, Decision
from ..store.base import Accepted, Store
from ..store.blobs import Blobs
from ..store.sqlite import SqliteStore
from ..tools.base import Tool, ToolScope
from ..types.door import Progress
from ..types.events import AnyEvent, ModelFailed, Recorded, ToolFinished
from ..types.identity import Address, Answer, Body, Inbound, Principal, Said, When
from ..types.labels import Label
from ..types.limits import Limits
from ..types.messages import Message, Text, ToolResult
from ..workspace.scope import SandboxProvider, ToolScopes
from .clock import CountingIds, SetClock

ANN = Principal("ann", ("owner",))
BOB = Principal("bob")
PLACE = Address("chat", chat="1")
SESSION = "agent/chat:1"


def said(text: str, who: Principal = ANN) -> Said:
    return Said(
        Message("user", (Text(text, Label("owner" if who.roles else "member", source=who.id)),))
    )


def allow(case: Case) -> Decision:
    return Decision("allow", "")


def never_again(
    models: Sequence[str], failures: Sequence[ModelFailed], now: float
) -> tuple[str, float] | None:
    """The first try is made at once, and no second."""
    return None if failures else (models[0], now)


class Bench:
    """`model` answers, `tools` run, `clock` stands still. Whatever was published is in `shown`."""

    def __init__(
        self,
        path: Path,
        model: Model,
        tools: Sequence[Tool] = (),
        statements: Mapping[str, str] | None = None,
    ) -> None:
        self.path, self.clock, self.ids = path, SetClock(), CountingIds()
        self.store: Store = SqliteStore(path, {**all_statements(), **(statements or {})})
        self.shown: list[Recorded | Progress] = []
        self.meter = UsageMeter()
        self.agent = Agent(
            "agent",
            ("test/model",),
            lambda state: ("You help.", f"On {state.turn.address.channel}." if state.turn else ""),
            {tool.spec.name: tool for tool in tools},
            allow,
            self.reach,
            str(path.parent),
            commands=partial(run_command, lambda principal, session, options: ""),
        )
        self._reaches = ToolScopes(self.store, Blobs(path.parent / "blobs"), SandboxProvider())
        self._model = model
        self._count = 0
        self.driver = self.start()

    def opened(self, name: str) -> Model:
        """The model, whatever it is called."""
        return self._model

    async def reach(self) -> ToolScope:
        return await self._reaches.open_scope("agent", Path(self.agent.folder))

    def start(self) -> Driver:
        """A driver without any memory, as after a restart."""
        ports = Ports(
            self.store,
            self.opened,
            never_again,
            self.clock,
            self.ids,
            lambda session, item: self.shown.append(item),
            lambda address: True,
            meter=self.meter,
        )
        self.driver = Driver(SESSION, self.agent, ports)
        return self.driver

    def configure(
        self,
        decide: Callable[[Case], Decision] = allow,
        limits: Limits | None = None,
        workspace: Path | None = None,
    ) -> None:
        """Other settings, which hold from a restart that is made now."""
        self.agent = replace(
            self.agent,
            decide=decide,
            limits=limits or self.agent.limits,
            folder=str(workspace) if workspace else self.agent.folder,
        )
        self.start()

    async def accept(
        self, body: Body, who: Principal = ANN, when: When = "steer", store: Store | None = None
    ) -> Accepted:
        """Somebody sends this; the driver is not told."""
        self._count += 1
        inbound = Inbound(str(self._count), PLACE, who.id, self.clock.now(), body, when=when)
        return await (store or self.store).accept(inbound, who, SESSION)

    async def tell(self, body: Body | str, who: Principal = ANN, when: When = "steer") -> None:
        """Somebody sends this, and the driver learns of it as from dispatch."""
        given = said(body, who) if isinstance(body, str) else body
        await self.accept(given, who, when)
        self.driver.has_news = True
        if is_interrupt(given, when):
            self.driver.interrupt()

    async def say(
        self, body: Body | str, who: Principal = ANN, when: When = "steer"
    ) -> float | None:
        """Somebody sends this, and it is driven to its end. Returns when the session wants to be
        woken."""
        await self.tell(body, who, when)
        return await self.driver.drive()

    async def answer(self, choice: str, who: Principal = ANN) -> float | None:
        """Press the button of the last question."""
        return await self.say(Answer(f"ask_{self.ids._made['ask']}", choice), who)

    async def events(self) -> list[AnyEvent]:
        return [recorded.event for recorded in await self.store.events(SESSION)]

    async def results(self) -> list[ToolResult]:
        return [event.result for event in await self.events() if isinstance(event, ToolFinished)]

    async def sent(self) -> list[str]:
        """What the outbox owes, as text."""
        rows = await self.store.outbox_due(1e12, 1000)
        return [
            "".join(part.text for part in row.outgoing.parts if isinstance(part, Text))
            for row in rows
        ]

    async def close(self) -> None:
        self._reaches.close()
        await self.store.close()
