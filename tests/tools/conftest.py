"""A workspace with everything real: files, store, blobs, reach, and the sandbox when it is
needed."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from deskhand.config.clock import RandomIds, SystemClock
from deskhand.config.statements import load_statements
from deskhand.models.side_completion import Aside
from deskhand.store.blobs import Blobs
from deskhand.store.sqlite import SqliteStore
from deskhand.tools.base import Context, Done, Outcome, Processes, ScopeHost, Tool
from deskhand.tools.command_network import OpenNetwork
from deskhand.types.commit import Change
from deskhand.types.identity import Address, Principal, list_reader_names
from deskhand.types.labels import OWNER
from deskhand.types.messages import Text
from deskhand.workspace.scope import SandboxProvider, ToolScopes

ANN = Principal("ann", ("owner",))


class OtherHost:
    """A `ScopeHost` like `host`, but for the way to the network or what runs beside."""

    def __init__(
        self,
        host: ScopeHost,
        *,
        network: OpenNetwork | None = None,
        processes: Processes | None = None,
    ) -> None:
        self.put_blob = host.put_blob
        self.get_blob = host.get_blob
        self.open_sandbox = host.open_sandbox
        self.open_network = network or host.open_network
        self._host = host
        self._processes = processes

    def processes(self) -> Processes:
        return self._processes or self._host.processes()


class EmittingContext(Context, frozen=True, kw_only=True):
    """Keeps what a tool shows while it runs; `reply` stands for the model that it may ask."""

    emitted: deque[str]
    reply: Callable[[Aside], Awaitable[str]] | None = None

    def emit(self, text: str) -> None:
        self.emitted.append(text)

    async def ask(self, aside: Aside) -> str:
        return await (super().ask(aside) if self.reply is None else self.reply(aside))


class Hands:
    """Calls tools as the agent does: with arguments as JSON, and changes committed afterwards."""

    def __init__(self, home: Path, room: SandboxProvider) -> None:
        self.folder = (home / "workspace").resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.store = SqliteStore(home / "deskhand.db", load_statements())
        self.reaches = ToolScopes(self.store, Blobs(home / "blobs"), room)
        self.address = Address("memory", chat="1")
        self.session = "default/memory:1"
        self.label, self.audience = OWNER, list_reader_names(ANN)
        self.emitted: deque[str] = deque(maxlen=100)
        self._calls = 0

    async def context(self) -> Context:
        self._calls += 1
        reach = await self.reaches.open_scope("default", self.folder)
        key = f"{self.session}#{self._calls}.c"
        ids = RandomIds()
        clock = SystemClock()
        return EmittingContext(
            session=self.session,
            principal=ANN,
            address=self.address,
            agent="default",
            reach=reach,
            clock=clock,
            ids=ids,
            key=key,
            label=self.label,
            audience=self.audience,
            emitted=self.emitted,
        )

    async def outcome(self, tool: Tool, arguments: dict[str, Any] | bytes) -> Outcome:
        raw = arguments if isinstance(arguments, bytes) else msgspec.json.encode(arguments)
        return await tool.run(msgspec.Raw(raw), await self.context())

    async def done(self, tool: Tool, /, **arguments: Any) -> Done:
        outcome = await self.outcome(tool, arguments)
        assert isinstance(outcome, Done)
        await self.store.change(outcome.changes)
        return outcome

    async def __call__(self, tool: Tool, /, **arguments: Any) -> str:
        return text_of(await self.done(tool, **arguments))

    async def allow(self, folder: Path, *, write: bool = False) -> None:
        row = ("default", str(folder.resolve()), int(write), 0.0, "ann")
        await self.store.change((Change("path_grant_set", row),))

    async def revoke(self, folder: Path) -> None:
        await self.store.change((Change("path_grant_drop", ("default", str(folder.resolve()))),))

    def write(self, name: str, content: bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path


def text_of(done: Done) -> str:
    """The text of a result, as the log takes it."""
    msgspec.json.encode(done)  # whatever a file is called, the log can hold it
    return "".join(part.text for part in done.parts if isinstance(part, Text))


@pytest.fixture(scope="session")
def room() -> SandboxProvider:
    """One proof of the sandbox is enough for all."""
    return SandboxProvider()


@pytest.fixture
async def hands(tmp_path: Path, room: SandboxProvider) -> AsyncIterator[Hands]:
    made = Hands(tmp_path / "home", room)
    yield made
    made.reaches.close()
    await made.store.close()
