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
from ..assembly.factory import AgentParts, make_options_check
from ..assembly.model_cooldowns import Retries
from ..assembly.plugins import Plugins
from ..channels.base import Allowing, Channel, Closing, Healthy, Instructing
from ..config.clock import RandomIds, SystemClock
from ..config.config import Settings
from ..config.routing import route
from ..config.statements import load_statements
from ..gateway.ask_status import Decided
from ..gateway.channel_loader import open_channels
from ..gateway.dispatch import Dispatch, SelectSession
from ..gateway.door import Access, LocalDoor
from ..gateway.feed import Feed
from ..gateway.housekeeping import run_anchoring, run_sweeping, watch_inbox
from ..gateway.local_stream import SocketTap
from ..gateway.local_stream import serve_socket as serve_socket
from ..gateway.machine_rounds import MachineRounds
from ..gateway.outbox import Outbox, render_unchanged
from ..gateway.outgoing_redaction import without_secrets
from ..gateway.streamed_replies import Drafts
from ..gateway.typing_indicator import Signs
from ..gateway.usage_footer import UsageShown
from ..learning.recall import MeaningFactory, open_no_meaning
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
from ..store.queries import members_of
from ..store.sqlite import SqliteStore
from ..supervision.health_checks import (
    Checkup,
    driver_fact,
    record_model_event,
    reset_model_health,
    sandbox_fact,
)
from ..supervision.health_facts import Vitals
from ..supervision.lock import Holder, hold_lock, read_holder
from ..supervision.logs import reconfigure_logging
from ..supervision.restart_command import Restart
from ..supervision.restart_with_backoff import Child, keep_running
from ..tools.base import Tools
from ..types.clock import Clock, Ids
from ..types.door import Progress
from ..types.errors import ConfigError, DeskhandError, StoreError, StoreUnavailable
from ..types.events import Recorded
from ..types.health import Health, HealthFact, combine_states
from ..types.identity import OWN_SURFACES, Address, Inbound, Principal
from ..types.options import SessionOptions
from ..types.people import OWNER_NAME
from ..users.owner_alerts import Alerts
from ..users.pairing import RESERVED_CHANNELS
from ..users.strangers import NO_ACCESS, Response, Strangers, Ways
from ..users.user_cache import OWNER as OWNER
from ..users.users import Guests, open_people
from ..workspace.owner_folder_review import Telling
from ..workspace.scope import SandboxProvider
from .feature_wiring import FeatureWiring
from .host import RunningHost
from .reload import Current, ReloadNeeds
from .tool_wiring import ToolWiring

log = logging.getLogger(__name__)

PR_SET_DUMPABLE = 4
RECOVERY_RETRY_S = 1.0


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
    meaning: MeaningFactory = open_no_meaning
    net: Net = msgspec.field(default_factory=Net)


class App:
    """One running Deskhand. Use `open_app`. `restarts`: whoever runs it ends it, and starts it
    again, on `/restart`. `up` is called when it is about to drive, and while it waits for another
    that does."""

    def __init__(self, settings: Settings, parts: Parts) -> None:
        self.parts = parts
        home = settings.home
        if taken := [each.name for each in parts.channels if each.name in RESERVED_CHANNELS]:
            raise ConfigError(
                f"a channel cannot be called {taken[0]!r}: that is a surface of our own"
            )
        home.make_folder(home.state)
        self.store = parts.store(home.database, {**load_statements(), **parts.statements})
        self.blobs = Blobs(home.blobs)
        self.secrets = Secrets(
            home, lambda: self.settings.environment, partial(Keyring, str(home.root.resolve()))
        )
        self.redact = Redactor(settings, self.secrets)
        self.current = Current(settings, parts.clock, self.redact)
        self.vitals = Vitals(parts.clock, self.redact, home.health)
        self.address = ""
        self._started_at = parts.clock.now()
        self._intake = anyio.CancelScope()
        self._checkup = Checkup(self.store, home, self.vitals, parts.clock)
        self.sandbox = SandboxProvider(parts.sandbox, parts.clock.now)
        self.feed = Feed(partial(SocketTap, home.socket))
        self.restart = Restart(self.store, parts.clock)
        self.supervised = False
        self.on_up: Callable[[], None] = lambda: None
        channels = {channel.name: channel for channel in parts.channels}
        self.dispatch = Dispatch(self.store, self._make_driver, parts.clock, self._on_drive_error)
        self.drafts = Drafts(self.store, channels, parts.clock, self._reply_target)
        self.ask_status = Decided(self.store, channels)
        self.typing_indicator = Signs(channels, self.dispatch, parts.clock)
        self.outbox = Outbox(self.store, channels, parts.clock, self.drafts)
        self.people = people = open_people(self.store, parts.clock, self._roles, self._guests)
        self.authorise = parts.authorise or self.people.authorize
        self.alerts = Alerts(self.store, parts.clock, tuple(channels))
        self.rounds = MachineRounds(self.store, parts.clock, self.alerts, self._machine_rounds)
        host = self._make_host()
        self.tool_wiring = ToolWiring(host)
        current = self.current
        self.features = FeatureWiring(
            host,
            current.agent,
            parts.model,
            current.make_trial_agent,
            parts.meaning,
            self.tool_wiring.scopes.pending_labels,
        )
        self.scopes = self.tool_wiring.scopes
        self.effects = self.tool_wiring.effects
        self.background = self.tool_wiring.background
        self.diffs = self.tool_wiring.diffs
        self.review_notice = Telling(self.store, self.scopes.untold, self.alerts, parts.clock)
        self.door = LocalDoor(
            self.store, self.dispatch, self.feed, self._make_access(), parts.clock, parts.ids
        )
        self.strangers = Strangers(
            parts.clock, Ways(self._reject_response, people.admits_anyone, people.request_pairing)
        )
        self._set_renderer()
        self.current.open(self._reload_needs())
        self._ports = self._open_ports()

    @property
    def settings(self) -> Settings:
        """Those that hold now."""
        return self.current.settings

    def _reload_needs(self) -> ReloadNeeds:
        return ReloadNeeds(
            self._make_parts,
            self.features.tools,
            self.features.own_tools.has_changed,
            self._apply_settings,
            self.dispatch.renew,
        )

    def _apply_settings(self, settings: Settings) -> None:
        self.redact.update_settings(settings)
        reconfigure_logging(settings)
        self._set_renderer()
        self.parts.renew(settings)
        reset_model_health(self.vitals)
        self.dispatch.renew()

    def _make_host(self) -> RunningHost:
        parts = self.parts
        return RunningHost(
            store=self.store,
            blobs=self.blobs,
            sandbox=self.sandbox,
            net=parts.net,
            clock=parts.clock,
            ids=parts.ids,
            secrets=self.secrets,
            redact=self.redact,
            dispatch=self.dispatch,
            alerts=self.alerts,
            rounds=self.rounds,
            current=self.current,
            people=None if parts.authorise else self.people,
        )

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
            _uses_outbox,
            pictures.get,
            self._outside_approvers,
            SecretHiding(self.redact),
            self.effects.undo_turns,
            budgets=self.features.budgets,
            owner_addresses=self._owner_addresses,
            close_turn=self.review_notice,
        )

    def _roles(self) -> Roles:
        return {name: role.agents for name, role in self.settings.config.roles.items()}

    def _guests(self) -> Guests:
        return {
            each.name: each.allow_from if isinstance(each, Allowing) else ()
            for each in self.parts.channels
        }

    def _route(self, inbound: Inbound) -> str:
        return route(self.settings.config.bindings, self.settings.agents, inbound.address)

    def _make_parts(self, plugins: Plugins) -> AgentParts:
        told = {
            each.name: each.instructions
            for each in self.parts.channels
            if isinstance(each, Instructing)
        }
        parts = self.parts
        beside = self.background.describe_running
        return AgentParts(
            self.scopes,
            plugins,
            parts.clock,
            parts.tools,
            told,
            parts.model,
            self.features,
            self.people,
            beside,
        )

    async def _restart_in_place(self) -> None:
        """Where nobody starts this process again: what a restart is good for, and what is to go on
        after it."""
        await self.current.try_reload()
        await self.features.continuing.hand_in_now()

    def _make_access(self) -> Access:
        people = self.people
        zone = ZoneInfo(self.settings.config.timezone)
        rules = (
            people.may_talk,
            self.tool_wiring.unpack_message,
            people.add_audit_note,
            self._accepts_bots,
            self.rounds,
        )
        return Access(
            self.authorise,
            self._route,
            *rules,
            self._check_options,
            zone,
            self._render_prompt,
            self.redact,
        )

    def _reject_response(self) -> Response:
        return self.settings.config.reject_response

    def _accepts_bots(self, channel: str) -> bool:
        known = self.settings.config.channels.get(channel)
        return known is not None and known.bots

    def _machine_rounds(self) -> int:
        return self.settings.config.machine_rounds

    def _set_renderer(self) -> None:
        """How answers are said, by the settings."""
        render = UsageShown(self.store) if self.settings.config.show_usage else render_unchanged
        self.outbox.render = without_secrets(render, self.redact)

    def _make_driver(self, session: str) -> Driver:
        return Driver(
            session,
            self.features.agent_in_session(session, self.current.agent_of(session)),
            self._ports,
        )

    def _check_options(self, principal: Principal, session: str, options: SessionOptions) -> str:
        return make_options_check(self.settings, self.parts.model)(principal, session, options)

    def _render_prompt(self, state: State) -> tuple[str, ...]:
        return self.current.agent_of(state.session).prompt(state)

    async def _outside_approvers(self, session: str) -> tuple[str, ...]:
        """Who may allow what is asked in a session where nobody may who takes part in it."""
        here = await members_of(self.store, session)
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

    async def _owner_addresses(self) -> Sequence[Address]:
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
            self.background.on_event(item)
            self.features.on_event(item)
            if self.parts.channels:
                self.outbox.wake()
                self.ask_status.on_event(item)
            record_model_event(self.vitals, item.event, self._configured_models)
            self.restart.on_event(item)
            if self.features.continuing.is_restart_request(item):
                self.restart.request()
        if self.drafts.channels:
            self.drafts.on_item(session, item)

    def _configured_models(self) -> set[str]:
        return {
            model for agent in self.settings.agents for model in self.settings.agent(agent).models
        }

    def _reply_target(self, session: str) -> tuple[Address, str] | None:
        turn = self.dispatch.turn(session)
        return (turn.address, turn.reply_to) if turn is not None else None

    def _on_drive_error(self, session: str, error: DeskhandError, for_good: bool) -> None:
        self.feed.report_trouble(session, error, for_good)
        if isinstance(error, StoreUnavailable):
            self.vitals.record_failure("store", error)

    async def run(
        self,
        started: Callable[[], None] = lambda: None,
        takes: SelectSession = lambda session: True,
    ) -> None:
        """Drive, send and receive for ever. Waits until no other process does, looking every
        second; what people see is up meanwhile. `takes` as in `Dispatch.run`. What fails is started
        again: only a damaged database, and what cannot be handled, ends it."""
        self.vitals.load()
        try:
            async with anyio.create_task_group() as beside:
                self._start_children(beside, self._background_children())
                holder = Holder(os.getpid(), self.parts.clock.now())
                lock = hold_lock(
                    self.settings.home.lock, holder, self._is_standby, waits=self.on_up
                )
                async with lock, anyio.create_task_group() as tasks:
                    await self._recover()
                    if takes(self.features.jobs.scheduler.session_prefix):
                        await self._record_start()
                    self._start_children(tasks, self._driver_children(started, takes))
                    with self._intake:
                        async with anyio.create_task_group() as intake:
                            self._start_children(intake, self._channel_children())
        except BaseExceptionGroup:  # a part broke; who is told to end is cancelled
            with suppress(StoreError):
                await self.features.jobs.scheduler.note_crash()
            raise

    async def _record_start(self) -> None:
        """Before anything is driven: what is driven first may be what kills this process again and
        again."""
        try:
            await self.features.jobs.scheduler.note_start()
        except StoreError as error:
            log.warning("a crash will not count before jobs are looked after: %s", error)

    async def _recover(self) -> None:
        """Mark what was written by commands that were killed with who drove before: nobody is told
        of it unmarked."""
        while True:
            try:
                await self.tool_wiring.recover()
            except StoreUnavailable as error:
                log.warning("nothing is driven yet: %s", error)
                await anyio.sleep(RECOVERY_RETRY_S)
            else:
                return

    def _is_standby(self) -> bool:
        """Whether a service is to drive: its worker may only be on its way."""
        return not self.supervised and read_holder(self.settings.home.serve_lock) is not None

    def _start_children(self, tasks: TaskGroup, children: Iterable[Child]) -> None:
        for child in children:
            tasks.start_soon(keep_running, child, self.vitals)

    def _background_children(self) -> Iterator[Child]:
        """What runs whoever drives."""
        yield Child("configuration", self.current.watch)
        serve = self.parts.serve
        if serve is not None:
            yield Child("web", lambda: serve(self), awaited=True)

    def _driver_children(
        self, started: Callable[[], None], takes: SelectSession
    ) -> Iterator[Child]:
        """What only the process that drives may do."""

        def on_driving() -> None:
            self.vitals.record_ready("driver")
            started()

        yield Child(
            "driver",
            lambda: self.dispatch.run(on_driving, takes, self.on_up),
            awaited=True,
            vital=True,
        )
        home = self.settings.home
        clock = self.parts.clock
        yield Child("watch", partial(watch_inbox, self.store, self.door, self.dispatch), vital=True)
        yield Child("processes", self.background.run)
        yield from self.features.children()
        yield Child(
            "sweep", partial(run_sweeping, self.store, self.blobs, clock, self.tool_wiring.clean_up)
        )
        yield Child("anchor", partial(run_anchoring, self.store, home.anchors, clock))
        yield Child("health", self.vitals.run)
        yield Child("socket", lambda: serve_socket(home.socket, self.door.follow, self.health))
        if not self.supervised:
            yield Child(
                "restart",
                lambda: self.restart.reload_instead(self._restart_in_place, self.dispatch.wake),
            )
        if self.parts.channels:
            yield Child("outbox", self.outbox.run)
        if self.drafts.channels:
            yield Child("drafts", self.drafts.run)
            yield Child("asks", self.ask_status.run)
        if self.typing_indicator.channels:
            yield Child("signs", self.typing_indicator.run)

    def _channel_children(self) -> Iterator[Child]:
        for channel in self.parts.channels:
            yield Child(f"channel {channel.name}", partial(self._receive, channel))

    async def drain(self) -> None:
        """Take in no more from channels, and wait until what is being driven rests and its answers
        are sent. What comes in otherwise is stored, and waits for the next run."""
        self._intake.cancel()
        await self.features.jobs.scheduler.note_clean_exit()
        await self.dispatch.drain()
        await self.outbox.drain()

    async def health(self) -> Health:
        """How everything is doing now. Whether the disk takes what is written is tried out, every 5
        seconds at most."""
        for channel in self.parts.channels:
            if isinstance(channel, Healthy):
                told = channel.health()
                self.vitals.record_report(
                    f"channel {channel.name}", told.ok_at, told.error_at, told.error
                )
        found = [
            await self._checkup.check_store(),
            await self._checkup.check_outbox(),
            sandbox_fact(self.sandbox),
        ]
        facts = {fact.name: fact for fact in self.vitals.facts()}
        if "driver" not in facts:
            found.append(driver_fact(read_holder(self.settings.home.lock)))
        found.append(self.current.health_fact())
        found += await self.features.jobs.health_facts()
        found += await self.alerts.health_facts()
        found.append(
            HealthFact("people", "degraded" if (why := self.people.health()) else "ok", why)
        )
        facts |= {fact.name: fact for fact in found}
        now = self.parts.clock.now()
        known = tuple(facts.values())
        return Health(
            combine_states(known),
            now,
            version("deskhand"),
            os.getpid(),
            self._started_at,
            self.address,
            known,
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
                    await self.strangers.refuse_agent(inbound, channel)
                elif receipt.status == "refused" and self.authorise(inbound) is None:
                    await self.strangers.refuse(inbound, channel)
                self.typing_indicator.on_accepted(inbound, receipt)
                self.vitals.record_success(f"channel {channel.name}")

    async def close(self) -> None:
        for channel in self.parts.channels:
            if isinstance(channel, Closing):
                await channel.close()
        self.scopes.close()
        await self.store.close()


def _uses_outbox(address: Address) -> bool:
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
