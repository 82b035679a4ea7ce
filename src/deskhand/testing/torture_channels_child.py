"""The process that `torture_channels` kills, where it is to make a mistake: the worker of `deskhand
serve` with one part replaced."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import cast
from uuid import uuid4

import anyio
from anyio.abc import ObjectSendStream
from msgspec.structs import replace

from ..cli.run import load_service_settings
from ..cli.worker_process import run_worker_process
from ..config.clock import SystemClock
from ..config.config import Settings
from ..gateway.channel_loader import open_channels
from ..runtime.app import Parts
from ..store.base import Accepted, FirstCommit
from ..store.blobs import Blobs
from ..store.sqlite import SqliteStore
from ..types.commit import Change
from ..types.identity import Inbound, Principal

HANDED_OVER_S = 0.1
"""So that any kill finds some confirmed and not yet safe."""
CONFIRM_FIRST = "confirm-first"
"""Confirms each message to its platform, and moves the cursor, before it is stored."""
TAKE_TWICE = "take-twice"
"""Takes in again what a platform tells of again."""
MUTANTS = (CONFIRM_FIRST, TAKE_TWICE)


class ForgetfulStore(SqliteStore):
    """Does not know again what it took in before."""

    async def accept(
        self,
        inbound: Inbound,
        principal: Principal,
        session: str,
        first: FirstCommit | None = None,
        changes: Sequence[Change] = (),
    ) -> Accepted:
        again = replace(inbound, external_id=f"{inbound.external_id}#{uuid4().hex}")
        return await super().accept(again, principal, session, first, changes)


Receive = Callable[[], AsyncIterator[Inbound]]


async def receive_eagerly(receive: Receive) -> AsyncIterator[Inbound]:
    """Ask for the next message at once, which confirms the one before; hand them over slowly."""
    send, waiting = anyio.create_memory_object_stream[Inbound](10_000)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_pump, receive, send)
        async for inbound in waiting:
            await anyio.sleep(HANDED_OVER_S)
            yield inbound


async def _pump(receive: Receive, send: ObjectSendStream[Inbound]) -> None:
    async with send, aclosing(cast(AsyncGenerator[Inbound], receive())) as inbounds:
        async for inbound in inbounds:
            await send.send(inbound)


def confirm_first(settings: Settings, parts: Parts) -> Parts:
    """These parts, with the channels of these settings, which confirm too soon."""
    channels = open_channels(settings, Blobs(settings.home.blobs), SystemClock())
    for channel in channels:
        eager = partial(receive_eagerly, channel.receive)
        channel.receive = eager  # type: ignore[method-assign]  # all else of it stays as it is
    return replace(parts, channels=channels)


def take_twice(parts: Parts) -> Parts:
    return replace(parts, store=ForgetfulStore)


def main() -> None:
    (mutant,) = sys.argv[1:]
    settings = load_service_settings(None, quiet=True)
    if mutant == TAKE_TWICE:
        sys.exit(run_worker_process(settings, os.getppid(), take_twice))
    bare = replace(settings, config=replace(settings.config, channels={}))
    sys.exit(run_worker_process(bare, os.getppid(), partial(confirm_first, settings)))


if __name__ == "__main__":
    main()
