"""What the driving process does besides driving: it watches the inbox for messages that other
processes accepted, writes anchors, and removes old rows and files."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import anyio.to_thread

from ..store.base import Store
from ..store.blobs import Blobs
from ..types.clock import Clock
from ..types.errors import StoreUnavailable
from .audit_anchor import ANCHOR_INTERVAL_S, Heads, append_anchors
from .dispatch import Dispatch
from .door import LocalDoor, is_interrupt

log = logging.getLogger(__name__)

POLL_S = 0.05
RETRY_S = 1.0
SWEEP_S = 3600.0
CLOCK_JUMP_S = 60.0
"""A smaller step of the clock is an ordinary correction."""


async def watch_inbox(store: Store, door: LocalDoor, dispatch: Dispatch) -> None:
    """Wake the sessions for which other processes accepted something, until cancelled. What came
    while the database was away is seen when it is back."""
    seen = store.last_inbox_id()
    version = -1
    heard = 0
    while True:
        heard = await store.wait_for_writes(heard, POLL_S)
        if not store.shares_work and version == (version := store.version()):
            continue
        try:
            rows = await store.accepted_since(seen)
        except StoreUnavailable as error:
            log.warning("Cannot look for what came in elsewhere: %s", error)
            await anyio.sleep(RETRY_S)
            continue
        for session, row in rows:
            seen = max(seen, row.inbox_id)
            if not door.pop_own_row(row.inbound) and dispatch.owns(session):
                running = dispatch.turn(session)
                cut = is_interrupt(row.inbound.body, row.inbound.when, running)
                dispatch.wake(session, cut=cut)


async def run_anchoring(store: Store, path: Path, clock: Clock) -> None:
    """Write the heads of the hash chains to the anchor file every now and then, and at a clean
    end."""
    try:
        while True:
            await anyio.sleep(ANCHOR_INTERVAL_S)
            _write_anchors(path, await store.heads(), clock)
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):
            _write_anchors(path, await store.heads(), clock)
        raise


def _write_anchors(path: Path, heads: Heads, clock: Clock) -> None:
    try:
        append_anchors(path, heads, clock.now())
    except OSError as error:
        log.warning("Could not write the anchor file: %s", error)


async def run_sweeping(
    store: Store, blobs: Blobs, clock: Clock, forget: Callable[[], Awaitable[None]]
) -> None:
    """Every now and then delete what is too old, and the blob files that nothing uses."""
    while True:
        await forget()
        before = _ahead_s(clock)
        await anyio.sleep(SWEEP_S)
        await collect_blobs(store, blobs, clock, before)


async def collect_blobs(store: Store, blobs: Blobs, clock: Clock, before: float) -> None:
    """Remove these files. Does nothing after the clock was set far ahead: a file that was just
    stored may look old then."""
    if abs(_ahead_s(clock) - before) < CLOCK_JUMP_S:
        await anyio.to_thread.run_sync(blobs.collect, store.is_blob_used, clock.now())


def _ahead_s(clock: Clock) -> float:
    return clock.now() - clock.monotonic()
