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
    """Count it, and tell the owner unless they heard of it just now."""
    state = replace(state, failures=state.failures + 1)
    pause_s = PAUSES_S[min(state.alerts, len(PAUSES_S) - 1)]
    if not job.alert or (state.alerts and 0 <= now - state.alerted_at < pause_s):
        return [alerted(state)]
    times = f" It has failed {state.failures} times in a row." if state.failures > 1 else ""
    text = (
        f"The job {job.name!r} failed: {said.rstrip('.')}.{times}\n"
        f"See `deskhand job runs {job.name}`; `deskhand job disable {job.name}` switches it off."
    )
    row = alerted(replace(state, alerts=state.alerts + 1, alerted_at=now))
    return [row, *await told(store, key, text, now)]


async def after_success(store: Store, job: Job, state: State, key: str, now: float) -> list[Change]:
    """Who was told that it fails is told that it does no more."""
    if not state.failures:
        return []
    row = alerted(replace(state, failures=0, alerts=0, alerted_at=0.0))
    if not state.alerts:
        return [row]
    return [row, *await told(store, key, f"The job {job.name!r} works again.", now)]
