"""Asks each part how it is: what is found out here and now, beside the facts that the parts leave
behind."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Sequence

import msgspec

from ..config.config import Home, Settings
from ..store.base import Store, WorkerRow
from ..types.clock import Clock
from ..types.errors import StoreError
from ..types.events import ModelFailed, ModelReplied, Recorded
from ..types.health import HealthFact, HealthState
from ..types.marked_texts import mark_text
from ..types.sizes import format_size
from ..types.subagents import SCRIPT_MODEL
from ..workspace.scope import SandboxProvider
from . import queries
from .health_facts import Vitals
from .lock import Holder

MIN_FREE_BYTES = 100_000_000
"""Less is told while there is still time."""
FRESH_S = 5.0
"""So long an attempt to write counts; nobody makes us write by asking."""
LATE_S = 300.0
"""What was not sent for so long is told."""
PROVIDER_FAULT_S = 900.0
"""So long a provider's failure counts where it is not asked again; no cooldown is longer."""
NOT_ITS_FAULT = frozenset({"ContextOverflow", "BudgetSpent", "AnswerUnfit"})
"""Failures that say something of a conversation or a budget, and nothing of the provider. The text
of an answer that does not fit a program's schema is that program's alone."""
PERMANENT_ERRORS = frozenset({"ModelKeyRefused", "ModelUnknown"})
"""Failures of a model that no time mends, but a person."""
MODEL_PREFIX = "model "
"""How the names of providers begin, among the parts."""


class ConfigProblem(msgspec.Struct, frozen=True):
    """Why the configuration in the file does not hold, and since when."""

    text: str
    at: float


class Checkup:
    """Tries out what is only known by trying. `vitals` are left a note of each attempt."""

    def __init__(self, store: Store, home: Home, vitals: Vitals, clock: Clock) -> None:
        self._store = store
        self._home = home
        self._vitals = vitals
        self._clock = clock
        self._tried_at: float | None = None

    async def check_store(self) -> HealthFact:
        """Whether anything can be written now: to the database's lock, and to the disk under it."""
        now = self._clock.monotonic()
        if self._tried_at is None or now - self._tried_at >= FRESH_S:
            self._tried_at = now
            try:
                await self._store.change(())
                await self._vitals.write()
            except (StoreError, OSError) as error:
                self._vitals.record_failure("store", error)
            else:
                self._vitals.record_success("store")
        known = self._vitals.get("store")
        free = shutil.disk_usage(self._home.state).free
        state: HealthState = (
            "down" if known.failures else "degraded" if free < MIN_FREE_BYTES else "ok"
        )
        detail = (
            mark_text("{free_size} are free")
            if known.failures == 0
            else mark_text("nothing can be written; {free_size} are free")
        ).format(free_size=format_size(free))
        last = (known.last_success_at, known.last_error, known.last_error_at)
        return HealthFact("store", state, detail, None, *last, vital=True)

    async def check_outbox(self) -> HealthFact:
        """What is still to be sent, and whether it is late."""
        owed = await queries.owed_messages(self._store)
        working = await queries.count_owed_sessions(self._store)
        late = owed.oldest_at is not None and self._clock.now() - owed.oldest_at > LATE_S
        detail = (
            mark_text("{count_number} to be sent").format(count_number=owed.count)
            if owed.count
            else mark_text("nothing to be sent")
        )
        if working:
            detail = mark_text("{detail_text}, {working_number} conversations to continue").format(
                detail_text=detail, working_number=working
            )
        return HealthFact(
            "owed",
            "degraded" if late else "ok",
            detail,
            owed.oldest_at,
            last_error=owed.error,
        )


def workers_fact(workers: Sequence[WorkerRow]) -> HealthFact:
    """Who drives which agents, where several processes may."""
    leads = any(row.leads for row in workers)
    shown = "; ".join(
        f"{row.name} {'(server)' if row.leads else '(worker)'}: {', '.join(row.agents) or 'none'}"
        for row in workers
    )
    problem = "" if leads else mark_text("no server runs, so nothing is received or sent")
    return HealthFact("workers", "ok" if leads else "degraded", shown, last_error=problem)


def driver_fact(holder: Holder | None) -> HealthFact:
    """Who drives, where that is not this process, or not yet."""
    if holder is None or holder.pid == os.getpid():
        return HealthFact("driver", "starting", mark_text("no process is active yet"), vital=True)
    said = (
        mark_text("process {pid} is active; this one takes over when it ends").format(
            pid=holder.pid
        )
        if holder.pid
        else mark_text("another process is active; this one takes over when it ends")
    )
    since = holder.since or None
    return HealthFact("driver", "ok", said, since, vital=True)


def sandbox_fact(room: SandboxProvider) -> HealthFact:
    """Whether commands can be run, and what was proven."""
    if room.problem:
        return HealthFact(
            "sandbox",
            "degraded",
            mark_text("no command is run"),
            last_error=room.problem,
            last_error_at=room.checked_at,
        )
    return HealthFact(
        "sandbox",
        "ok",
        room.proof or mark_text("tested before the first command"),
        None,
        room.checked_at,
    )


def configuration_fact(
    settings: Settings, problem: ConfigProblem | None, restart: Sequence[str]
) -> HealthFact:
    """Which configuration holds, and what it says that is not in force."""
    if problem is not None:
        held = mark_text("the last valid configuration is used")
        return HealthFact(
            "configuration", "degraded", held, last_error=problem.text, last_error_at=problem.at
        )
    if restart:
        return HealthFact(
            "configuration",
            "degraded",
            mark_text("a restart is needed for: {keys}").format(keys=", ".join(restart)),
        )
    return HealthFact("configuration", "ok", "; ".join(settings.warnings) or str(settings.file))


class ModelHealth:
    """Notes how the providers of models are. `configured` gives the models that agents are set to
    use."""

    listens_to = (ModelReplied, ModelFailed)

    def __init__(self, vitals: Vitals, configured: Callable[[], Collection[str]]) -> None:
        self._vitals = vitals
        self._configured = configured

    def on_event(self, recorded: Recorded) -> None:
        match recorded.event:
            case ModelReplied(model=model) | ModelFailed(model=model) if model.startswith(
                SCRIPT_MODEL
            ):
                pass
            case ModelReplied(model=model):
                self._vitals.record_success(MODEL_PREFIX + model.partition("/")[0])
            case ModelFailed() as failed if failed.error not in NOT_ITS_FAULT:
                self._record_failure(failed)
            case _:
                pass

    def _record_failure(self, failed: ModelFailed) -> None:
        stays = failed.error in PERMANENT_ERRORS and failed.model in self._configured()
        name = MODEL_PREFIX + failed.model.partition("/")[0]
        counts_s = None if stays else PROVIDER_FAULT_S
        self._vitals.record_failure(name, f"{failed.error}: {failed.detail}", counts_s)


def reset_model_health(vitals: Vitals) -> None:
    """Models or their keys may be others from now on: only what they do next says how their
    providers are."""
    vitals.reset_failures(MODEL_PREFIX)
