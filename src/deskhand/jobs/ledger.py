"""The rows of jobs: what was due, what became of it, and how far the clock has come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..store.base import Store
from ..tools.label_marks import lasting
from ..types.commit import Change
from ..types.jobs import Counters, Job, Run, RunState
from ..types.labels import LOCAL, Label
from ..types.messages import Text

_encode = msgspec.json.encode
_job = msgspec.json.Decoder(Job).decode
_text = msgspec.json.Decoder(Text).decode
_label = msgspec.json.Decoder(Label).decode
RETENTION_S = 30 * 24 * 3600.0
FREQUENT_RETENTION_S = 24 * 3600.0
"""For so long is kept what became of each time; of a job that comes all the time, the last ten
thousand and a day."""


class RunEntry(msgspec.Struct, frozen=True):
    """A run with the job as it was then, what an event brought along, the last event of its
    conversation before it, and who looks after it."""

    run: Run
    job: Job
    payload: Text | None = None
    after_n: int = 0
    holder: str = ""

    @property
    def key(self) -> str:
        """Names this run for ever, wherever it shows."""
        return f"job:{self.run.job}@{self.run.slot}"


class JobRecord(msgspec.Struct, frozen=True):
    """What is known of a job beside its file: see the table. `alerts` is below zero while the owner
    was told nothing of the failures that go on now, but was of earlier ones."""

    job: str
    seen_at: float
    plan: str
    counters: Counters = Counters()
    failures: int = 0
    alerts: int = 0
    alerted_at: float = 0.0


class RunLedger(msgspec.Struct, frozen=True):
    """Reads them, and says how they are to be changed. `holder` names this process."""

    store: Store
    holder: str

    async def open_runs(self) -> list[RunEntry]:
        """What is not over, the oldest first."""
        return [_entry(row) for row in await self.store.query("job_run_open", ())]

    async def get(self, job: str, slot: str) -> RunEntry | None:
        rows = await self.store.query("job_run_get", (job, slot))
        return _entry(rows[0]) if rows else None

    async def runs(self, job: str, limit: int) -> list[Run]:
        """The latest first."""
        return [_entry(row).run for row in await self.store.query("job_run_list", (job, limit))]

    async def last_runs(self) -> dict[str, Run]:
        """The latest run of each job."""
        return {row[0]: _entry(row).run for row in await self.store.query("job_run_last", ())}

    async def states(self) -> dict[str, JobRecord]:
        return {row[0]: _state(row) for row in await self.store.query("job_state_all", ())}

    async def state(self, job: str) -> JobRecord:
        rows = await self.store.query("job_state_get", (job,))
        return _state(rows[0]) if rows else JobRecord(job, 0.0, "")

    async def prune(self, now: float) -> None:
        """Forget what is old."""
        while old := await self.store.query(
            "job_run_old", (now - RETENTION_S, now - FREQUENT_RETENTION_S)
        ):
            which = (msgspec.json.encode(old).decode(),)
            await self.store.change(
                [Change("job_run_forget", which), Change("job_run_slim", which)]
            )

    async def hook_state_label(self, job: str) -> Label:
        """Whose word it may be what its hooks have kept for the next time."""
        rows = await self.store.query("job_label_get", (f"job:{job}",))
        return _label(rows[0][0]) if rows else LOCAL

    async def result_labels(self) -> dict[str, Label]:
        """Whose word it is what the last run of each job came to, where it is not this house's
        own."""
        return {
            str(job): _label(label) for job, label in await self.store.query("job_label_said", ())
        }

    def claim(self, entry: RunEntry, state: RunState, now: float, lease_s: float) -> Change:
        """It is begun: written before anything is done."""
        run = entry.run
        head = (run.job, run.slot, state, run.due_at, _encode(entry.job), _payload(entry.payload))
        return Change(
            "job_run_claim", (*head, run.session, entry.after_n, self.holder, now + lease_s, now)
        )

    def renew_lease(self, entry: RunEntry, until: float) -> Change:
        return Change("job_run_hold", (self.holder, until, entry.run.job, entry.run.slot))


def add_run(entry: RunEntry, state: RunState, at: float | None = None, said: str = "") -> Change:
    """A run that waits, or, with the time `at`, one that is over without having begun: of that one
    only the name is kept, lest what comes all the time and is never run fills the disk."""
    run = entry.run
    job, payload = (entry.job, entry.payload) if at is None else (Job(run.job), None)
    row = (run.job, run.slot, state, run.due_at, _encode(job), _payload(payload))
    return Change("job_run_add", (*row, at, said))


def end_run(run: Run, state: RunState, at: float, said: str) -> Change:
    return Change("job_run_end", (state, at, said, run.job, run.slot))


def mark_finishing(run: Run, until: float) -> Change:
    return Change("job_run_finish", (until, run.job, run.slot))


def set_seen_at(job: str, at: float) -> Change:
    """The clock has come so far."""
    return Change("job_state_seen", (at, job))


def set_plan(job: str, at: float, plan: str) -> Change:
    return Change("job_state_set", (job, at, plan))


def add_counts(
    job: str, *, runs: int = 0, errors: int = 0, gates: int = 0, skips: int = 0
) -> Change:
    return Change("job_state_count", (job, runs, errors, gates, skips))


def set_result_label(run: Run, label: Label, at: float) -> Change:
    """What this run came to, the last one of its job, has this label."""
    return _set_label(f"job-said:{run.job}", run, label, at)


def set_hook_state_label(run: Run, label: Label, at: float) -> Change:
    """What the hooks of its job keep may have this label from now on."""
    return _set_label(f"job:{run.job}", run, label, at)


def _set_label(name: str, run: Run, label: Label, at: float) -> Change:
    if not lasting(label):
        return Change("file_label_drop", (name,))
    return Change("file_label_set", (name, _encode(label), run.session, at))


def set_alert_state(state: JobRecord) -> Change:
    return Change("job_state_told", (state.failures, state.alerts, state.alerted_at, state.job))


def _state(row: tuple[Any, ...]) -> JobRecord:
    job, seen_at, plan, runs, errors, gates, skips, failures, alerts, alerted_at = row
    return JobRecord(
        job, seen_at, plan, Counters(runs, errors, gates, skips), failures, alerts, alerted_at
    )


def _payload(payload: Text | None) -> bytes | None:
    return None if payload is None else _encode(payload)


def _entry(row: tuple[Any, ...]) -> RunEntry:
    run = Run(*row[:10])
    (body, payload, after_n, holder) = row[10:]
    return RunEntry(run, _job(body), None if payload is None else _text(payload), after_n, holder)


def last_result(runs: Mapping[str, Run], job: str) -> str:
    """The last result as operator-ai calls it: success, error, gated, skipped; '' for none."""
    run = runs.get(job)
    if run is None:
        return ""
    return {"done": "success", "interrupted": "error", "missed": "skipped"}.get(
        run.state, run.state
    )
