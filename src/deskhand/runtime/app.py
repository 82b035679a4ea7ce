"""Puts the rooms together: from settings to a Door that answers."""

from __future__ import annotations

import logging
import os
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import cast

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskGroup

from ..agent.loop import Driver
from ..agent.profile import Agent, Ports
from ..channels.base import Channel, Closing, Instructing, Reporting
from ..models.base import Model
from ..models.pictures import Pictures
from ..sandbox import kernel
from ..sandbox.probes import Proven, open_sandbox
from ..store.base import Store
from ..store.blobs import Blobs
from ..store.sqlite import SqliteStore
from ..tools.base import Tools
from ..types.clock import Clock, Ids
from ..types.door import Progress
from ..types.errors import ConfigError, DeskhandError, StoreUnavailable, ToolError
from ..types.events import Recorded
from ..types.health import Health, overall
from ..types.identity import Address, Inbound, Principal
from ..types.messages import Message
from .agents import House, make_agent
from .anchor import EVERY_S, Heads, note_anchors
from .children import Child, keep_running
from .clock import RandomIds, SystemClock
from .config import Settings, read_settings
from .decided import Decided
from .dispatch import Dispatch, Takes
from .door import Access, LocalDoor, cuts
from .drafts import Drafts
from .feed import Feed
from .health import Checkup, Problem, configuration_fact, driver_fact, note_models, sandbox_fact
from .lock import Holder, held, holder_of
from .logs import redactor, secrets_of
from .outbox import Outbox, as_it_stands
from .reach import Reaches, Room
from .received import with_files
from .retries import Retries
from .signs import Signs
from .statements import statements
from .strangers import Strangers
from .toolbox import READ_FROM_LOG, plugins_of
from .usage import UsageShown
from .vitals import Vitals

log = logging.getLogger(__name__)

POLL_S = 0.05
LOOK_S = 0.5
"""How soon a change of the configuration is seen."""
SWEEP_S = 3600.0
OWNER = Principal("owner", ("owner",))
PR_SET_DUMPABLE = 4


class Parts(msgspec.Struct, frozen=True):
    """What a test or another program may replace. `model` opens `provider/name`; `store` opens the database at a path,
    with the statements of the rooms. Without `tools` each agent has those that its settings allow. `sandbox` opens the
    room in which commands run; raises SandboxUnavailable. `serve` is the page, for ever: it runs beside whoever drives,
    calls `app.vitals.ready("web", …)` when it can be reached and is started again when it fails."""

    model: Callable[[str], Model]
    tools: Tools | None = None
    statements: Mapping[str, str] = {}
    channels: Sequence[Channel] = ()
    authorise: Callable[[Inbound], Principal | None] = lambda inbound: (
        OWNER if inbound.address.channel == "terminal" else None
    )
    store: Callable[[Path, Mapping[str, str]], Store] = SqliteStore
    clock: Clock = SystemClock()
    ids: Ids = RandomIds()
    sandbox: Callable[[], Awaitable[Proven]] = open_sandbox
    serve: Callable[[App], Awaitable[None]] | None = None


class App:
    """One running Deskhand. Use `open_app`."""

    def __init__(self, settings: Settings, parts: Parts) -> None:
        self.settings, self.parts = settings, parts
        home = settings.home
        home.make(home.state)
        self.store = parts.store(home.database, {**statements(), **parts.statements})
        self.blobs = Blobs(home.blobs)
        self.vitals = Vitals(parts.clock, redactor(secrets_of(settings.environment)), home.health)
        self.address = ""
        self._began = parts.clock.now()
        self._problem: Problem | None = None
        self._checkup = Checkup(self.store, home, self.vitals, parts.clock)
        self.room = Room(parts.sandbox, parts.clock.now)
        self.reaches = Reaches(self.store, self.blobs, self.room)
        self.feed = Feed()
        render = UsageShown(self.store) if settings.config.show_usage else as_it_stands
        channels = {channel.name: channel for channel in parts.channels}
        self.dispatch = Dispatch(self.store, self._driver, parts.clock, self._troubled)
        self.drafts = Drafts(self.store, channels, parts.clock, self._place)
        self.decided = Decided(self.store, channels)
        self.signs = Signs(channels, self.dispatch, parts.clock)
        self.outbox = Outbox(self.store, channels, parts.clock, self.drafts, render)
        access = Access(parts.authorise, lambda inbound: settings.agents[0], self._unpack)
        self.door = LocalDoor(self.store, self.dispatch, self.feed, access, parts.clock, parts.ids)
        self.strangers = Strangers(parts.clock, announce=settings.config.reject_response == "announce")
        self.plugins = plugins_of(settings)
        self._agents = self._made()
        retries = Retries(random.random)
        pictures = Pictures(self.blobs.get, self.blobs.path)
        self._ports = Ports(
            self.store, parts.model, retries.next, parts.clock, parts.ids, self._publish, _posts, pictures.get
        )

    def _made(self) -> dict[str, Agent]:
        """The agents of the configuration."""
        told = {each.name: each.instructions for each in self.parts.channels if isinstance(each, Instructing)}
        house = House(self.reaches, self.plugins, self.parts.clock, self.parts.tools, told)
        return {name: make_agent(self.settings, name, house) for name in self.settings.agents}

    async def _follow_plugins(self) -> None:
        """Take up which plugins the configuration names while we run."""
        file = self.settings.file
        seen = _stamp(file)
        while True:
            await anyio.sleep(LOOK_S)
            if seen == (seen := _stamp(file)):
                continue
            try:
                names = read_settings(file, self.settings.environment).config.plugins
            except (ConfigError, OSError) as error:
                log.warning("the plugins stay as they are: %s", error)
                continue
            if names != self.settings.config.plugins or self.plugins.failed:
                config = msgspec.structs.replace(self.settings.config, plugins=names)
                self.settings = msgspec.structs.replace(self.settings, config=config)
                self.plugins = plugins_of(self.settings, self.plugins)
                self._agents = self._made()
                self.dispatch.renew()
                log.info("the plugins are now: %s", ", ".join(plugin.name for plugin in self.plugins.loaded) or "none")

    def agent(self, name: str) -> Agent:
        """The agent as it is driven now. Raises ConfigError for an unknown name."""
        self.settings.agent(name)
        return self._agents[name]

    async def reload(self) -> None:
        """Take up what the configuration and `.env` say now. Raises ConfigError, and then all stays as it is."""
        self.settings = await anyio.to_thread.run_sync(read_settings, self.settings.file)
        self._agents = self._made()
        self.dispatch.renew()

    def _agent_of(self, session: str) -> Agent:
        return self._agents.get(session.partition("/")[0]) or self._agents[self.settings.agents[0]]

    def _driver(self, session: str) -> Driver:
        return Driver(session, self._agent_of(session), self._ports)

    async def _unpack(self, session: str, message: Message) -> Message:
        try:
            files = (await self._agent_of(session).reach()).files
        except ToolError as error:
            log.warning("the files of a message were not opened: %s", error)
            return message
        return await with_files(message, self.blobs.get, files)

    def _publish(self, session: str, item: Recorded | Progress) -> None:
        self.feed.publish(session, item)
        if isinstance(item, Recorded):
            if self.parts.channels:
                self.outbox.poke()
                self.decided.see(item)
            note_models(self.vitals, item.event)
        if self.drafts.channels:
            self.drafts.see(session, item)

    def _place(self, session: str) -> tuple[Address, str] | None:
        turn = self.dispatch.turn(session)
        return (turn.address, turn.reply_to) if turn is not None else None

    def _troubled(self, session: str, error: DeskhandError, for_good: bool) -> None:
        self.feed.trouble(session, error, for_good)
        if isinstance(error, StoreUnavailable):
            self.vitals.failed("store", error)

    async def run(self, started: Callable[[], None] = lambda: None, takes: Takes = lambda session: True) -> None:
        """Drive, send and receive for ever. Waits until no other process does, looking every second; what people see
        is up meanwhile. `takes` as in `Dispatch.run`. What fails is started again: only a damaged database, and what
        cannot be handled, ends it."""
        self.vitals.recall()
        async with anyio.create_task_group() as beside:
            self._start(beside, self._beside())
            holder = Holder(os.getpid(), self.parts.clock.now())
            async with held(self.settings.home.lock, holder), anyio.create_task_group() as tasks:
                self._start(tasks, self._driving(started, takes))

    def _start(self, tasks: TaskGroup, children: Iterable[Child]) -> None:
        for child in children:
            tasks.start_soon(keep_running, child, self.vitals)

    def _beside(self) -> Iterator[Child]:
        """What runs whoever drives."""
        serve = self.parts.serve
        if serve is not None:
            yield Child("web", lambda: serve(self), awaited=True)

    def _driving(self, started: Callable[[], None], takes: Takes) -> Iterator[Child]:
        """What only the process that drives may do."""

        def begun() -> None:
            self.vitals.ready("driver")
            started()

        yield Child("driver", lambda: self.dispatch.run(begun, takes), awaited=True, vital=True)
        yield Child("watch", self._watch, vital=True)
        yield Child("sweep", self._sweep)
        yield Child("anchor", self._anchor)
        yield Child("plugins", self._follow_plugins)
        yield Child("health", self.vitals.keep)
        if self.parts.channels:
            yield Child("outbox", self.outbox.run)
        if self.drafts.channels:
            yield Child("drafts", self.drafts.run)
            yield Child("asks", self.decided.run)
        if self.signs.channels:
            yield Child("signs", self.signs.run)
        for channel in self.parts.channels:
            yield Child(f"channel {channel.name}", partial(self._receive, channel))

    async def health(self) -> Health:
        """How everything is doing now. Whether the disk takes what is written is tried out, every 5 seconds at most."""
        for channel in self.parts.channels:
            if isinstance(channel, Reporting) and (at := channel.health()) is not None:
                self.vitals.answered(f"channel {channel.name}", at)
        found = [await self._checkup.store(), await self._checkup.outbox(), sandbox_fact(self.room)]
        facts = {fact.name: fact for fact in self.vitals.facts()}
        if "driver" not in facts:
            found.append(driver_fact(holder_of(self.settings.home.lock)))
        found.append(configuration_fact(self.settings, self._problem, ()))
        facts |= {fact.name: fact for fact in found}
        now, known = self.parts.clock.now(), tuple(facts.values())
        return Health(overall(known), now, version("deskhand"), os.getpid(), self._began, self.address, known)

    async def _anchor(self) -> None:
        """Note the heads of the chains now and then, and at a clean end."""
        try:
            while True:
                await anyio.sleep(EVERY_S)
                self._note_anchors(await self.store.heads())
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                self._note_anchors(await self.store.heads())
            raise

    def _note_anchors(self, heads: Heads) -> None:
        try:
            note_anchors(self.settings.home.anchors, heads, self.parts.clock.now())
        except OSError as error:
            log.warning("the anchor file is not written: %s", error)

    async def _watch(self) -> None:
        """Wake sessions for what other processes accepted."""
        seen, version = self.store.last_inbox_id(), -1
        while True:
            await anyio.sleep(POLL_S)
            if version == (version := self.store.version()):
                continue
            for session, row in await self.store.accepted_since(seen):
                seen = max(seen, row.inbox_id)
                if not self.door.took(row.inbox_id) and self.dispatch.drives(session):
                    self.dispatch.wake(session, cut=cuts(row.inbound))

    async def _sweep(self) -> None:
        """Now and then remove the files of blobs that nothing names any more."""
        while True:
            await anyio.sleep(SWEEP_S)
            await anyio.to_thread.run_sync(self.blobs.collect, self.store.blob_used, self.parts.clock.now())

    async def _receive(self, channel: Channel) -> None:
        """Take in what people write on a channel; what could not be stored is not confirmed."""
        async with aclosing(cast(AsyncGenerator[Inbound], channel.receive())) as inbounds:
            async for inbound in inbounds:
                receipt = await self.door.submit(inbound)
                if receipt.status == "refused" and self.parts.authorise(inbound) is None:
                    await self.strangers.refuse(inbound, channel)
                self.vitals.succeeded(f"channel {channel.name}")

    async def close(self) -> None:
        for channel in self.parts.channels:
            if isinstance(channel, Closing):
                await channel.close()
        self.reaches.close()
        await self.store.close()


def _stamp(file: Path) -> tuple[int, int, int] | None:
    """Another one after every change of the file."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


def _posts(address: Address) -> bool:
    return address.channel not in READ_FROM_LOG


@asynccontextmanager
async def open_app(settings: Settings, parts: Parts) -> AsyncIterator[App]:
    """An App with its store open; `app.run()` makes it drive. Raises StoreError, ConfigError.

    The process is made non-dumpable: another process of the same user cannot read its memory, where keys are.
    """
    kernel.prctl(PR_SET_DUMPABLE, 0)
    app = App(settings, parts)
    try:
        yield app
    finally:
        await app.close()
