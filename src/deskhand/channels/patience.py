"""Waiting for a platform that asks for it, where somebody waits for the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from ..types.errors import ChannelError

MAX_WAIT_S = 30.0
MIN_WAIT_S = 0.2
"""A platform that says to wait no time at all is not asked without a pause."""

T = TypeVar("T")


async def retry_after_waits(call: Callable[[], Awaitable[T]]) -> T:
    """What the call gives. Where the platform asks to wait for at most 30 s, the call is made again
    after that, so it must change nothing. Raises ChannelError."""
    while True:
        try:
            return await call()
        except ChannelError as error:
            if error.retry_after_s is None or error.retry_after_s > MAX_WAIT_S:
                raise
            wait_s = max(error.retry_after_s, MIN_WAIT_S)
        await anyio.sleep(wait_s)
