"""How a channel fared, as it is asked again and again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from msgspec.structs import replace

from ..types.errors import ChannelError, LoginRefused, SendRefused
from .base import ChannelHealth

REFUSED_S = 300.0

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
        *,
        entering: bool = False,
    ) -> AsyncIterator[None]:
        """Note how the calls inside fare. Their `faults` are raised as `translate` says them;
        `entering`: nothing can be read without them, so that a refusal is one of the login."""
        try:
            yield
        except SendRefused as error:
            if not entering:
                raise
            raise self.note_error(LoginRefused(str(error), REFUSED_S)) from error
        except ChannelError as error:
            self.note_error(error)
            raise
        except faults as error:
            fault = translate(error)
            if entering and isinstance(fault, SendRefused):
                fault = LoginRefused(str(fault), REFUSED_S)
            raise self.note_error(fault) from error
        self.note_answer()
