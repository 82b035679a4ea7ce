"""What runs of jobs stand on, and a run that goes on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from ..assembly.host import Host
from ..gateway.inject import Waker
from ..types.identity import Principal
from ..types.jobs import Job, RunState
from .ledger import Entry, Ledger

Chore = Callable[[Job], Awaitable[str]]


class Port(msgspec.Struct, frozen=True):
    """What runs need of the house. `who` is in whose name a job acts, with the roles they have now; raises JobInvalid.
    `chore` gives a chore by its name, None for an unknown one. `over` hears of each end."""

    ground: Host
    waker: Waker
    ledger: Ledger
    folder: Callable[[str], Path]
    who: Callable[[Job], Awaitable[Principal]]
    chore: Callable[[str], Chore | None]
    over: Callable[[Entry, RunState], Awaitable[None]]


class Live(msgspec.Struct):
    """A run that this process looks after, with times on the monotonic clock: at `until` it is taken for hung, at
    `begun` its turn began, as far as this process saw that."""

    entry: Entry
    principal: Principal
    until: float
    stopping: bool = False
    begun: float | None = None
    asked: set[str] = set()
