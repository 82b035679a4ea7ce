"""Puts together how people and agents make jobs, and what sets them off beside a time."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

import anyio.to_thread
from msgspec.structs import replace

from ..assembly.host import Host
from ..config.config import workspace_of
from ..config.sections import HeartbeatConfig
from ..gateway.inject import InboundInjector
from ..policy.roles import may_talk
from ..supervision.restart_with_backoff import Child
from ..tools.approved import bound_of
from ..tools.base import Context, Tool
from ..tools.label_marks import marks_in
from ..tools.pages import read_page
from ..tools.paths import Place
from ..tools.queries import approved_digests
from ..types.commit import Change
from ..types.errors import JobInvalid
from ..types.events import Recorded
from ..types.identity import SYSTEM, Address, Inbound, Principal, Said, responsible_person
from ..types.jobs import Job
from ..types.labels import LOCAL, Label
from ..types.messages import Message, Text
from ..types.people import OWNER_NAME
from ..types.schedules import parse_schedule
from .cron_tool import CronTool
from .heartbeat import NAME as HEARTBEAT
from .heartbeat import Heartbeat, HeartbeatBody
from .jobs import Jobs
from .jobs_api import JobsApi
from .manage_tool import ManageJob
from .per_person import OwnJobs, Rules
from .text import JobForecast, forecast_job
from .triggers.broker import MessageBroker, Wants, keep_listening
from .triggers.triggers import Fires, Looks, Triggering
from .using import Using

log = logging.getLogger(__name__)

RESCAN_S = 2.0
"""How soon a file of a job that was changed by hand is seen by what sets it off."""
FORECAST_RUNS = 20
"""So many of its last runs say what the next will take."""


class TriggerWiring:
    """The jobs that can run, as those need them who set them off."""

    def __init__(self, ground: Host, jobs: Jobs) -> None:
        self._ground = ground
        self._jobs = jobs
        self._at = float("-inf")
        self._found: tuple[Job, ...] = ()

    async def list_jobs(self) -> Sequence[Job]:
        """The same object as long as none has changed."""
        if (now := self._ground.clock.monotonic()) - self._at >= RESCAN_S:
            self._at = now
            files = await anyio.to_thread.run_sync(self._jobs.files)
            found = tuple(
                each.job for each in files.values() if each.job is not None and each.job.on
            )
            if found != self._found:
                self._found = found
        return self._found

    def invalidate(self) -> None:
        """One has changed."""
        self._at = float("-inf")

    async def trigger(self, name: str, slot: str, payload: Text) -> bool:
        """See Jobs."""
        return await self._jobs.trigger(name, slot, payload)


class Automation:
    """One for an App."""

    def __init__(self, ground: Host, jobs: Jobs, waker: InboundInjector) -> None:
        self._ground = ground
        self._jobs = jobs
        self._waker = waker
        folder = ground.settings().home.root / "jobs"
        rules = Rules(
            self._agents, self._may_talk, self._models, self._takes_part, self._zone, ground.redact
        )
        shelf = TriggerWiring(ground, jobs)
        own = OwnJobs(jobs, rules, shelf.invalidate)
        self.using = Using(
            own, self._zone, ground.clock.now, lambda: self._agents()[0], self._forecast
        )
        looks = Looks(
            self._workspace, self._fetch_page, self._find_secret, self._agent, self._labels
        )
        self.triggering = Triggering(ground.store, ground.clock, shelf, looks)
        body = HeartbeatBody(
            ground.store,
            ground.clock,
            self._agent_workspace,
            self._is_untrusted,
            self._zone,
            self._ask_agent,
        )
        self.heartbeat = Heartbeat(body)
        jobs.chores[HEARTBEAT] = self.heartbeat.beat
        jobs.builtins.append(self._builtin_jobs)
        self.api = JobsApi(self.using, self.triggering, folder)
        self.tools: tuple[Tool, ...] = (CronTool(self.using), ManageJob(self.using, folder))

    def children(self) -> Iterator[Child]:
        """What only the process that drives may do."""
        yield Child("triggers", self.triggering.run)
        at = self.triggering
        wants = Wants(self._make_broker, at.topics, at.on_message, at.report_broker_problem)
        yield Child("broker", lambda: keep_listening(wants))
        yield Child("heartbeat", self.heartbeat.run)

    def on_event(self, recorded: Recorded) -> None:
        """An event passes. Never waits."""
        self.triggering.on_event(recorded)
        self.heartbeat.on_event(recorded)

    # What people may

    def _agents(self) -> Sequence[str]:
        return self._ground.settings().agents

    def _models(self) -> set[str]:
        settings = self._ground.settings()
        return {model for agent in settings.agents for model in settings.agent(agent).models}

    def _may_talk(self, principal: Principal, agent: str) -> bool:
        custom = {name: role.agents for name, role in self._ground.settings().config.roles.items()}
        return may_talk(Principal(responsible_person(principal), principal.roles), agent, custom)

    async def _takes_part(self, person: str, session: str) -> bool:
        rows = await self._ground.store.query("session_members", (session,))
        return (person,) in [tuple(row) for row in rows]

    def _zone(self) -> str:
        return self._ground.settings().config.timezone

    async def _forecast(self, job: Job) -> JobForecast:
        store = self._ground.store
        now = self._ground.clock.now()
        await store.usage(SYSTEM, now)  # what was used is counted when it is asked for
        rows = await store.query("job_tokens", (job.name, FORECAST_RUNS))
        used = [int(tokens) for (tokens,) in rows if tokens]
        return forecast_job(job, used, self._zone(), now)

    # The heartbeat

    def _builtin_jobs(self) -> Iterator[Job]:
        """The job without a file, as the configuration has it now."""
        config = self._ground.settings().config.heartbeat
        about = "look after what stands in HEARTBEAT.md, where something is new or due"
        every = f"every {config.every}"
        agent = config.agent if config.agent in self._agents() else self._agents()[0]
        try:
            parse_schedule(every)
        except JobInvalid as error:
            log.warning("heartbeat.every: %s", error)
            every = f"every {HeartbeatConfig().every}"
        job = Job(
            HEARTBEAT, "", about, every, agent=agent, kind="chore", chore=HEARTBEAT, misfire="skip"
        )
        yield replace(job, enabled=config.enabled)

    def _agent_workspace(self, agent: str) -> str:
        return str(workspace_of(self._ground.settings(), agent).resolve())

    async def _labels(self, job: Job, paths: Sequence[str]) -> Sequence[Label]:
        """Whose word each of these files of the job's workspace is, and its name."""
        if not paths:
            return ()
        marks = await marks_in(
            await self._ground.agent_of(f"{job.agent or self._agents()[0]}/").open_scope()
        )
        return await anyio.to_thread.run_sync(
            lambda: [marks.told_by_name((path,)) for path in paths]
        )

    async def _is_untrusted(self, agent: str, place: Place) -> bool:
        """Whether untrusted words went into what was read there, or those of somebody who is no
        owner, or it was changed since it was approved."""
        marks = await marks_in(await self._ground.agent_of(f"{agent}/").open_scope())
        path = place.real
        approved = await approved_digests(self._ground.store)
        bound = await anyio.to_thread.run_sync(bound_of, approved)
        if bound.differs(path) or bound.covers(path):
            return bound.differs(path)
        label = marks.of(place)
        return label.integrity == "untrusted" or bool(label.by)

    async def _ask_agent(self, job: Job, prompt: str, rows: Sequence[Change]) -> str:
        """Put it to the agent, in a conversation of its own, and write these rows with it. Returns
        its name."""
        ground = self._ground
        now = self._ground.clock.now()
        who = await ground.with_current_roles(Principal(OWNER_NAME, ("owner",)))
        principal = Principal(f"job:{job.name}", who.roles, "clock", OWNER_NAME)
        channel, _, chat = ground.settings().config.heartbeat.to.partition(":")
        address = Address(channel, "", chat) if chat else Address("job", "", job.name)
        session = f"{job.agent}/job:{job.name}:{int(now)}"
        id_ = f"{job.name}:{now}"
        said = Said(Message("user", (Text(prompt, Label(LOCAL.integrity, None, principal.id)),)))
        await self._waker.hand_in(
            Inbound(id_, address, principal.id, now, said, session, when="queue"), principal, rows
        )
        return session

    # How the world is looked at

    def _agent(self, job: Job) -> str:
        agents = self._agents()
        return job.agent if job.agent in agents else agents[0]

    def _workspace(self, job: Job) -> Path:
        return workspace_of(self._ground.settings(), self._agent(job)).resolve()

    async def _fetch_page(self, job: Job, url: str) -> str:
        ground = self._ground
        agent = self._agent(job)
        fetched = await ground.net.get(url)
        session = f"{agent}/job:{job.name}"
        who = Principal(f"job:{job.name}", (), "clock", job.person or OWNER_NAME)
        reach = await ground.agent_of(session).open_scope()
        place = (session, who, Address("job", "", job.name), agent, reach)
        context = Context(*place, ground.clock, ground.ids, lambda text: None, f"{session}:page")
        return (await read_page(fetched, "", context)).text

    def _find_secret(self, name: str) -> str:
        return next(
            (each.value for each in self._ground.secrets.list_secrets() if each.name == name), ""
        )

    async def _make_broker(self) -> MessageBroker | None:
        config = self._ground.settings().config.jobs.mqtt
        ground = self._ground
        if not config.host:
            return None
        password = self._find_secret(config.secret) if config.username else ""
        me = await self._broker_client_id()
        told = self.triggering.report_broker_problem
        place = (config.host, config.port, config.username, password, me, config.tls)
        return MessageBroker(*place, lambda: told(""), ground.clock.now)

    async def _broker_client_id(self) -> str:
        """By which a broker knows this home for ever."""
        rows = await self._ground.store.query("trigger_seen", ("", "mqtt"))
        if rows:
            return str(rows[0][0])
        name = self._ground.ids.new("deskhand")
        await self._ground.store.change(
            (Change("trigger_saw", ("", "mqtt", name, self._ground.clock.now())),)
        )
        return name


_fires: type[Fires] = TriggerWiring
