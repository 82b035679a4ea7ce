"""The tables of jobs: what was due and what became of it, pauses, and starts of the process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..store.base import Store
from ..tools.label_marks import needs_mark
from ..tools.queries import drop_label, find_label, set_label
from ..types.commit import Change
from ..types.jobs import Counters, Job, Run, RunState
from ..types.labels import LOCAL, Label
from ..types.messages import Text

RETENTION_S = 30 * 24 * 3600.0
FREQUENT_RETENTION_S = 24 * 3600.0
"""How long ended runs are kept. Of a job that runs all the time, the last ten thousand runs and one
day are kept."""

_encode = msgspec.json.encode
_decode_job = msgspec.json.Decoder(Job).decode
_decode_text = msgspec.json.Decoder(Text).decode
_decode_label = msgspec.json.Decoder(Label).decode


class RunEntry(msgspec.Struct, frozen=True):
    """A run with the job as it was then.

    `payload` is what the event that started it brought along. `after_n` is the number of the last
    event in its conversation before the run. `holder` is the process that looks after it.
    """

    run: Run
    job: Job
    payload: Text | None = None
    after_n: int = 0
    holder: str = ""

    @property
    def key(self) -> str:
        """The name of this run in the log, the inbox and the outbox. No other run has it."""
        return f"job:{self.run.job}@{self.run.slot}"


class JobRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored about a job apart from its file; one row of `job_state`.

    `seen_at` is up to when its times are decided, under the schedule `plan`. `failures` counts the
    failed runs in a row. `alerts` counts what owners were told of them; it is negative while owners
    were told of earlier failures and not of the present ones.
    """

    job: str
    seen_at: float = 0.0
    plan: str = ""
    counters: Counters = Counters()
    failures: int = 0
    alerts: int = 0
    alerted_at: float = 0.0


def new_run(job: Job, slot: str, due_at: float, payload: Text | None = None) -> RunEntry:
    """A run of this job that has not begun."""
    return RunEntry(Run(job.name, slot, "waiting", due_at), job, payload)


# Runs


async def open_runs(store: Store) -> list[RunEntry]:
    """Runs that have not ended, the earliest due first."""
    return [_parse_entry(row) for row in await store.query("job_run_open", ())]


async def find_run(store: Store, job: str, slot: str) -> RunEntry | None:
    """The run of this slot, or None when the slot is not decided yet."""
    rows = await store.query("job_run_get", (job, slot))
    return _parse_entry(rows[0]) if rows else None


async def list_runs(store: Store, job: str, limit: int) -> list[Run]:
    """The runs of this job, the latest first."""
    return [_parse_entry(row).run for row in await store.query("job_run_list", (job, limit))]


async def last_runs(store: Store) -> dict[str, Run]:
    """The latest run of each job, by the name of the job."""
    entries = [_parse_entry(row) for row in await store.query("job_run_last", ())]
    return {entry.run.job: entry.run for entry in entries}


def job_of_session(store: Store, session: str) -> Job | None:
    """The job whose latest run has this conversation, as it was then."""
    rows = store.query_sync("job_run_of", (session,))
    return _decode_job(rows[0][0]) if rows else None


async def count_restarts_after(
    store: Store, job: str, since: float, now: float, window_s: float
) -> int:
    """How many runs of a `startup` job since then were followed by another start of Deskhand within
    `window_s` seconds."""
    ((count,),) = await store.query("job_run_at_start", (job, since, now, window_s))
    return int(count)


async def tokens_of_last_runs(store: Store, job: str, limit: int) -> list[int]:
    """The tokens that the last runs used, the latest first. Runs that asked no model are left
    out."""
    rows = await store.query("job_tokens", (job, limit))
    return [int(tokens) for (tokens,) in rows if tokens]


async def failure_message_key(store: Store, session: str, n: int) -> str:
    """The key of the last message that event number `n` of the session sent, or ''."""
    rows = await store.query("job_said", (session, n))
    return str(rows[-1][0]) if rows else ""


async def open_ask(store: Store, session: str) -> str:
    """The id of an approval or question for which this session waits, or ''."""
    rows = await store.query("job_asks", (session,))
    return str(rows[0][0]) if rows else ""


async def prune_runs(store: Store, now: float) -> None:
    """Delete runs that ended too long ago; see RETENTION_S."""
    while old := await store.query("job_run_old", (now - RETENTION_S, now - FREQUENT_RETENTION_S)):
        which = (_encode(old).decode(),)
        await store.change([Change("job_run_forget", which), Change("job_run_slim", which)])


def add_run(
    entry: RunEntry, state: RunState, ended_at: float | None = None, said: str = ""
) -> Change:
    """Add a run that waits to begin or, with `ended_at`, one that ended without having begun.

    Of the latter only the name of the job is stored, so that a job that is triggered all the time
    and never runs does not fill the disk.
    """
    run = entry.run
    job = entry.job
    payload = entry.payload
    if ended_at is not None:
        job = Job(run.job)
        payload = None
    row = (run.job, run.slot, state, run.due_at, _encode(job), _encode_payload(payload))
    return Change("job_run_add", (*row, ended_at, said))


def claim_run(
    entry: RunEntry, state: RunState, *, holder: str, now: float, lease_s: float
) -> Change:
    """Begin a run in this process. Committed before anything is done, or together with it."""
    run = entry.run
    payload = _encode_payload(entry.payload)
    begun = (run.job, run.slot, state, run.due_at, _encode(entry.job), payload)
    held = (run.session, entry.after_n, holder, now + lease_s, now)
    return Change("job_run_claim", (*begun, *held))


def renew_lease(run: Run, holder: str, until: float) -> Change:
    """Take over an open run, or keep it, until this time."""
    return Change("job_run_hold", (holder, until, run.job, run.slot))


def mark_finishing(run: Run, until: float) -> Change:
    """The answer is there and the postrun begins."""
    return Change("job_run_finish", (until, run.job, run.slot))


def end_run(run: Run, state: RunState, at: float, said: str) -> Change:
    """End an open run. `said` is how it ended, in a sentence."""
    return Change("job_run_end", (state, at, said, run.job, run.slot))


def drop_waiting_runs(job: str, at: float, why: str) -> Change:
    """Skip the runs of this job that wait to begin."""
    return Change("job_run_drop", (at, why, job))


# What is known of a job


async def job_records(store: Store) -> dict[str, JobRecord]:
    """All records, by the name of the job."""
    records = [_parse_record(row) for row in await store.query("job_state_all", ())]
    return {record.job: record for record in records}


async def job_record(store: Store, job: str) -> JobRecord:
    """The record of this job, or an empty one."""
    rows = await store.query("job_state_get", (job,))
    return _parse_record(rows[0]) if rows else JobRecord(job=job)


def set_seen_at(job: str, at: float) -> Change:
    """All times up to `at` are decided. Never moves back."""
    return Change("job_state_seen", (at, job))


def set_plan(job: str, at: float, plan: str) -> Change:
    """From `at` on the times of this schedule are due. '' is for none."""
    return Change("job_state_set", (job, at, plan))


def add_counts(
    job: str, *, runs: int = 0, errors: int = 0, gates: int = 0, skips: int = 0
) -> Change:
    """Add to the counters of this job."""
    return Change("job_state_count", (job, runs, errors, gates, skips))


def set_alert_state(record: JobRecord) -> Change:
    """Store the failures in a row, and what owners were told of them."""
    row = (record.failures, record.alerts, record.alerted_at, record.job)
    return Change("job_state_told", row)


def forget_job(job: str) -> Change:
    """Delete the record of a job. A new job of that name begins without a past."""
    return Change("job_state_forget", (job,))


async def count_alerted_jobs(store: Store, since: float, now: float) -> int:
    """Of how many failing jobs owners were told since then."""
    ((count,),) = await store.query("job_told_since", (since, now))
    return int(count)


# Labels


async def hook_state_label(store: Store, job: str) -> Label:
    """The label of the files that hooks of this job have kept for the next run."""
    return await find_label(store, _hook_state_name(job)) or LOCAL


async def result_labels(store: Store) -> dict[str, Label]:
    """The labels of the last results, by job. Jobs whose result is trusted are left out."""
    rows = await store.query("job_label_said", ())
    return {str(job): _decode_label(label) for job, label in rows}


def set_result_label(run: Run, label: Label, at: float) -> Change:
    """Set the label of what this run, the last of its job, came to."""
    return _set_label(f"job-said:{run.job}", run, label, at)


def set_hook_state_label(run: Run, label: Label, at: float) -> Change:
    """Set the label of the files that hooks of this job keep."""
    return _set_label(_hook_state_name(run.job), run, label, at)


def _hook_state_name(job: str) -> str:
    return f"job:{job}"


def _set_label(name: str, run: Run, label: Label, at: float) -> Change:
    if not needs_mark(label):
        return drop_label(name)
    return set_label(name, label, run.session, at)


# The pause of all jobs


async def stored_pause(store: Store) -> str:
    """Why all jobs are paused, or ''."""
    return _first_text(await store.query("job_pause_get", ()))


def stored_pause_sync(store: Store) -> str:
    """As `stored_pause`, without waiting."""
    return _first_text(store.query_sync("job_pause_get"))


def set_pause(why: str, at: float) -> Change:
    """Pause all jobs. A pause that is there keeps its reason."""
    return Change("job_pause_set", (why, at))


def drop_pause() -> Change:
    """End the pause."""
    return Change("job_pause_drop", ())


# Starts of the process, of which those stay that ended in a crash


async def count_starts(store: Store, since: float, now: float) -> int:
    """How many starts since then are stored."""
    ((count,),) = await store.query("job_boot_count", (since, now))
    return int(count)


def add_start(at: float) -> Change:
    """Store that this process started."""
    return Change("job_boot_add", (at,))


def drop_start(at: float) -> Change:
    """Delete the start of a process that ends in good order."""
    return Change("job_boot_drop", (at,))


def expire_starts(since: float, now: float) -> Change:
    """Delete starts before `since`, and those in the future."""
    return Change("job_boot_expire", (since, now))


def forget_starts(*, keep_latest: bool) -> Change:
    """Delete all starts, or all but that of the process that runs now."""
    return Change("job_boot_forget", (int(keep_latest),))


# Rows


def _parse_record(row: tuple[Any, ...]) -> JobRecord:
    job, seen_at, plan, runs, errors, gates, skips, failures, alerts, alerted_at = row
    return JobRecord(
        job=job,
        seen_at=seen_at,
        plan=plan,
        counters=Counters(runs, errors, gates, skips),
        failures=failures,
        alerts=alerts,
        alerted_at=alerted_at,
    )


def _parse_entry(row: tuple[Any, ...]) -> RunEntry:
    body, payload, after_n, holder = row[10:]
    return RunEntry(
        run=Run(*row[:10]),
        job=_decode_job(body),
        payload=None if payload is None else _decode_text(payload),
        after_n=after_n,
        holder=holder,
    )


def _encode_payload(payload: Text | None) -> bytes | None:
    return None if payload is None else _encode(payload)


def _first_text(rows: list[tuple[Any, ...]]) -> str:
    return str(rows[0][0]) if rows else ""


_RESULTS: Mapping[RunState, str] = {"done": "success", "interrupted": "error", "missed": "skipped"}
"""The results that operator-ai calls by another name."""


def last_result(run: Run | None) -> str:
    """The result of a run in the words of operator-ai: success, error, gated or skipped. '' when
    there is no run."""
    if run is None:
        return ""
    return _RESULTS.get(run.state, run.state)
