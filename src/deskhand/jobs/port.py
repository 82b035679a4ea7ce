"""What runs of jobs stand on, and a run that goes on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from ..assembly.host import Host
from ..gateway.inject import InboundInjector
from ..types.identity import Principal
from ..types.jobs import Job, RunState
from .ledger import RunEntry, RunLedger

Chore = Callable[[Job], Awaitable[str]]


class Port(msgspec.Struct, frozen=True):
    """What runs need of the house. `who` is in whose name a job acts, with the roles they have now;
    raises JobInvalid. `chore` gives a chore by its name, None for an unknown one. `over` hears of
    each end."""

    ground: Host
    injector: InboundInjector
    ledger: RunLedger
    job_folder: Callable[[str], Path]
    principal_for: Callable[[Job], Awaitable[Principal]]
    find_chore: Callable[[str], Chore | None]
    on_run_end: Callable[[RunEntry, RunState], Awaitable[None]]


class LiveRun(msgspec.Struct):
    """A run that this process looks after, with times on the monotonic clock: at `until` it is
    taken for hung, at `begun` its turn began, as far as this process saw that."""

    entry: RunEntry
    principal: Principal
    deadline: float
    stopping: bool = False
    turn_began_at: float | None = None
    alerted_asks: set[str] = set()
