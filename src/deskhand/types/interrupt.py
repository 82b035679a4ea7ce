"""What one can do while somebody waits: cut it short, or get something else done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

import anyio


class Interrupt:
    """Lets a person cut short what a driver waits for outside: a model or a tool."""

    def __init__(self) -> None:
        self._scope: anyio.CancelScope | None = None
        self.requested = False

    def __enter__(self) -> anyio.CancelScope:
        self._scope = anyio.CancelScope()
        self._scope.__enter__()
        if self.requested:  # it was said while something was being written, just before
            self._scope.cancel()
        return self._scope

    def __exit__(self, *raised: object) -> bool:
        scope = self._scope
        self._scope = None
        return bool(scope is not None and scope.__exit__(*raised))  # type: ignore[arg-type]

    def cancel(self) -> None:
        """Cancel what is waited for, or else what is about to be, until `wanted` is cleared."""
        self.requested = True
        if self._scope is not None:
            self._scope.cancel()


@asynccontextmanager
async def run_if_slow(
    seconds: float, work: Callable[[], Coroutine[object, object, object]]
) -> AsyncIterator[None]:
    """Begin `work` beside the block once that has taken so long, and leave when both are done. A
    block that is done sooner costs a timer. What `work` raises is raised when the block is over."""
    loop, begun = asyncio.get_running_loop(), list[asyncio.Task[object]]()
    timer = loop.call_later(seconds, lambda: begun.append(loop.create_task(work())))
    try:
        yield
    finally:
        timer.cancel()
        if begun:
            with anyio.CancelScope(shield=True):
                await begun[0]
