"""When no job runs: paused by a person, or because Deskhand crashed again and again."""

from __future__ import annotations

import logging

import anyio

from ..assembly.host import Host
from ..supervision.lock import read_holder
from ..types.errors import StoreError
from ..types.health import HealthFact
from ..types.marked_texts import mark_text
from .ledger import (
    add_start,
    count_starts,
    drop_pause,
    drop_start,
    expire_starts,
    forget_starts,
    set_pause,
    stored_pause,
)

log = logging.getLogger(__name__)

RESUME_COMMAND = "deskhand jobs resume"


async def pause_reason(host: Host) -> str:
    """Why no job runs now, or ''."""
    if not host.settings().config.jobs.enabled:
        return mark_text("`jobs.enabled` is false in the configuration")
    return await stored_pause(host.store)


async def pause_all(host: Host, why: str) -> None:
    """Start no job any more, until `resume_all`. Jobs that run now go on."""
    log.warning("All jobs are paused: %s. To resume: %s", why, RESUME_COMMAND)
    await host.store.change([set_pause(why, host.clock.now())])


async def resume_all(host: Host) -> str:
    """End the pause. Returns why jobs were paused, or '' when they were not.

    Earlier crashes no longer count. A crash of the process that runs now still does.
    """
    why = await pause_reason(host)
    is_running = read_holder(host.settings().home.lock) is not None
    await host.store.change([drop_pause(), forget_starts(keep_latest=is_running)])
    if why:
        log.info("Jobs run again. They were paused: %s", why)
    return why


async def pause_facts(host: Host) -> list[HealthFact]:
    """What the health says of jobs; nothing when they run."""
    if not host.settings().config.jobs.enabled:
        return [HealthFact("jobs", "ok", mark_text("switched off (jobs.enabled)"))]
    why = await pause_reason(host)
    if not why:
        return []
    hint = mark_text("To resume: {command}").format(command=RESUME_COMMAND)
    return [HealthFact("jobs", "degraded", f"paused: {why}", last_error=hint)]


class ProcessStarts:
    """Starts of Deskhand of which the store keeps those that ended in a crash.

    Each process adds its start, and deletes it when it ends in good order.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._started_at: float | None = None
        self._has_left = False
        self.crashes = 0
        """How many processes crashed within `jobs.storm_minutes` before this one started."""

    @property
    def is_noted(self) -> bool:
        return self._started_at is not None

    async def note_start(self) -> None:
        """This process begins to drive. Until it ends in good order, it counts as one that
        crashed. Raises StoreError."""
        store = self._host.store
        now = self._host.clock.now()
        since = now - 60.0 * self._host.settings().config.jobs.storm_minutes
        await store.change([expire_starts(since, now)])
        self.crashes = await count_starts(store, since, now)
        await store.change([add_start(now)])
        self._started_at = now

    async def note_clean_exit(self) -> None:
        """This process was told to end. That is no crash, however long the end takes."""
        if self._started_at is None or self._has_left:
            return
        self._has_left = True
        with anyio.CancelScope(shield=True):
            try:
                await self._host.store.change([drop_start(self._started_at)])
            except StoreError as error:
                log.warning("The end of this process will count as a crash: %s", error)

    async def note_crash(self) -> None:
        """This process ends because a part of it broke. Raises StoreError."""
        if self._started_at is not None and self._has_left:
            self._has_left = False
            await self._host.store.change([add_start(self._started_at)])


async def pause_after_crashes(host: Host, starts: ProcessStarts, holder: str) -> None:
    """Pause all jobs when Deskhand crashed too often in a short time: a job may be the cause.

    Owners are told once for each process (`holder`).
    """
    config = host.settings().config.jobs
    if not config.storm_starts or starts.crashes < config.storm_starts:
        return
    if await pause_reason(host):
        return
    why = mark_text(
        "Deskhand crashed {crashes} times within {storm_minutes_number} minutes, "
        "and a job may be the cause"
    ).format(crashes=starts.crashes, storm_minutes_number=f"{config.storm_minutes:g}")
    text = mark_text(
        "All jobs are paused: {why_text}. See `deskhand jobs`. To resume: `{resume_command}`"
    ).format(why_text=why, resume_command=RESUME_COMMAND)
    alert = await host.alerts.alert_owners(f"storm:{holder}", text)
    await host.store.change([set_pause(why, host.clock.now()), *alert])
