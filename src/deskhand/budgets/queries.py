"""Typed queries on the tables of the budgets: what was used, what is held, lifted and warned of."""

from __future__ import annotations

import msgspec

from ..store.base import Store
from ..types.budget import Charge
from ..types.commit import Change
from .limit_rules import Amounts, BudgetScope, Limit, LimitStanding


class HoldRow(msgspec.Struct, frozen=True):
    """What a call that goes on may use, and the day that it counts for."""

    id: str
    charge: Charge
    day: int
    amounts: Amounts


class RunsUsed(msgspec.Struct, frozen=True):
    """How many runs of a job have used anything, and what they used together."""

    runs: int
    amounts: Amounts


# What was used


def count_use(charge: Charge, day: int, used: Amounts) -> Change:
    """Count one call for everybody and everything that pays for it."""
    return Change(
        "budget_use",
        (day, *used, charge.person, charge.agent, charge.job, charge.session),
    )


def settle_hold(hold: HoldRow, used: Amounts) -> Change:
    """Count what a call used in place of what it held. If the hold is gone, it was counted in full:
    then only the difference is added."""
    charge = hold.charge
    payers = (charge.person, charge.agent, charge.job, charge.session)
    return Change("budget_settle", (hold.day, *used, *payers, hold.id, *hold.amounts))


def sum_used(store: Store, scope: BudgetScope, name: str, *, since: int, until: int) -> Amounts:
    """What was used there from day `since` to day `until`, both included."""
    ((tokens, micros),) = store.query_sync("budget_sum", (scope, name, since, until))
    return Amounts(int(tokens), int(micros))


async def names_by_use(store: Store, scope: BudgetScope, since: int, limit: int) -> list[str]:
    """The names in this scope that have used anything since that day, the most first."""
    return [name for name, _, _ in await store.query("budget_names", (scope, since, limit))]


def used_by_runs(store: Store, job: str, since: int) -> RunsUsed:
    """What the runs of this job have used since that day."""
    ((runs, tokens, micros),) = store.query_sync("budget_runs", (since, f"/job:{job}:"))
    return RunsUsed(int(runs), Amounts(int(tokens), int(micros)))


# What calls that go on hold


def write_hold(hold: HoldRow) -> Change:
    """Write a hold down, or write it again with these amounts."""
    return Change(
        "budget_hold", (hold.id, hold.day, *hold.amounts, msgspec.json.encode(hold.charge))
    )


def drop_hold(id_: str) -> Change:
    """Remove a hold. Does nothing if it is gone."""
    return Change("budget_drop", (id_,))


def list_holds(store: Store) -> dict[str, HoldRow]:
    """All holds by their id, those of other processes included."""
    found = {}
    for id_, day, tokens, micros, charge in store.query_sync("budget_holds"):
        payer = msgspec.json.decode(charge, type=Charge)
        found[id_] = HoldRow(id_, payer, day, Amounts(tokens, micros))
    return found


# What was lifted and warned of


def lift(limit: Limit) -> Change:
    """Allow as much as this limit once more, until its period ends."""
    return Change("budget_lift", (limit.scope, limit.name, limit.field, limit.since, limit.most))


def extra_of(store: Store, limit: Limit) -> int:
    """How much was added to this limit by lifting it."""
    place = (limit.scope, limit.name, limit.field, limit.since)
    for (extra,) in store.query_sync("budget_lifted", place):
        return int(extra)
    return 0


def mark_warned(standing: LimitStanding) -> Change:
    """Remember that somebody was warned of this limit. A lifted limit is warned of again."""
    return Change("budget_warn", _warning_key(standing))


def was_warned(store: Store, standing: LimitStanding) -> bool:
    """Whether somebody was warned of this limit since it was last lifted."""
    return bool(store.query_sync("budget_warned", _warning_key(standing)))


def _warning_key(standing: LimitStanding) -> tuple[str, str, str, int, int]:
    limit = standing.limit
    return limit.scope, limit.name, limit.field, limit.since, standing.most
