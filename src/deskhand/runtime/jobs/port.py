"""What runs of jobs stand on, and a run that goes on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from ...types.identity import Principal
from ...types.jobs import Job, RunState
from ..hands import Ground
from ..waking import Waker
from .ledger import Entry, Ledger

Chore = Callable[[Job], Awaitable[str]]


class Port(msgspec.Struct, frozen=True):
    """What runs need of the house. `who` is in whose name a job acts, with the roles they have now; raises JobInvalid.
    `chore` gives a chore by its name, None for an unknown one. `over` hears of each end."""

    ground: Ground
    waker: Waker
    ledger: Ledger
    folder: Callable[[str], Path]
    who: Callable[[Job], Awaitable[Principal]]
    chore: Callable[[str], Chore | None]
    over: Callable[[Entry, RunState], Awaitable[None]]


class Live(msgspec.Struct):
    """A run that this process looks after. `until` is on the monotonic clock: then it is taken for hung. `own`: it
    has had what was left of its own time, which begins with its own turn."""

    entry: Entry
    principal: Principal
    until: float
    stopping: bool = False
    own: bool = False
    asked: set[str] = set()
