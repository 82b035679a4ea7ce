"""Puts the rooms together: from settings to a Door that answers."""

from __future__ import annotations

import fcntl
import logging
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import anyio
import anyio.to_thread
import msgspec

from ..agent.loop import Driver
from ..agent.profile import Agent, Ports
from ..channels.base import Channel, Instructing
from ..models.base import Model
from ..models.pictures import Pictures
from ..policy.rules import Case, Decision, decide
from ..sandbox import kernel
from ..sandbox.probes import Proven, open_sandbox
from ..skills.skill import Skills, index
from ..store.base import Store
from ..store.blobs import Blobs
from ..store.sqlite import SqliteStore
from ..tools.base import Reach, Tools
from ..tools.paths import Allowed
from ..types.clock import Clock, Ids
from ..types.door import Progress
from ..types.errors import ChannelError, ConfigError, StoreUnavailable, ToolError
from ..types.events import Recorded
from ..types.identity import Address, Inbound, Principal
from ..types.messages import Message
from ..types.options import SessionOptions
from .anchor import EVERY_S, Heads, note_anchors
from .clock import RandomIds, SystemClock
from .commands import run, unusable
from .config import Settings, read_settings
from .dispatch import Dispatch, Takes
from .door import Access, LocalDoor, cuts
from .feed import Feed
from .models import facts_of, is_small
from .outbox import Outbox, as_it_stands
from .prompt import Prompt, Prompting, Sources, machine_of
from .reach import Reaches, Room, without_secrets, workspace_of
from .received import with_files
from .retries import Retries
from .small import asking_about_unnamed, with_listing
from .statements import statements
from .strangers import Strangers
from .templates import lay_out
from .toolbox import READ_FROM_LOG, asking_about_commands, plugins_of, rules_of, skill_folders, skills_of, toolbox
from .usage import UsageShown

log = logging.getLogger(__name__)

POLL_S = 0.05
TRY_LOCK_S = 1.0
LOOK_S = 0.5
"""How soon a change of the configuration is seen."""
SWEEP_S = 3600.0
OWNER = Principal("owner", ("owner",))
PR_SET_DUMPABLE = 4


class Parts(msgspec.Struct, frozen=True):
    """What a test or another program may replace. `model` opens `provider/name`; `store` opens the database at a path,
    with the statements of the rooms. Without `tools` each agent has those that its settings allow. `sandbox` opens the
    room in which commands run; raises SandboxUnavailable."""

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


class App:
    """One running Deskhand. Use `open_app`."""

    def __init__(self, settings: Settings, parts: Parts) -> None:
        self.settings, self.parts = settings, parts
        home = settings.home
        home.make(home.state)
        self.store = parts.store(home.database, {**statements(), **parts.statements})
        self.blobs = Blobs(home.blobs)
        self.reaches = Reaches(self.store, self.blobs, Room(parts.sandbox))
        self.feed = Feed()
        render = UsageShown(self.store) if settings.config.show_usage else as_it_stands
        self.outbox = Outbox(self.store, {channel.name: channel for channel in parts.channels}, parts.clock, render)
        self.dispatch = Dispatch(self.store, self._driver, parts.clock, self.feed.trouble)
        zone = ZoneInfo(settings.config.timezone)
        access = Access(parts.authorise, lambda inbound: settings.agents[0], self._unpack, self._check, zone)
        self.door = LocalDoor(self.store, self.dispatch, self.feed, access, parts.clock, parts.ids)
        self.strangers = Strangers(parts.clock, announce=settings.config.reject_response == "announce")
        self.plugins = plugins_of(settings)
        self._agents = {name: self._agent(name) for name in settings.agents}
        retries = Retries(random.random)
        pictures = Pictures(self.blobs.get, self.blobs.path)
        self._ports = Ports(
            self.store, parts.model, retries.next, parts.clock, parts.ids, self._publish, _posts, pictures.get
        )

    def _agent(self, name: str) -> Agent:
        config = self.settings.agent(name)
        try:
            lay_out(self.settings, name)
        except OSError as error:
            log.warning("the files of agent %r are not made: %s", name, error)
        workspace = workspace_of(self.settings, name)
        rules = rules_of(self.settings)
        skills = skills_of(self.settings, name)
        plugins = self.plugins
        prompt = self._prompt(name, workspace, skills)

        def decided(case: Case) -> Decision:
            return decide(rules, case)

        judge: Callable[[Case], Decision] = decided
        if any(is_small(self.settings, model) for model in config.models):
            prompt, judge = with_listing(prompt, workspace), asking_about_unnamed(judge, workspace)
        if config.commands:
            judge = asking_about_commands(judge, config.commands)
        home = Path(self.settings.environment.get("HOME", "/"))

        async def beside() -> tuple[Allowed, ...]:
            shared = skill_folders(self.settings, name, skills)
            if config.sandbox is not False:
                return shared
            return *shared, *await anyio.to_thread.run_sync(without_secrets, home, self.settings.home.root)

        async def reach() -> Reach:
            return await self.reaches.of(name, workspace, beside)

        return Agent(
            name,
            config.models,
            prompt,
            self.parts.tools if self.parts.tools is not None else toolbox(self.settings, name, skills, plugins.tools),
            judge,
            reach,
            str(workspace),
            self.settings.limits(config, facts_of(self.settings, next(iter(config.models), "")).window),
            config.thinking or "off",
            config.temperature,
            ZoneInfo(self.settings.config.timezone),
            hooks=plugins.hooks(name),
            commands=partial(run, partial(self._check, name)),
            fit=lambda model: self.settings.limits(config, facts_of(self.settings, model).window),
        )

    def _prompt(self, name: str, workspace: Path, skills: Skills) -> Prompting:
        config, home = self.settings.agent(name), self.settings.home
        sources = Sources(
            home.root,
            home.agent(name),
            workspace,
            config.prompt or "full",
            config.preset,
            config.voice,
            ZoneInfo(self.settings.config.timezone),
            machine_of(home.root, self.settings.environment.get("HOME", ""), config.sandbox is False),
        )
        told = {each.name: each.instructions for each in self.parts.channels if isinstance(each, Instructing)}

        def extras(address: Address) -> str:
            return told[address.channel](address) if address.channel in told else ""

        learned = self.plugins.prompt

        def can() -> str:
            return "\n\n".join(filter(None, (index(skills.find()), learned)))

        return Prompt(sources, can, self.parts.clock, extras)

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
                self._agents = {name: self._agent(name) for name in self.settings.agents}
                self.dispatch.renew()
                log.info("the plugins are now: %s", ", ".join(plugin.name for plugin in self.plugins.loaded) or "none")

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

    def _check(self, session: str, options: SessionOptions) -> str:
        """What speaks against these options of a session; '' for nothing."""
        return unusable(options, self.parts.model, self.settings.home.root / "prompts")

    def _publish(self, session: str, item: Recorded | Progress) -> None:
        self.feed.publish(session, item)
        if isinstance(item, Recorded) and self.parts.channels:
            self.outbox.poke()

    async def run(self, started: Callable[[], None] = lambda: None, takes: Takes = lambda session: True) -> None:
        """Drive, send and receive for ever. Waits until no other process does, looking every second. `takes` as in
        `Dispatch.run`."""
        async with self._lock(), anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch)
            tasks.start_soon(self._sweep)
            tasks.start_soon(self._anchor)
            tasks.start_soon(self._follow_plugins)
            if self.parts.channels:
                tasks.start_soon(self.outbox.run)
            for channel in self.parts.channels:
                tasks.start_soon(self._receive, channel)
            await self.dispatch.run(started, takes)

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
                    self.dispatch.wake(session, cut=cuts(row.inbound.body, row.inbound.when))

    async def _sweep(self) -> None:
        """Now and then remove the files of blobs that nothing names any more."""
        while True:
            await anyio.sleep(SWEEP_S)
            await anyio.to_thread.run_sync(self.blobs.collect, self.store.blob_used, self.parts.clock.now())

    async def _receive(self, channel: Channel) -> None:
        """Take in what people write on a channel, for ever; what could not be stored is not confirmed."""
        pause = 0.5
        while True:
            try:
                async for inbound in channel.receive():
                    receipt = await self.door.submit(inbound)
                    if receipt.status == "refused" and self.parts.authorise(inbound) is None:
                        await self.strangers.refuse(inbound, channel)
                    pause = 0.5
            except (ChannelError, StoreUnavailable) as error:
                log.warning("%s: %s", channel.name, error)
            except Exception:
                log.exception("%s broke while receiving", channel.name)
            await anyio.sleep(pause)
            pause = min(pause * 2, 30.0)

    async def close(self) -> None:
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
