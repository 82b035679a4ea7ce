"""What owners are told of jobs, and how often: at once, and then less and less while it goes on."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from ..assembly.host import Host
from ..types.commit import Change
from ..types.jobs import Job
from .ledger import JobRecord, set_alert_state

ALERT_DELAYS_S = (0.0, 3600.0, 4 * 3600.0, 24 * 3600.0)
"""How long after the last word the next is said, by how many were said."""
ALERT_RESET_S = 48 * 3600.0
"""After so long it is as if nothing had been said."""
ALERT_WINDOW_S = 600.0
MAX_ALERTS_PER_WINDOW = 5
"""Of so many jobs is told within that time: where all fail, one reason stands behind them."""


class JobFailure(msgspec.Struct, frozen=True):
    """A run that failed. `key` names it; `said` is why. `said_as` is the key of the message that
    told its chat of it, '' where none did."""

    key: str
    reason: str
    at: float
    said_as: str = ""


async def record_failure(
    ground: Host, job: Job, state: JobRecord, failure: JobFailure
) -> list[Change]:
    """Count it, and tell the owners unless they heard of it just now, or of many others."""
    now = failure.at
    state, ago = replace(state, failures=state.failures + 1), now - state.alerted_at
    before = abs(state.alerts) if 0 <= ago < ALERT_RESET_S else 0
    if not job.alert or (before and ago < ALERT_DELAYS_S[min(before, len(ALERT_DELAYS_S) - 1)]):
        return [set_alert_state(state)]
    ((others,),) = await ground.store.query("job_told_since", (now - ALERT_WINDOW_S, now))
    if others > MAX_ALERTS_PER_WINDOW:
        return [set_alert_state(state)]
    times = f" It has failed {state.failures} times in a row." if state.failures > 1 else ""
    text = (
        f"The job {job.name!r} failed: {failure.reason.rstrip('.')}.{times}\n"
        f"See `deskhand jobs runs {job.name}`; `deskhand jobs disable {job.name}` switches it off."
    )
    if others == MAX_ALERTS_PER_WINDOW:
        text = f"{text}\nMore jobs fail, and you are not told of each: see `deskhand jobs`."
    row = set_alert_state(replace(state, alerts=before + 1, alerted_at=now))
    return [row, *await ground.alerts.alert_owners(failure.key, text, said_as=failure.said_as)]


async def record_success(ground: Host, job: Job, state: JobRecord, key: str) -> list[Change]:
    """Who was told that it fails is told that it does no more. How much they heard is remembered:
    one that fails every other time is told no more often than one that always does."""
    if not state.failures:
        return []
    row = set_alert_state(replace(state, failures=0, alerts=-abs(state.alerts)))
    if state.alerts <= 0:
        return [row]
    return [row, *await ground.alerts.notify_owners(key, f"The job {job.name!r} works again.")]
