"""Backups that are made by themselves, as the configuration says."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

import anyio

from ..assembly.host import Host
from ..config.config import Settings
from ..supervision.backup import make_backup
from ..supervision.backup_places import open_place, prune_backups
from ..types.errors import DeskhandError, JobInvalid
from ..types.jobs import Job
from ..types.schedules import parse_schedule
from ..types.sizes import format_size
from .builtins import Chore

log = logging.getLogger(__name__)
NAME = "backup"


class BackupJob:
    """The builtin job `backup`, and the chore that it does. It implements `BuiltinJobs`."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def builtin_jobs(self) -> Iterator[Job]:
        """The job as the configuration has it now; none where it names no folder."""
        config = self._host.settings().config.backup
        if not config.folder:
            return
        schedule = config.schedule
        try:
            parse_schedule(schedule)
        except JobInvalid as error:
            log.warning("backup.schedule: %s", error)
            schedule = type(config)().schedule
        yield Job(
            NAME,
            description="back up the home, and verify the backup",
            schedule=schedule,
            agent=self._host.settings().agents[0],
            kind="chore",
            chore=NAME,
        )

    def chores(self) -> Mapping[str, Chore]:
        return {NAME: self.make}

    async def make(self, job: Job) -> str:
        """Make a backup, and delete those that are too many. Raises DeskhandError, OSError."""
        settings = self._host.settings()
        now = self._host.clock.now()
        return await anyio.to_thread.run_sync(_back_up, settings, now)  # beside the conversations


def _back_up(settings: Settings, now: float) -> str:
    """Make a backup, and delete what is too much. Returns what was done."""
    config = settings.config.backup
    place = open_place(settings, config.folder)
    made, listed = make_backup(settings, place, now=now, recipient=config.recipient)
    try:
        gone = prune_backups(place, made, config.keep)
        rest = f"; {len(gone)} older ones were deleted" if gone else ""
    except (DeskhandError, OSError) as error:
        rest = f"; an older one could not be deleted: {error}"
    rest += "".join(f"; not in it: {each}" for each in listed.left_out[:3])
    return f"{made.address}: {format_size(made.size)}, {listed.events:,} events, verified{rest}"
