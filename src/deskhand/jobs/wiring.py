"""Puts the parts of jobs together."""

from __future__ import annotations

from collections.abc import Iterator

from ..assembly.host import Host
from ..gateway.inject import InboundInjector
from ..gateway.publisher import Listener
from ..supervision.restart_with_backoff import Child
from ..tools.base import Tool
from ..types.health import HealthFact
from .backup_job import BackupJob
from .builtins import BuiltinJobs
from .cron_tool import CronTool
from .files import JobFiles
from .heartbeat import Heartbeat
from .jobs_api import JobsApi
from .manage_tool import ManageJob
from .pages import JobPages
from .pause import ProcessStarts, pause_facts
from .runs import JobRuns
from .scheduler import JobScheduler
from .sources import HostSources
from .triggers.broker import keep_listening
from .triggers.triggers import Triggering, TriggerTarget


class JobWiring:
    """The jobs of one App. `builtins` are jobs that come with Deskhand, apart from the heartbeat
    and backups."""

    def __init__(self, host: Host, injector: InboundInjector, builtins: BuiltinJobs) -> None:
        self._host = host
        self._sources = HostSources(host)
        self.heartbeat = Heartbeat(host, injector)
        backups = BackupJob(host)
        self.files = JobFiles(
            host.settings().home.root / "jobs",
            zone=lambda: host.settings().config.timezone,
            builtins=(builtins.builtin_jobs, self.heartbeat.builtin_jobs, backups.builtin_jobs),
        )
        self.runs = JobRuns(
            host,
            injector,
            self.files,
            holder=host.ids.new("boot"),
            chores={**builtins.chores(), **self.heartbeat.chores(), **backups.chores()},
        )
        self.starts = ProcessStarts(host)
        self.scheduler = JobScheduler(host, self.files, self.runs, self.starts)
        self.triggering = Triggering(host.store, host.clock, self.scheduler, self._sources)
        self.api = JobsApi(host, self.files, self.scheduler)
        self.pages = JobPages(self.api, self.triggering, self.files)
        self.tools: tuple[Tool, ...] = (CronTool(self.api), ManageJob(self.api, self.files.root))

    def children(self) -> Iterator[Child]:
        """Tasks of the process that drives conversations."""
        yield Child("jobs", self.scheduler.run)
        yield Child("triggers", self.triggering.run)
        yield Child("broker", self._listen_to_broker)
        yield Child("heartbeat", self.heartbeat.run)

    async def _listen_to_broker(self) -> None:
        await keep_listening(self.triggering, self._sources.find_broker, self._host.clock)

    def listeners(self) -> tuple[Listener, ...]:
        """What is told of events."""
        return (self.triggering, self.heartbeat, self.runs)

    async def health_facts(self) -> list[HealthFact]:
        """What the health says of jobs."""
        return await pause_facts(self._host)


_target: type[TriggerTarget] = JobScheduler
