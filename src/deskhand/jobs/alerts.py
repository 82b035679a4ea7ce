"""Alerts about failing jobs: the first failure at once, then fewer and fewer while it goes on."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from ..assembly.host import Host
from ..types.commit import Change
from ..types.jobs import Job, describe_remedy
from ..types.marked_texts import mark_text
from .ledger import JobRecord, count_alerted_jobs, set_alert_state

ALERT_DELAYS_S = (0.0, 3600.0, 4 * 3600.0, 24 * 3600.0)
"""How long after the last alert the next one is due, by how many were sent. The last delay stays in
force."""
ALERT_RESET_S = 48 * 3600.0
"""After this long without an alert, the delays begin again."""
ALERT_WINDOW_S = 600.0
MAX_ALERTS_PER_WINDOW = 5
"""Owners are told of this many jobs within ALERT_WINDOW_S: when all fail, one cause is behind
them."""


class JobFailure(msgspec.Struct, frozen=True):
    """A run that failed. `key` is that of the run, `at` is in seconds since the epoch. `said_as` is
    the key of the message that told its chat of the failure, or ''."""

    key: str
    reason: str
    at: float
    said_as: str = ""


async def record_failure(
    host: Host, job: Job, record: JobRecord, failure: JobFailure
) -> list[Change]:
    """Count the failure, and tell owners unless they were told of this job, or of many others, a
    short time ago."""
    now = failure.at
    ago_s = now - record.alerted_at
    record = replace(record, failures=record.failures + 1)
    alerts = abs(record.alerts) if 0 <= ago_s < ALERT_RESET_S else 0
    delay_s = ALERT_DELAYS_S[min(alerts, len(ALERT_DELAYS_S) - 1)]
    if not job.alert or (alerts and ago_s < delay_s):
        return [set_alert_state(record)]

    others = await count_alerted_jobs(host.store, now - ALERT_WINDOW_S, now)
    if others > MAX_ALERTS_PER_WINDOW:
        return [set_alert_state(record)]

    text = _describe_failure(job, failure, record.failures)
    if others == MAX_ALERTS_PER_WINDOW:
        more = mark_text("More jobs fail, and you are not told of each: see `deskhand jobs`.")
        text = f"{text}\n{more}"
    alert = await host.alerts.alert_owners(failure.key, text, said_as=failure.said_as)
    return [set_alert_state(replace(record, alerts=alerts + 1, alerted_at=now)), *alert]


def _describe_failure(job: Job, failure: JobFailure, in_a_row: int) -> str:
    failed = mark_text("The job {job} failed: {why_text}.").format(
        job=repr(job.name), why_text=failure.reason.rstrip(".")
    )
    if in_a_row > 1:
        often = mark_text("It has failed {times_number} times in a row.")
        failed = f"{failed} {often.format(times_number=in_a_row)}"
    return f"{failed}\n{describe_remedy(job.name)}"


async def record_success(host: Host, job: Job, record: JobRecord, key: str) -> list[Change]:
    """End a series of failures, and tell owners if they were told of it.

    The number of alerts stays (as a negative number): a job that fails every other time alerts no
    more often than one that always fails.
    """
    if not record.failures:
        return []
    change = set_alert_state(replace(record, failures=0, alerts=-abs(record.alerts)))
    if record.alerts <= 0:
        return [change]
    text = mark_text("The job {job} works again.").format(job=repr(job.name))
    return [change, *await host.alerts.notify_owners(key, text)]
