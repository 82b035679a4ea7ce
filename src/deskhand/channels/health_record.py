"""How a channel fared, as it is asked again and again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from msgspec.structs import replace

from ..types.errors import ChannelError, SendRefused
from .base import ChannelHealth

Fault = TypeVar("Fault", bound=ChannelError)


class HealthRecord:
    """When the platform last answered, and the last error that was about more than one message."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.current = ChannelHealth()

    def note_answer(self) -> None:
        self.current = replace(self.current, ok_at=self._now())

    def note_error(self, error: Fault) -> Fault:
        if not isinstance(error, SendRefused):  # that is about one message, or one chat
            self.current = replace(self.current, error_at=self._now(), error=str(error))
        return error

    @asynccontextmanager
    async def watch(
        self,
        faults: type[Exception] | tuple[type[Exception], ...],
        translate: Callable[[Exception], ChannelError],
    ) -> AsyncIterator[None]:
        """Note how the calls inside fare. Their `faults` are raised as `translate` says them."""
        try:
            yield
        except ChannelError as error:
            self.note_error(error)
            raise
        except faults as error:
            raise self.note_error(translate(error)) from error
        self.note_answer()
