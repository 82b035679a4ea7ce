"""How each part is doing: facts with their times, and what they come to together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

HealthState = Literal["ok", "starting", "degraded", "down"]


class HealthFact(msgspec.Struct, frozen=True, omit_defaults=True):
    """One part, such as `store` or `channel telegram`. Times are seconds since the epoch, None for
    never.

    `since` is when it began to run, None while it does not. `last_error` has no secrets in it and
    stays after things are well again. `restarts` counts since this process began. `detail` says the
    rest in words. A part that is `vital` takes everything down with it.
    """

    name: str
    state: HealthState
    detail: str = ""
    since: float | None = None
    last_success_at: float | None = None
    last_error: str = ""
    last_error_at: float | None = None
    restarts: int = 0
    vital: bool = False


class Health(msgspec.Struct, frozen=True):
    """All of it at one moment. `version` is Deskhand's, `pid` the process that says this, `since`
    when that began; `address` is where the page is, '' for nowhere."""

    state: HealthState
    at: float
    version: str
    pid: int
    since: float
    address: str
    facts: tuple[HealthFact, ...]


def combine_states(facts: Iterable[HealthFact]) -> HealthState:
    """What the facts come to: `down` where a vital part is, `degraded` where anything else is not
    well, `starting` until everything has begun."""
    states = {(fact.state, fact.vital) for fact in facts}
    if ("down", True) in states:
        return "down"
    found = {state for state, _ in states}
    if found & {"down", "degraded"}:
        return "degraded"
    return "starting" if "starting" in found else "ok"
