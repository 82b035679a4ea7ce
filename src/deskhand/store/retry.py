"""What must be written, however long the disk takes to be there again."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio

from ..types.errors import StoreUnavailable

log = logging.getLogger(__name__)

RETRY_DELAYS_S = (0.2, 1.0, 5.0, 15.0)


async def retry_until_written(write: Callable[[], Awaitable[object]]) -> None:
    """Until it is written."""
    failures = 0
    while True:
        try:
            await write()
            return
        except StoreUnavailable as error:
            log.warning("a run of a job is not written: %s", error)
            await anyio.sleep(RETRY_DELAYS_S[min(failures, len(RETRY_DELAYS_S) - 1)])
            failures += 1
