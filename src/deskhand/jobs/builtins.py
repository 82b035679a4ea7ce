"""Jobs that come with Deskhand: they have no file, and do work of our own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Protocol

from ..types.jobs import Job

Chore = Callable[[Job], Awaitable[str]]
"""Does the work of a job of kind `chore`. Returns what it did, in a sentence for people."""


class BuiltinJobs(Protocol):
    """Jobs without a file, and the chores that they do."""

    def builtin_jobs(self) -> Iterable[Job]:
        """The jobs as the configuration has them now."""
        ...

    def chores(self) -> Mapping[str, Chore]:
        """The chores that they name."""
        ...
