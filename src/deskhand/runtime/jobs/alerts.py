"""What the owner is told of jobs, and how often: at once, and then less and less while it goes on."""

from __future__ import annotations

import logging

import msgspec
from msgspec.structs import replace

from ...store.base import Store
from ...types.commit import Change, Outgoing
from ...types.identity import Address
from ...types.jobs import Job
from ...types.labels import LOCAL
from ...types.messages import Text
from ...types.people import OWNER_NAME
from .ledger import State, alerted

log = logging.getLogger(__name__)

PAUSES_S = (0.0, 3600.0, 4 * 3600.0, 24 * 3600.0)
"""How long after the last word the next is said, by how many were said."""
FORGOTTEN_S = 48 * 3600.0
"""After so long it is as if nothing had been said."""
AT_ONCE_S, MOST_AT_ONCE = 600.0, 5
"""Of so many jobs is told within that time: where all fail, one reason stands behind them."""
_address = msgspec.json.Decoder(Address).decode


async def told(store: Store, key: str, text: str, now: float) -> list[Change]:
    """The rows with which the owner is told this, wherever they can be reached; in the log in any case."""
    log.warning("%s", text)
    rows = await store.rows("user_identity_addresses", (OWNER_NAME,))
    changes = []
    for number, (where,) in enumerate(rows):
        address = _address(where)
        out = Outgoing(f"job-told:{key}:{number}", address, (Text(text, LOCAL),))
        changes.append(Change("outbox_insert", (out.key, "", msgspec.json.encode(out), now, address.channel)))
    return changes


async def after_failure(store: Store, job: Job, state: State, key: str, said: str, now: float) -> list[Change]:
    """Count it, and tell the owner unless they heard of it just now, or of many others."""
    state, ago = replace(state, failures=state.failures + 1), now - state.alerted_at
    before = abs(state.alerts) if 0 <= ago < FORGOTTEN_S else 0
    if not job.alert or (before and ago < PAUSES_S[min(before, len(PAUSES_S) - 1)]):
        return [alerted(state)]
    ((others,),) = await store.rows("job_told_since", (now - AT_ONCE_S, now))
    if others > MOST_AT_ONCE:
        return [alerted(state)]
    times = f" It has failed {state.failures} times in a row." if state.failures > 1 else ""
    text = (
        f"The job {job.name!r} failed: {said.rstrip('.')}.{times}\n"
        f"See `deskhand jobs runs {job.name}`; `deskhand jobs disable {job.name}` switches it off."
    )
    if others == MOST_AT_ONCE:
        text = f"{text}\nMore jobs fail, and you are not told of each: see `deskhand jobs`."
    row = alerted(replace(state, alerts=before + 1, alerted_at=now))
    return [row, *await told(store, key, text, now)]


async def after_success(store: Store, job: Job, state: State, key: str, now: float) -> list[Change]:
    """Who was told that it fails is told that it does no more. How much they heard is remembered: one that fails every
    other time is told no more often than one that always does."""
    if not state.failures:
        return []
    row = alerted(replace(state, failures=0, alerts=-abs(state.alerts)))
    if state.alerts <= 0:
        return [row]
    return [row, *await told(store, key, f"The job {job.name!r} works again.", now)]
