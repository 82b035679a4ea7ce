"""One session on a real store, driven step by step by a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from ..agent.agent import Agent
from ..agent.loop import drive
from ..agent.protocols import Ears, NoEars, Runtime
from ..agent.session import Session
from ..agent.state import State
from ..assembly.chat_commands import ChatCommands
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
from ..types.events import AnyEvent, ModelFailed, Recalled, Recorded, ToolFinished
from ..types.identity import Address, Answer, Body, Inbound, Principal, Said, When
from ..types.labels import Label
from ..types.limits import Limits
from ..types.messages import Message, Text, ToolResult
from ..types.steps import Condensed
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


class RuleJudge:
    """An `agent.protocols.Judge` that asks a function."""

    def __init__(self, decide: Callable[[Case], Decision]) -> None:
        self._decide = decide

    def judge(self, case: Case) -> Decision:
        return self._decide(case)


class ShortContext:
    """An `agent.protocols.ContextSource` with two blocks, and without a memory."""

    def blocks(self, state: State) -> tuple[str, ...]:
        return "You help.", f"On {state.turn.address.channel}." if state.turn else ""

    async def recall(self, state: State) -> Recalled | None:
        return None

    async def summarize(self, state: State, messages: Sequence[Message], focus: str) -> Condensed:
        return Condensed()


class OneModel:
    """`agent.protocols.ModelSource` with one model, whatever it is called. The first try is made at
    once, and no second."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def open(self, name: str) -> Model:
        return self.model

    def next_try(
        self, chain: Sequence[str], failures: Sequence[ModelFailed], now: float
    ) -> tuple[str, float] | None:
        return None if failures else (chain[0], now)


class OneFolder:
    """An `agent.protocols.ScopeSource` of one folder."""

    def __init__(self, scopes: ToolScopes, folder: Path) -> None:
        self._scopes = scopes
        self._folder = folder

    async def open_scope(self) -> ToolScope:
        return await self._scopes.open_scope("agent", self._folder)


class ShownItems:
    """An `agent.protocols.Publisher` that keeps everything in a list."""

    def __init__(self, items: list[Recorded | Progress]) -> None:
        self._items = items

    def publish(self, session: str, item: Recorded | Progress) -> None:
        self._items.append(item)


class Bench:
    """`model` answers, `tools` run, `clock` stands still. Whatever was published is in `shown`."""

    def __init__(
        self,
        path: Path,
        model: Model,
        tools: Sequence[Tool] = (),
        statements: Mapping[str, str] | None = None,
    ) -> None:
        self.path = path
        self.clock = SetClock()
        self.ids = CountingIds()
        self.store: Store = SqliteStore(path, {**all_statements(), **(statements or {})})
        self.shown: list[Recorded | Progress] = []
        self.meter = UsageMeter()
        self.ears: Ears = NoEars()
        self._scopes = ToolScopes(self.store, Blobs(path.parent / "blobs"), SandboxProvider())
        self._models = OneModel(model)
        self._count = 0
        self.agent = Agent(
            name="agent",
            models=("test/model",),
            tools={tool.spec.name: tool for tool in tools},
            context=ShortContext(),
            judge=RuleJudge(allow),
            workspace=OneFolder(self._scopes, path.parent),
            commands=ChatCommands(lambda principal, session, options: ""),
            folder=str(path.parent),
        )
        self.session = self.start()

    def start(self) -> Session:
        """The session without any memory, as after a restart."""
        runtime = Runtime(
            store=self.store,
            models=self._models,
            publisher=ShownItems(self.shown),
            clock=self.clock,
            ids=self.ids,
            meter=self.meter,
            ears=self.ears,
        )
        self.session = Session(SESSION, self.agent, runtime)
        return self.session

    def configure(
        self,
        decide: Callable[[Case], Decision] = allow,
        limits: Limits | None = None,
        workspace: Path | None = None,
    ) -> None:
        """Other settings, which hold from a restart that is made now."""
        folder = workspace or Path(self.agent.folder)
        self.agent = replace(
            self.agent,
            judge=RuleJudge(decide),
            limits=limits or self.agent.limits,
            workspace=OneFolder(self._scopes, folder),
            folder=str(folder),
        )
        self.start()

    def answer_with(self, model: Model) -> None:
        """Another model from now on."""
        self._models.model = model

    async def drive(self) -> float | None:
        """Do everything that is owed. Returns when the session wants to be woken."""
        return await drive(self.session)

    async def accept(
        self, body: Body, who: Principal = ANN, when: When = "steer", store: Store | None = None
    ) -> Accepted:
        """Somebody sends this; the session is not told."""
        self._count += 1
        inbound = Inbound(str(self._count), PLACE, who.id, self.clock.now(), body, when=when)
        return await (store or self.store).accept(inbound, who, SESSION)

    async def tell(self, body: Body | str, who: Principal = ANN, when: When = "steer") -> None:
        """Somebody sends this, and the session learns of it as from dispatch."""
        given = said(body, who) if isinstance(body, str) else body
        await self.accept(given, who, when)
        self.session.inbox.has_news = True
        if is_interrupt(given, when, self.session.state.turn):
            self.session.interrupt_step()

    async def say(
        self, body: Body | str, who: Principal = ANN, when: When = "steer"
    ) -> float | None:
        """Somebody sends this, and it is driven to its end. Returns when the session wants to be
        woken."""
        await self.tell(body, who, when)
        return await self.drive()

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
        self._scopes.close()
        await self.store.close()
