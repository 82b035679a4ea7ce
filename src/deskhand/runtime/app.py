"""Puts the rooms together: from settings to a Door that answers."""

from __future__ import annotations

import logging
import os
import random
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import cast
from zoneinfo import ZoneInfo

import anyio
import msgspec
from anyio.abc import TaskGroup
from msgspec.structs import replace

from ..agent.loop import Driver
from ..agent.profile import Ports
from ..agent.state import State
from ..assembly.factory import AgentParts, check_of
from ..assembly.host import Host
from ..assembly.model_cooldowns import Retries
from ..assembly.plugins import Plugins
from ..channels.base import Allowing, Channel, Closing, Healthy, Instructing
from ..config.clock import RandomIds, SystemClock
from ..config.config import Settings
from ..config.routing import route
from ..config.statements import statements
from ..gateway.ask_status import Decided
from ..gateway.channel_loader import open_channels
from ..gateway.dispatch import Dispatch, Takes
from ..gateway.door import Access, LocalDoor
from ..gateway.feed import Feed
from ..gateway.housekeeping import anchor, sweep, watch
from ..gateway.local_stream import SocketTap
from ..gateway.local_stream import serve as serve_socket
from ..gateway.machine_rounds import MachineRounds
from ..gateway.outbox import Outbox, as_it_stands
from ..gateway.outgoing_redaction import without_secrets
from ..gateway.streamed_replies import Drafts
from ..gateway.typing_indicator import Signs
from ..gateway.usage_footer import UsageShown
from ..learning.recall import MeaningOf, words_alone
from ..models.base import Model
from ..models.pictures import PictureStore
from ..net.client import Net
from ..policy.roles import Roles
from ..sandbox import kernel
from ..sandbox.probes import Proven, open_sandbox
from ..secrets.inbound_redaction import SecretHiding
from ..secrets.keyring import Keyring
from ..secrets.redaction import Redactor
from ..secrets.secrets import Secrets
from ..store.base import Store
from ..store.blobs import Blobs
from ..store.sqlite import SqliteStore
from ..supervision.health_checks import (
    Checkup,
    driver_fact,
    models_renewed,
    note_models,
    sandbox_fact,
)
from ..supervision.health_facts import Vitals
from ..supervision.lock import Holder, held, holder_of
from ..supervision.logs import renew_logging
from ..supervision.restart_command import Restart
from ..supervision.restart_with_backoff import Child, keep_running
from ..tools.base import Tools
from ..types.clock import Clock, Ids
from ..types.door import Progress
from ..types.errors import ConfigError, DeskhandError, StoreError, StoreUnavailable
from ..types.events import Recorded
from ..types.health import Health, HealthFact, overall
from ..types.identity import OWN_SURFACES, Address, Inbound, Principal
from ..types.options import SessionOptions
from ..types.people import OWNER_NAME
from ..users.owner_alerts import Alerts
from ..users.pairing import RESERVED
from ..users.strangers import NO_ACCESS, Response, Strangers, Ways
from ..users.user_cache import OWNER as OWNER
from ..users.users import Guests, open_people
from ..workspace.owner_folder_review import Telling
from ..workspace.processes import as_now
from ..workspace.scope import SandboxProvider
from .feature_wiring import FeatureWiring
from .reload import Current, ReloadNeeds
from .tool_wiring import ToolWiring

log = logging.getLogger(__name__)

PR_SET_DUMPABLE = 4
LOOK_BACK_S = 1.0


class Parts(msgspec.Struct, frozen=True):
    """What a test or another program may replace. `model` opens `provider/name`; `store` opens the
    database at a path, with the statements of the rooms. Without `tools` each agent has those that
    its settings allow; without `authorise` the users in the store are asked. `sandbox` opens the
    room in which commands run; raises SandboxUnavailable. `serve` is the page, for ever: it runs
    beside whoever drives, calls `app.vitals.ready("web", …)` when it can be reached and is started
    again when it fails. `renew` hears of settings that have changed, `meaning` opens what compares
    the meanings of memories, `net` reaches the public web."""

    model: Callable[[str], Model]
    tools: Tools | None = None
    statements: Mapping[str, str] = {}
    channels: Sequence[Channel] = ()
    authorise: Callable[[Inbound], Principal | None] | None = None
    store: Callable[[Path, Mapping[str, str]], Store] = SqliteStore
    clock: Clock = SystemClock()
    ids: Ids = RandomIds()
    sandbox: Callable[[], Awaitable[Proven]] = open_sandbox
    serve: Callable[[App], Awaitable[None]] | None = None
    renew: Callable[[Settings], None] = lambda settings: None
    meaning: MeaningOf = words_alone
    net: Net = msgspec.field(default_factory=Net)


class App:
    """One running Deskhand. Use `open_app`. `restarts`: whoever runs it ends it, and starts it
    again, on `/restart`. `up` is called when it is about to drive, and while it waits for another
    that does."""

    def __init__(self, settings: Settings, parts: Parts) -> None:
        self.parts = parts
        home = settings.home
        if taken := [each.name for each in parts.channels if each.name in RESERVED]:
            raise ConfigError(
                f"a channel cannot be called {taken[0]!r}: that is a surface of our own"
            )
        home.make(home.state)
        self.store = parts.store(home.database, {**statements(), **parts.statements})
        self.blobs = Blobs(home.blobs)
        self.secrets = Secrets(
            home, lambda: self.settings.environment, partial(Keyring, str(home.root.resolve()))
        )
        self.redact = Redactor(settings, self.secrets)
        self.current = Current(settings, parts.clock, self.redact)
        self.vitals = Vitals(parts.clock, self.redact, home.health)
        self.address = ""
        self._began = parts.clock.now()
        self._intake = anyio.CancelScope()
        self._checkup = Checkup(self.store, home, self.vitals, parts.clock)
        self.room = SandboxProvider(parts.sandbox, parts.clock.now)
        self.feed = Feed(partial(SocketTap, home.socket))
        self.restart = Restart(self.store, parts.clock)
        self.restarts = False
        self.up: Callable[[], None] = lambda: None
        channels = {channel.name: channel for channel in parts.channels}
        self.dispatch = Dispatch(self.store, self._driver, parts.clock, self._troubled)
        self.drafts = Drafts(self.store, channels, parts.clock, self._place)
        self.decided = Decided(self.store, channels)
        self.signs = Signs(channels, self.dispatch, parts.clock)
        self.outbox = Outbox(self.store, channels, parts.clock, self.drafts)
        self.people = people = open_people(self.store, parts.clock, self._roles, self._guests)
        self.authorise = parts.authorise or self.people.authorise
        self.alerts = Alerts(self.store, parts.clock, tuple(channels))
        self.rounds = MachineRounds(self.store, parts.clock, self.alerts, self._machine_rounds)
        self.hands = self._open_hands()
        current = self.current
        self.works = FeatureWiring(
            self.hands.ground,
            current.agent,
            parts.model,
            current.trying,
            parts.meaning,
            self.hands.reaches.words,
        )
        self.reaches = self.hands.reaches
        self.effects = self.hands.effects
        self.background = self.hands.background
        self.diffs = self.hands.diffs
        self.telling = Telling(self.store, self.reaches.untold, self.alerts, parts.clock)
        self.door = LocalDoor(
            self.store, self.dispatch, self.feed, self._access(), parts.clock, parts.ids
        )
        self.strangers = Strangers(parts.clock, Ways(self._response, people.anybody, people.ask_in))
        self._render()
        self.current.open(self._needs())
        self._ports = self._open_ports()

    @property
    def settings(self) -> Settings:
        """Those that hold now."""
        return self.current.settings

    def _needs(self) -> ReloadNeeds:
        return ReloadNeeds(
            self._house,
            self.works.tools,
            self.works.own.changed,
            self._taken_up,
            self.dispatch.renew,
        )

    def _taken_up(self, settings: Settings) -> None:
        self.redact.renew(settings)
        renew_logging(settings)
        self._render()
        self.parts.renew(settings)
        models_renewed(self.vitals)
        self.dispatch.renew()

    def _open_hands(self) -> ToolWiring:
        parts = self.parts
        about = (parts.net, parts.clock, parts.ids, self.secrets, self.redact, self.dispatch)
        ground = Host(
            self.store,
            self.blobs,
            self.room,
            *about,
            lambda: self.settings,
            self.current.agent_of,
            self._as_now,
            self.alerts,
            self.rounds,
        )
        return ToolWiring(ground)

    def _open_ports(self) -> Ports:
        parts = self.parts
        retries = Retries(random.random, parts.clock.monotonic)
        pictures = PictureStore(self.blobs.get, self.blobs.path)
        return Ports(
            self.store,
            parts.model,
            retries.next,
            parts.clock,
            parts.ids,
            self._publish,
            _posts,
            pictures.get,
            self._elsewhere,
            SecretHiding(self.redact),
            self.effects.back,
            budgets=self.works.budgets,
            owners_at=self._owners_at,
            closing=self.telling,
        )

    async def _as_now(self, principal: Principal) -> Principal:
        """The same person with the roles that they still have. Who is asked elsewhere is known
        there."""
        return principal if self.parts.authorise else as_now(principal, await self.people.users())

    def _roles(self) -> Roles:
        return {name: role.agents for name, role in self.settings.config.roles.items()}

    def _guests(self) -> Guests:
        return {
            each.name: each.allow_from if isinstance(each, Allowing) else ()
            for each in self.parts.channels
        }

    def _route(self, inbound: Inbound) -> str:
        return route(self.settings.config.bindings, self.settings.agents, inbound.address)

    def _house(self, plugins: Plugins) -> AgentParts:
        told = {
            each.name: each.instructions
            for each in self.parts.channels
            if isinstance(each, Instructing)
        }
        parts = self.parts
        beside = self.background.shown
        return AgentParts(
            self.reaches,
            plugins,
            parts.clock,
            parts.tools,
            told,
            parts.model,
            self.works,
            self.people,
            beside,
        )

    async def _begin_anew(self) -> None:
        """Where nobody starts this process again: what a restart is good for, and what is to go on
        after it."""
        await self.current.look_again()
        await self.works.continuing.instead()

    def _access(self) -> Access:
        people = self.people
        zone = ZoneInfo(self.settings.config.timezone)
        rules = (people.may_talk, self.hands.unpack, people.note, self._hears_bots, self.rounds)
        return Access(
            self.authorise, self._route, *rules, self._check, zone, self._prompt, self.redact
        )

    def _response(self) -> Response:
        return self.settings.config.reject_response

    def _hears_bots(self, channel: str) -> bool:
        known = self.settings.config.channels.get(channel)
        return known is not None and known.bots

    def _machine_rounds(self) -> int:
        return self.settings.config.machine_rounds

    def _render(self) -> None:
        """How answers are said, by the settings."""
        render = UsageShown(self.store) if self.settings.config.show_usage else as_it_stands
        self.outbox.render = without_secrets(render, self.redact)

    def _driver(self, session: str) -> Driver:
        return Driver(
            session, self.works.driving(session, self.current.agent_of(session)), self._ports
        )

    def _check(self, principal: Principal, session: str, options: SessionOptions) -> str:
        return check_of(self.settings, self.parts.model)(principal, session, options)

    def _prompt(self, state: State) -> tuple[str, ...]:
        return self.current.agent_of(state.session).prompt(state)

    async def _elsewhere(self, session: str) -> tuple[str, ...]:
        """Who may allow what is asked in a session where nobody may who takes part in it."""
        here = {member for (member,) in await self.store.rows("session_members", (session,))}
        try:
            able = {
                user.name: user.roles
                for user in await self.people.users()
                if {"owner", "approver"} & {*user.roles}
            }
        except StoreError:
            return (OWNER_NAME,)
        return (
            ()
            if here & {*able}
            else tuple(name for name, roles in able.items() if "owner" in roles)
        )

    async def _owners_at(self) -> Sequence[Address]:
        return [address for _, address in await self.alerts.owners()]

    def _publish(self, session: str, item: Recorded | Progress) -> None:
        if isinstance(item, Progress) and item.kind in (
            "tool_result",
            "prompt",
            "request",
            "status",
        ):
            item = replace(item, text=self.redact(item.text))
        self.feed.publish(session, item)
        if isinstance(item, Recorded):
            self.background.see(item)
            self.works.see(item)
            if self.parts.channels:
                self.outbox.poke()
                self.decided.see(item)
            note_models(self.vitals, item.event, self._configured_models)
            self.restart.note(item)
            if self.works.continuing.due(item):
                self.restart.ask()
        if self.drafts.channels:
            self.drafts.see(session, item)

    def _configured_models(self) -> set[str]:
        return {
            model for agent in self.settings.agents for model in self.settings.agent(agent).models
        }

    def _place(self, session: str) -> tuple[Address, str] | None:
        turn = self.dispatch.turn(session)
        return (turn.address, turn.reply_to) if turn is not None else None

    def _troubled(self, session: str, error: DeskhandError, for_good: bool) -> None:
        self.feed.trouble(session, error, for_good)
        if isinstance(error, StoreUnavailable):
            self.vitals.failed("store", error)

    async def run(
        self, started: Callable[[], None] = lambda: None, takes: Takes = lambda session: True
    ) -> None:
        """Drive, send and receive for ever. Waits until no other process does, looking every
        second; what people see is up meanwhile. `takes` as in `Dispatch.run`. What fails is started
        again: only a damaged database, and what cannot be handled, ends it."""
        self.vitals.recall()
        try:
            async with anyio.create_task_group() as beside:
                self._start(beside, self._beside())
                holder = Holder(os.getpid(), self.parts.clock.now())
                lock = held(self.settings.home.lock, holder, self._stands_by, waits=self.up)
                async with lock, anyio.create_task_group() as tasks:
                    await self._look_back()
                    if takes(self.works.jobs.clock.place):
                        await self._note_start()
                    self._start(tasks, self._driving(started, takes))
                    with self._intake:
                        async with anyio.create_task_group() as intake:
                            self._start(intake, self._receiving())
        except BaseExceptionGroup:  # a part broke; who is told to end is cancelled
            with suppress(StoreError):
                await self.works.jobs.clock.note_crash()
            raise

    async def _note_start(self) -> None:
        """Before anything is driven: what is driven first may be what kills this process again and
        again."""
        try:
            await self.works.jobs.clock.note_start()
        except StoreError as error:
            log.warning("a crash will not count before jobs are looked after: %s", error)

    async def _look_back(self) -> None:
        """Mark what was written by commands that were killed with who drove before: nobody is told
        of it unmarked."""
        while True:
            try:
                await self.hands.look_back()
            except StoreUnavailable as error:
                log.warning("nothing is driven yet: %s", error)
                await anyio.sleep(LOOK_BACK_S)
            else:
                return

    def _stands_by(self) -> bool:
        """Whether a service is to drive: its worker may only be on its way."""
        return not self.restarts and holder_of(self.settings.home.serving) is not None

    def _start(self, tasks: TaskGroup, children: Iterable[Child]) -> None:
        for child in children:
            tasks.start_soon(keep_running, child, self.vitals)

    def _beside(self) -> Iterator[Child]:
        """What runs whoever drives."""
        yield Child("configuration", self.current.follow)
        serve = self.parts.serve
        if serve is not None:
            yield Child("web", lambda: serve(self), awaited=True)

    def _driving(self, started: Callable[[], None], takes: Takes) -> Iterator[Child]:
        """What only the process that drives may do."""

        def begun() -> None:
            self.vitals.ready("driver")
            started()

        yield Child(
            "driver", lambda: self.dispatch.run(begun, takes, self.up), awaited=True, vital=True
        )
        home = self.settings.home
        clock = self.parts.clock
        yield Child("watch", partial(watch, self.store, self.door, self.dispatch), vital=True)
        yield Child("processes", self.background.run)
        yield from self.works.children()
        yield Child("sweep", partial(sweep, self.store, self.blobs, clock, self.hands.tidy))
        yield Child("anchor", partial(anchor, self.store, home.anchors, clock))
        yield Child("health", self.vitals.keep)
        yield Child("socket", lambda: serve_socket(home.socket, self.door.follow, self.health))
        if not self.restarts:
            yield Child(
                "restart", lambda: self.restart.instead(self._begin_anew, self.dispatch.wake)
            )
        if self.parts.channels:
            yield Child("outbox", self.outbox.run)
        if self.drafts.channels:
            yield Child("drafts", self.drafts.run)
            yield Child("asks", self.decided.run)
        if self.signs.channels:
            yield Child("signs", self.signs.run)

    def _receiving(self) -> Iterator[Child]:
        for channel in self.parts.channels:
            yield Child(f"channel {channel.name}", partial(self._receive, channel))

    async def drain(self) -> None:
        """Take in no more from channels, and wait until what is being driven rests and its answers
        are sent. What comes in otherwise is stored, and waits for the next run."""
        self._intake.cancel()
        await self.works.jobs.clock.leave()
        await self.dispatch.drain()
        await self.outbox.drain()

    async def health(self) -> Health:
        """How everything is doing now. Whether the disk takes what is written is tried out, every 5
        seconds at most."""
        for channel in self.parts.channels:
            if isinstance(channel, Healthy):
                told = channel.health()
                self.vitals.reported(
                    f"channel {channel.name}", told.ok_at, told.error_at, told.error
                )
        found = [await self._checkup.store(), await self._checkup.outbox(), sandbox_fact(self.room)]
        facts = {fact.name: fact for fact in self.vitals.facts()}
        if "driver" not in facts:
            found.append(driver_fact(holder_of(self.settings.home.lock)))
        found.append(self.current.fact())
        found += await self.works.jobs.facts()
        found += await self.alerts.facts()
        found.append(
            HealthFact("people", "degraded" if (why := self.people.health()) else "ok", why)
        )
        facts |= {fact.name: fact for fact in found}
        now = self.parts.clock.now()
        known = tuple(facts.values())
        return Health(
            overall(known), now, version("deskhand"), os.getpid(), self._began, self.address, known
        )

    async def _receive(self, channel: Channel) -> None:
        """Take in what people write on a channel; what could not be stored is not confirmed."""
        async with aclosing(cast(AsyncGenerator[Inbound], channel.receive())) as inbounds:
            async for inbound in inbounds:
                if (
                    inbound.address.channel != channel.name
                ):  # it would speak for those of another place
                    log.error(
                        "%s hands in what came from %r: dropped",
                        channel.name,
                        inbound.address.channel,
                    )
                    continue
                receipt = await self.door.submit(inbound)
                if inbound.by_program and receipt.status == "refused":
                    log.info(
                        "%s: the bot %s is not heard: %s",
                        channel.name,
                        inbound.sender,
                        receipt.reason,
                    )
                elif receipt.reason == NO_ACCESS:
                    await self.strangers.turn_away(inbound, channel)
                elif receipt.status == "refused" and self.authorise(inbound) is None:
                    await self.strangers.refuse(inbound, channel)
                self.signs.took(inbound, receipt)
                self.vitals.succeeded(f"channel {channel.name}")

    async def close(self) -> None:
        for channel in self.parts.channels:
            if isinstance(channel, Closing):
                await channel.close()
        self.reaches.close()
        await self.store.close()


def _posts(address: Address) -> bool:
    return address.channel not in OWN_SURFACES


def with_channels(parts: Parts, settings: Settings) -> Parts:
    """These parts with the channels of the configuration."""
    channels = open_channels(settings, Blobs(settings.home.blobs), parts.clock)
    return replace(parts, channels=(*parts.channels, *channels))


@asynccontextmanager
async def open_app(settings: Settings, parts: Parts) -> AsyncIterator[App]:
    """An App with its store open; `app.run()` makes it drive. Raises StoreError, ConfigError.

    The process is made non-dumpable: another process of the same user cannot read its memory, where
    keys are.
    """
    kernel.prctl(PR_SET_DUMPABLE, 0)
    app = App(settings, parts)
    try:
        yield app
    finally:
        await app.close()
