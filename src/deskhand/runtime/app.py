"""Builds a running Deskhand from its settings: the store, agents, channels and the door."""

from __future__ import annotations

import logging
import os
import random
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, suppress
from datetime import tzinfo
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Protocol
from zoneinfo import ZoneInfo

import anyio
import msgspec
from anyio.abc import TaskGroup
from msgspec.structs import replace

from ..agent.protocols import Runtime
from ..agent.session import Session
from ..assembly.channel_tool import make_channel_tool
from ..assembly.factory import AgentParts
from ..assembly.model_pool import ModelPool
from ..assembly.plugins import Plugins
from ..assembly.room_tools import make_room_tools
from ..assembly.speech import SpeechEngines
from ..channels.base import Allowing, Channel, Closing, Healthy, Instructing, Speaking
from ..config.clock import RandomIds, SystemClock
from ..config.config import Settings
from ..config.database import open_store
from ..config.statements import load_statements
from ..deepwork.continue_after_restart import Continuing
from ..gateway.agent_share import AgentShare
from ..gateway.ask_status import AskStatus
from ..gateway.channel_loader import open_channels
from ..gateway.channel_switch import ChannelSwitch
from ..gateway.deferral import Deferral
from ..gateway.dispatch import WARM_BYTES, Dispatch, SelectSession
from ..gateway.door import LocalDoor
from ..gateway.feed import Feed
from ..gateway.housekeeping import run_anchoring, run_sweeping, watch_inbox
from ..gateway.live_relay import LiveSender, receive_live
from ..gateway.machine_rounds import MachineRounds
from ..gateway.outbox import Outbox, Render, render_unchanged
from ..gateway.outgoing_redaction import without_secrets
from ..gateway.publisher import EventPublisher
from ..gateway.reader_language import make_localize
from ..gateway.spoken_answers import SpokenAnswers
from ..gateway.streamed_replies import Drafts
from ..gateway.terminal_socket import SocketTap
from ..gateway.terminal_socket import serve_socket as serve_socket
from ..gateway.typing_indicator import TypingIndicator
from ..gateway.usage_footer import UsageFooter
from ..learning.recall import MeaningFactory, open_no_meaning
from ..models.base import Model
from ..models.pictures import PictureStore
from ..net.client import Net
from ..policy.roles import Roles
from ..sandbox import kernel
from ..sandbox.choose import Proven, open_sandbox
from ..secrets.inbound_redaction import SecretHiding
from ..secrets.keyring import Keyring
from ..secrets.redaction import Redactor
from ..secrets.secrets import Secrets
from ..speech.base import Speech
from ..store.base import Store
from ..store.blobs import Blobs
from ..supervision.health_checks import (
    Checkup,
    ModelHealth,
    driver_fact,
    reset_model_health,
    sandbox_fact,
    workers_fact,
)
from ..supervision.health_facts import Vitals
from ..supervision.lock import Holder, hold_lock, read_holder
from ..supervision.logs import reconfigure_logging
from ..supervision.restart_command import Restart
from ..supervision.restart_with_backoff import Child, keep_running
from ..supervision.trace_export import export_traces
from ..tools.base import Tool, Tools
from ..types.clock import Clock, Ids
from ..types.errors import ConfigError, DeskhandError, StoreError, StoreUnavailable
from ..types.events import Recorded, ToolFinished
from ..types.health import Health, HealthFact, combine_states
from ..types.identity import Inbound, Principal
from ..types.subagents import SCRIPT_MODEL
from ..types.turn import ReplyTarget
from ..users.approvers import UserApprovers
from ..users.owner_alerts import Alerts
from ..users.pairing import RESERVED_CHANNELS
from ..users.reader_languages import ReaderLanguages
from ..users.strangers import Response, Strangers
from ..users.user_cache import OWNER as OWNER
from ..users.users import Guests, open_people
from ..web.page_instructions import PageInstructions
from ..webpush.devices import StoredPushDevices
from ..webpush.sender import PushSender
from ..workspace.owner_folder_review import ReviewNotice
from ..workspace.scope import SandboxProvider
from .access import LocalAccess
from .feature_wiring import FeatureWiring
from .host import RunningHost
from .receiving import Receiving
from .reload import Current
from .tool_wiring import ToolWiring

log = logging.getLogger(__name__)

PR_SET_DUMPABLE = 4
DESCRIBE_S = 25.0
"""So long a start waits to learn the tools of files."""


class ModelFactory(Protocol):
    def __call__(self, name: str, /) -> Model:
        """Open the model `provider/name`. Raises ModelError."""


class Authorizer(Protocol):
    def __call__(self, inbound: Inbound, /) -> Principal | None:
        """Who the sender is, or None for a stranger."""


class StoreFactory(Protocol):
    def __call__(self, path: Path, statements: Mapping[str, str], /) -> Store:
        """Open the database at this path, with the statements of all rooms. Raises StoreError."""


class SandboxFactory(Protocol):
    def __call__(self) -> Awaitable[Proven]:
        """Open the sandbox in which commands run. Raises SandboxUnavailable."""


class PageServer(Protocol):
    def __call__(self, app: App, /) -> Awaitable[None]:
        """Serve the page until cancelled. Calls `app.vitals.record_ready("web")` when it can be
        reached. It is restarted when it fails."""


class SettingsListener(Protocol):
    def __call__(self, settings: Settings, /) -> None:
        """Called when other settings hold."""


class Parts(msgspec.Struct, frozen=True):
    """What a test or another program may replace. Without `tools` each agent has those that its
    settings allow; without `authorize` the users in the store are asked. `renew` is told of changed
    settings, `store` opens another database than the settings name, `meaning` opens what compares
    the meanings of memories, `net` reaches the public web, `speech` hears and speaks whatever the
    settings name. Conversations at rest are kept in memory up to `warm_bytes`."""

    model: ModelFactory
    tools: Tools | None = None
    statements: Mapping[str, str] = {}
    channels: Sequence[Channel] = ()
    authorize: Authorizer | None = None
    store: StoreFactory | None = None
    clock: Clock = SystemClock()
    ids: Ids = RandomIds()
    sandbox: SandboxFactory = open_sandbox
    serve: PageServer | None = None
    renew: SettingsListener = lambda settings: None
    meaning: MeaningFactory = open_no_meaning
    net: Net = msgspec.field(default_factory=Net)
    speech: Speech | None = None
    warm_bytes: int = WARM_BYTES


def take_all(session: str) -> bool:
    """Drives every conversation."""
    return True


class App:
    """One running Deskhand. Use `open_app`.

    When it is `supervised`, a supervisor restarts the process on /restart; otherwise it only
    reloads the configuration. `on_up` is called when it is about to drive, and again and again
    while another process drives.
    """

    def __init__(self, settings: Settings, parts: Parts) -> None:
        self.parts = parts
        home = settings.home
        clock = parts.clock
        channels = _channels_by_name(parts, sends=not home.worker)
        home.make_folder(home.process)
        self.store = _open_database(settings, parts)
        self.blobs = Blobs(home.blobs)
        self.secrets = Secrets(
            home, lambda: self.settings.environment, partial(Keyring, str(home.root.resolve()))
        )
        self.redact = Redactor(settings, self.secrets)
        self.current = Current(settings, clock, self.redact)
        self.sandbox = SandboxProvider(parts.sandbox, clock.now)
        self.speech = self._make_speech()
        self._spoken = SpokenAnswers(self.speech.say, self.blobs.put)

        self.vitals = Vitals(clock, self.redact, home.health)
        self.address = ""
        self._started_at = clock.now()
        self._checkup = Checkup(self.store, home, self.vitals, clock)
        self.restart = Restart(self.store, clock)
        self.supervised = False
        self.on_up: Callable[[], None] = lambda: None

        self.dispatch = Dispatch(self.store, self._open_session, clock, self._on_drive_error)
        self.dispatch.most_bytes = parts.warm_bytes
        self.feed = Feed(partial(SocketTap, home.socket))
        self._intake = anyio.CancelScope()

        self.switch = ChannelSwitch(lambda: self.settings, settings.config.channels)
        self._open_outbox(channels)
        self._live_sender = LiveSender(self.store)
        self.publisher = EventPublisher(
            self.feed, self.drafts, self.redact, self._live_sender.put if home.worker else None
        )

        self.people = people = open_people(self.store, clock, self._roles, self._guests)
        self.alerts = Alerts(self.store, clock, tuple(each.name for each in parts.channels))
        self.rounds = MachineRounds(self.store, clock, self.alerts, self._machine_rounds)

        host = self._make_host()
        self.tool_wiring = ToolWiring(host)
        self.scopes = self.tool_wiring.scopes
        self.effects = self.tool_wiring.effects
        self.background = self.tool_wiring.background
        self.diffs = self.tool_wiring.diffs
        self.review_notice = ReviewNotice(self.store, self.scopes.untold, self.alerts, clock)
        self.features = self._make_features(host)
        self.push_devices = StoredPushDevices(host)
        self._push_sender = PushSender(host, people, self.push_devices, self._zone)

        access = LocalAccess(
            host, people, self.tool_wiring, parts.model, parts.authorize, self.features.subagents
        )
        self.authorize = access.authorize
        self.door = LocalDoor(self.store, self.dispatch, self.feed, access, clock, parts.ids)
        self._receiving = self._make_receiving()

        self._set_renderer()
        self.current.open(self)
        self._join_listeners()
        self.share = self._make_share()
        self._runtime = self._make_runtime()

    @property
    def settings(self) -> Settings:
        """The settings that hold now."""
        return self.current.settings

    # What agents are made of: see `reload.AgentSource`

    def make_agent_parts(self, plugins: Plugins) -> AgentParts:
        parts = self.parts
        return AgentParts(
            scopes=self.scopes,
            plugins=plugins,
            clock=parts.clock,
            tools=parts.tools,
            channels={
                "web": PageInstructions(),
                **{each.name: each for each in parts.channels if isinstance(each, Instructing)},
            },
            model=parts.model,
            features=self.features,
            people=self.people,
            background=self.background,
        )

    def feature_tools(self, agent: str) -> tuple[Tool, ...]:
        return self.features.tools(agent)

    def own_tools_changed(self, settings: Settings) -> bool:
        return self.features.own_tools.has_changed(settings) or self.features.mcp.has_changed()

    def on_agents_remade(self) -> None:
        self.dispatch.renew()

    def on_settings_changed(self, settings: Settings) -> None:
        self.redact.update_settings(settings)
        reconfigure_logging(settings)
        self._set_renderer()
        self.parts.renew(settings)
        self.switch.on_settings_changed()
        self.outbox.wake()
        reset_model_health(self.vitals)
        self.dispatch.renew()

    def _open_outbox(self, channels: dict[str, Channel]) -> None:
        """All that shows itself on channels."""
        is_on = self.switch.is_on
        clock = self.parts.clock
        self.drafts = Drafts(self.store, channels, clock, self._reply_target, is_on)
        self.outbox = Outbox(self.store, channels, clock, self.drafts, is_on=is_on)
        self.outbox.preparation = self._spoken
        self.outbox.deferral = Deferral(self.store, clock, self._zone)
        self.ask_status = AskStatus(self.store, channels, is_on)
        self.languages = ReaderLanguages(self.store, self._language)
        localize = make_localize(self.languages)
        self.drafts.localize = self.outbox.localize = self.ask_status.localize = localize
        self.typing_indicator = TypingIndicator(channels, self.dispatch, clock, is_on)

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
            publisher=self.publisher,
            alerts=self.alerts,
            rounds=self.rounds,
            languages=self.languages,
            current=self.current,
            channels=parts.channels,
            people=None if parts.authorize else self.people,
        )

    def _make_features(self, host: RunningHost) -> FeatureWiring:
        parts = self.parts
        features = FeatureWiring(
            host,
            agent=self.current.agent,
            model=parts.model,
            trying=self.current.make_trial_agent,
            hands=self.tool_wiring,
            meaning=parts.meaning,
        )
        features.more_tools = (
            make_channel_tool(lambda: self.settings, self.health),
            *make_room_tools(
                parts.channels, self.switch.is_on, lambda: self.settings.config.timezone
            ),
        )
        return features

    def _make_speech(self) -> SpeechEngines:
        parts = self.parts
        return SpeechEngines(
            lambda: self.settings,
            self.sandbox,
            parts.net,
            self.blobs,
            [each.name for each in parts.channels if isinstance(each, Speaking)],
            engine=parts.speech,
        )

    def _make_receiving(self) -> Receiving:
        strangers = Strangers(self.parts.clock, self.people, self._reject_response, self._language)
        return Receiving(
            self.door,
            self.authorize,
            strangers,
            self.switch,
            self.typing_indicator,
            self.vitals,
        )

    def _make_share(self) -> AgentShare:
        share = AgentShare(
            self.store,
            self.dispatch,
            self,
            self.current.agent_groups,
            self.current.agent_name,
            publish=None if self.settings.home.worker else self._publish_remote,
        )
        if self.store.shares_work:
            self.dispatch.has_agent_of = share.has
        return share

    # What is taken over with an agent: see `agent_share.Workplace`

    async def recover(self, agents: Collection[str]) -> None:
        await self.tool_wiring.recover(agents)
        await self.features.budgets.recover_holds(agents)

    def is_busy(self, agents: Collection[str]) -> bool:
        return self.tool_wiring.background.is_busy(agents)

    def _publish_remote(self, session: str, recorded: Recorded) -> None:
        """Pass on what another worker has written."""
        self.feed.remote.on_event(recorded)
        self.publisher.publish(session, recorded)

    def _make_runtime(self) -> Runtime:
        parts = self.parts
        return Runtime(
            store=self.store,
            models=ModelPool(
                parts.model,
                random.random,
                parts.clock.monotonic,
                stand_ins={SCRIPT_MODEL: self.features.scripts.open},
            ),
            publisher=self.publisher,
            clock=parts.clock,
            ids=parts.ids,
            approvers=UserApprovers(self.store, self.people, self.alerts),
            undo=self.effects,
            closing_notes=self.review_notice,
            secrets=SecretHiding(self.redact),
            pictures=PictureStore(self.blobs.get, self.blobs.path),
            blobs=self.blobs,
            budgets=self.features.budgets,
            ears=self.speech,
        )

    def _join_listeners(self) -> None:
        """Everybody who does something when an event happens, in the order in which they are
        told."""
        self.publisher.join(
            self.background,
            *self.features.listeners(),
            ModelHealth(self.vitals, self._configured_models),
            self.restart,
            RestartOnRequest(self.features.continuing, self.restart),
        )
        if self.parts.channels and not self.settings.home.worker:
            self.publisher.join(self.outbox, self.ask_status)

    def _roles(self) -> Roles:
        return {name: role.agents for name, role in self.settings.config.roles.items()}

    def _guests(self) -> Guests:
        return {
            each.name: each.allow_from if isinstance(each, Allowing) else ()
            for each in self.parts.channels
        }

    async def _restart_in_place(self) -> None:
        """What /restart does when no supervisor restarts this process."""
        await self.current.try_reload()
        await self.features.continuing.hand_in_now()

    def _zone(self) -> tzinfo:
        return ZoneInfo(self.settings.config.timezone)

    def _reject_response(self) -> Response:
        return self.settings.config.reject_response

    def _language(self) -> str:
        return self.settings.config.language

    def _machine_rounds(self) -> int:
        return self.settings.config.machine_rounds

    def _set_renderer(self) -> None:
        """Let the outbox render answers by the settings that hold now."""
        render: Render = render_unchanged
        if self.settings.config.show_usage:
            render = UsageFooter(self.store)
        self._spoken.render = without_secrets(render, self.redact)
        self.outbox.render = self._spoken

    def _open_session(self, session: str) -> Session:
        agent = self.features.agent_in_session(session, self.current.agent_of(session))
        return Session(session, agent, self._runtime)

    def _configured_models(self) -> set[str]:
        settings = self.settings
        return {model for agent in settings.agents for model in settings.agent(agent).models}

    def _reply_target(self, session: str) -> ReplyTarget | None:
        turn = self.dispatch.turn(session)
        if turn is None:
            return self.feed.remote.target(session)
        if turn.principal.kind == "clock":
            return None  # nobody waits for what a job writes
        return ReplyTarget(turn.address, turn.reply_to, turn.id)

    def _on_drive_error(self, session: str, error: DeskhandError, for_good: bool) -> None:
        self.feed.report_trouble(session, error, for_good)
        if isinstance(error, StoreUnavailable):
            self.vitals.record_failure("store", error)

    async def run(
        self,
        started: Callable[[], None] = lambda: None,
        takes: SelectSession = take_all,
    ) -> None:
        """Drive, send and receive until cancelled.

        Waits while another process drives; the page is served meanwhile. A part that fails is
        restarted, so only a damaged database or a failure of the driver ends this. `started` is
        called when sessions are driven, `takes` says which ones (see `Dispatch.run`).
        """
        self.vitals.load()
        if self.settings.home.worker:
            await self._help(started)
            return
        try:
            async with anyio.create_task_group() as beside:
                self._start_children(beside, self._background_children())
                holder = Holder(os.getpid(), self.parts.clock.now())
                lock = hold_lock(
                    self.settings.home.lock, holder, self._is_standby, waits=self.on_up
                )
                async with (
                    lock,
                    self.store.lead(self.on_up),
                    anyio.create_task_group() as tasks,
                ):
                    if not self.store.shares_work:
                        await self.tool_wiring.recover(self.settings.agents)
                    await self._describe_tools()
                    if takes(self.features.jobs.scheduler.session_prefix):
                        await self._record_start()
                    self._start_children(tasks, self._leader_children(started, takes))
                    with self._intake:
                        async with anyio.create_task_group() as intake:
                            self._start_children(intake, self._channel_children())
        except BaseExceptionGroup:  # a part broke: a clean stop is a cancellation
            with suppress(StoreError):
                await self.features.jobs.starts.note_crash()
            raise

    async def _help(self, started: Callable[[], None]) -> None:
        """Drive conversations beside the process that leads, until cancelled. That one receives,
        sends, starts jobs and looks after everything else."""
        self.on_up()
        async with self.store.work(), anyio.create_task_group() as tasks:
            await self._describe_tools()
            self._start_children(tasks, self._worker_children(started))

    async def _describe_tools(self) -> None:
        """Have the files of tools described before anything is driven: it may need them."""
        with anyio.move_on_after(DESCRIBE_S):  # what takes longer comes when it is known
            if not await self.features.own_tools.describe(self.settings):
                return
        self.current.remake_agents()

    async def _record_start(self) -> None:
        """Count this start before anything is driven: the first session may crash the process."""
        try:
            await self.features.jobs.starts.note_start()
        except StoreError as error:
            log.warning("Could not record this start; a crash now is not counted: %s", error)

    def _is_standby(self) -> bool:
        """Whether a supervisor runs whose worker is to drive, possibly in a moment."""
        return not self.supervised and read_holder(self.settings.home.serve_lock) is not None

    def _start_children(self, tasks: TaskGroup, children: Iterable[Child]) -> None:
        for child in children:
            tasks.start_soon(keep_running, child, self.vitals)

    def _background_children(self) -> Iterator[Child]:
        """What runs in this process also while another one drives."""
        yield Child("configuration", self.current.watch)
        serve = self.parts.serve
        if serve is not None:
            yield Child("web", lambda: serve(self), awaited=True)

    def _worker_children(
        self, started: Callable[[], None], takes: SelectSession = take_all
    ) -> Iterator[Child]:
        """What a process that drives conversations runs."""

        def on_driving() -> None:
            self.vitals.record_ready("driver")
            started()

        yield Child(
            "driver",
            lambda: self.dispatch.run(on_driving, takes, self.on_up),
            awaited=True,
            vital=True,
        )
        yield Child("watch", partial(watch_inbox, self.store, self.door, self.dispatch), vital=True)
        yield Child("processes", self.background.run)
        yield Child("tidy", self.tool_wiring.run_tidying)
        yield Child("scripts", self.features.scripts.run)
        yield Child("tools", partial(self.features.own_tools.run, lambda: self.settings))
        yield Child("mcp", self.features.mcp.run)
        yield Child("browsers", self.features.browsers.run)
        yield Child("desktop", self.features.desktop.run)
        yield Child("speech", self.speech.run)
        yield Child("budgets", lambda: self.features.budgets.run(self.features.injector))
        if self.store.shares_work:
            beside_nobody = takes is not take_all
            yield Child("share", partial(self.share.run, beside_nobody=beside_nobody))
        yield Child("health", self.vitals.run)
        path = self.settings.home.socket
        yield Child("socket", lambda: serve_socket(path, self.door.follow, self.health))
        if self.settings.home.worker:
            yield Child("configuration", self.current.watch)
            yield Child("live", self._live_sender.run)
            yield Child("skills", self.features.reviewing.run_decisions)
            yield Child("embedding", self.features.remembering.run_embedding)

    def _leader_children(
        self, started: Callable[[], None], takes: SelectSession
    ) -> Iterator[Child]:
        """What only the process that leads runs."""
        yield from self._worker_children(started, takes)
        if self.store.shares_work:
            yield Child("log of other workers", self.share.run_tail)
            publish = self.publisher.publish
            yield Child("live", partial(receive_live, self.store, self.feed.remote, publish))
        home = self.settings.home
        clock = self.parts.clock
        yield from self.features.children()
        yield Child("notifications", self._push_sender.run)
        yield Child(
            "sweep", partial(run_sweeping, self.store, self.blobs, clock, self.tool_wiring.clean_up)
        )
        yield Child("anchor", partial(run_anchoring, self.store, home.anchors, clock))
        if self.settings.config.traces.endpoint:
            yield Child(
                "traces",
                partial(export_traces, self.settings, self.store, self.parts.net, self.redact),
            )
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
            yield Child(f"channel {channel.name}", partial(self._receiving.run, channel))

    async def drain(self) -> None:
        """Accept nothing more from channels, and wait until all turns rest and their answers are
        sent. What comes in otherwise is stored for the next run."""
        self._intake.cancel()
        await self.features.jobs.starts.note_clean_exit()
        await self.dispatch.drain()
        await self.outbox.drain()

    async def health(self) -> Health:
        """The state of everything now. A test write checks the disk, at most every 5 seconds."""
        for channel in self.parts.channels:
            if isinstance(channel, Healthy) and self.switch.is_on(channel.name):
                report = channel.health()
                self.vitals.record_report(
                    f"channel {channel.name}", report.ok_at, report.error_at, report.error
                )

        found = [
            await self._checkup.check_store(),
            await self._checkup.check_outbox(),
            sandbox_fact(self.sandbox),
        ]
        facts = {fact.name: fact for fact in self.vitals.facts()}  # as they are after the checks
        if "driver" not in facts:
            found.append(driver_fact(read_holder(self.settings.home.lock)))
        found.append(self.current.health_fact())
        found += await self.features.jobs.health_facts()
        found += await self.alerts.health_facts()
        found.append(self._people_fact())
        if workers := await self.store.workers():
            found.append(workers_fact(workers))
        facts |= {fact.name: fact for fact in found}

        known = tuple(facts.values())
        return Health(
            state=combine_states(known),
            at=self.parts.clock.now(),
            version=version("deskhand"),
            pid=os.getpid(),
            since=self._started_at,
            address=self.address,
            facts=known,
        )

    def _people_fact(self) -> HealthFact:
        problem = self.people.health()
        return HealthFact("people", "degraded" if problem else "ok", problem)

    async def close(self) -> None:
        for channel in self.parts.channels:
            if isinstance(channel, Closing):
                await channel.close()
        self.scopes.close()
        await self.store.close()


class RestartOnRequest:
    """Restarts when a call of the restart tool is on disk."""

    listens_to = (ToolFinished,)

    def __init__(self, continuing: Continuing, restart: Restart) -> None:
        self._continuing = continuing
        self._restart = restart

    def on_event(self, recorded: Recorded) -> None:
        if self._continuing.is_restart_request(recorded):
            self._restart.request()


def _channels_by_name(parts: Parts, *, sends: bool) -> dict[str, Channel]:
    """The channels by which this process `sends`. Raises ConfigError for a name that none may
    have."""
    channels = {channel.name: channel for channel in parts.channels}
    for name in channels:
        if name in RESERVED_CHANNELS:
            raise ConfigError(
                f"a channel cannot be called {name!r}: Deskhand uses that name itself"
            )
    return channels if sends else {}


def with_channels(parts: Parts, settings: Settings) -> Parts:
    """These parts, with the channels of the configuration added."""
    channels = open_channels(settings, Blobs(settings.home.blobs), parts.clock)
    return replace(parts, channels=(*parts.channels, *channels))


def _open_database(settings: Settings, parts: Parts) -> Store:
    if parts.store is None:
        return open_store(settings, parts.statements)
    return parts.store(settings.home.database, {**load_statements(), **parts.statements})


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
