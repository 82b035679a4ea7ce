"""Puts the rooms together: from settings to a Door that answers."""

from __future__ import annotations

import fcntl
import logging
import os
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from zoneinfo import ZoneInfo

import anyio
import msgspec

from ..agent.loop import Driver
from ..agent.profile import Agent, Ports
from ..channels.base import Channel
from ..models.base import Model
from ..policy.rules import Case, Decision, decide
from ..store.base import Store
from ..store.blobs import Blobs
from ..store.sqlite import SqliteStore
from ..tools.base import Tools
from ..types.clock import Clock, Ids
from ..types.door import Progress
from ..types.errors import ChannelError, StoreUnavailable
from ..types.events import Recorded
from ..types.identity import Address, Inbound, Principal
from .clock import RandomIds, SystemClock
from .config import Settings
from .dispatch import Dispatch
from .door import Access, LocalDoor, cuts
from .feed import Feed
from .models import facts_of, is_small
from .outbox import Outbox
from .prompt import MEMORY_FILE, SYSTEM, WORKSPACE_FILES, Prompt
from .retries import Retries
from .small import asking_about_unnamed, with_listing

log = logging.getLogger(__name__)

POLL_S = 0.05
TRY_LOCK_S = 1.0
OWNER = Principal("owner", ("owner",))
READ_FROM_LOG = frozenset({"terminal", "web", "api", "door"})
"""Surfaces whose people read the log itself: nothing has to be sent to them."""


class Parts(msgspec.Struct, frozen=True):
    """What a test or another program may replace. `model` opens `provider/name`; `store` opens the database at a path,
    with the statements of the rooms."""

    model: Callable[[str], Model]
    tools: Tools
    statements: Mapping[str, str] = {}
    channels: Sequence[Channel] = ()
    authorise: Callable[[Inbound], Principal | None] = lambda inbound: (
        OWNER if inbound.address.channel == "terminal" else None
    )
    store: Callable[[Path, Mapping[str, str]], Store] = SqliteStore
    clock: Clock = SystemClock()
    ids: Ids = RandomIds()


class App:
    """One running Deskhand. Use `open_app`."""

    def __init__(self, settings: Settings, parts: Parts) -> None:
        self.settings, self.parts = settings, parts
        home = settings.home
        home.state.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.store = parts.store(home.database, parts.statements)
        self.blobs = Blobs(home.blobs)
        self.feed = Feed()
        self.outbox = Outbox(self.store, {channel.name: channel for channel in parts.channels}, parts.clock)
        self.dispatch = Dispatch(self.store, self._driver, parts.clock)
        access = Access(parts.authorise, lambda inbound: settings.agents[0])
        self.door = LocalDoor(self.store, self.dispatch, self.feed, access, parts.clock, parts.ids)
        self._agents = {name: self._agent(name) for name in settings.agents}
        retries = Retries(random.random)
        self._ports = Ports(
            self.store, parts.model, retries.next, parts.clock, parts.ids, self._publish, _posts, self.blobs.get
        )

    def _agent(self, name: str) -> Agent:
        config = self.settings.agent(name)
        workspace = Path(config.workspace) if config.workspace else self.settings.home.workspace(name)
        workspace.mkdir(parents=True, exist_ok=True)
        files = [(file, workspace / file) for file in WORKSPACE_FILES]
        rules = self.settings.config.policy
        prompt: Callable[[Address], tuple[str, ...]] = Prompt(SYSTEM, files, workspace / MEMORY_FILE)

        def decided(case: Case) -> Decision:
            return decide(rules, case)

        judge: Callable[[Case], Decision] = decided
        if any(is_small(self.settings, model) for model in config.models):
            prompt, judge = with_listing(prompt, workspace), asking_about_unnamed(judge, workspace)
        return Agent(
            name,
            config.models,
            prompt,
            self.parts.tools,
            judge,
            workspace,
            self.settings.limits(config, facts_of(self.settings, next(iter(config.models), "")).window),
            config.thinking or "off",
            config.temperature,
            ZoneInfo(self.settings.config.timezone),
        )

    def _driver(self, session: str) -> Driver:
        name = session.partition("/")[0]
        agent = self._agents.get(name) or self._agents[self.settings.agents[0]]
        return Driver(session, agent, self._ports)

    def _publish(self, session: str, item: Recorded | Progress) -> None:
        self.feed.publish(session, item)
        if isinstance(item, Recorded) and self.parts.channels:
            self.outbox.poke()

    async def run(self, started: Callable[[], None] = lambda: None) -> None:
        """Drive, send and receive for ever. Waits until no other process does, looking every second."""
        async with self._lock(), anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch)
            if self.parts.channels:
                tasks.start_soon(self.outbox.run)
            for channel in self.parts.channels:
                tasks.start_soon(self._receive, channel)
            await self.dispatch.run(started)

    @asynccontextmanager
    async def _lock(self) -> AsyncIterator[None]:
        """Hold the driver lock: at most one process drives."""
        fd = os.open(self.settings.home.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while True:
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    await anyio.sleep(TRY_LOCK_S)
            yield
        finally:
            os.close(fd)

    async def _watch(self) -> None:
        """Wake sessions for what other processes accepted."""
        seen, version = self.store.last_inbox_id(), -1
        while True:
            await anyio.sleep(POLL_S)
            if version == (version := self.store.version()):
                continue
            for session, row in await self.store.accepted_since(seen):
                seen = max(seen, row.inbox_id)
                if not self.door.took(row.inbox_id):
                    self.dispatch.wake(session, cut=cuts(row.inbound))

    async def _receive(self, channel: Channel) -> None:
        """Take in what people write on a channel, for ever; what could not be stored is not confirmed."""
        pause = 0.5
        while True:
            try:
                async for inbound in channel.receive():
                    await self.door.submit(inbound)
                    pause = 0.5
            except (ChannelError, StoreUnavailable) as error:
                log.warning("%s: %s", channel.name, error)
            except Exception:
                log.exception("%s broke while receiving", channel.name)
            await anyio.sleep(pause)
            pause = min(pause * 2, 30.0)

    async def close(self) -> None:
        await self.store.close()


def _posts(address: Address) -> bool:
    return address.channel not in READ_FROM_LOG


@asynccontextmanager
async def open_app(settings: Settings, parts: Parts) -> AsyncIterator[App]:
    """An App with its store open; `app.run()` makes it drive. Raises StoreError, ConfigError."""
    app = App(settings, parts)
    try:
        yield app
    finally:
        await app.close()
