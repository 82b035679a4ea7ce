"""Budgets as they are written down, and what follows from them: which hold for a call, since when
they count, and how it is said that one is spent. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta
from datetime import time as hour
from typing import Literal
from zoneinfo import ZoneInfo

import msgspec

from ..config.sections import BUDGET_FIELDS, Budget, BudgetPeriod
from ..types.budget import Charge

BudgetScope = Literal["all", "person", "agent", "job", "session"]
BUDGET_SCOPES: tuple[BudgetScope, ...] = ("all", "person", "agent", "job", "session")
WARN_AT = 0.8


class Limit(msgspec.Struct, frozen=True):
    """One limit that holds for somebody or something: at most `most` since the day `since` (0:
    ever). US dollars are counted in millionths."""

    scope: BudgetScope
    name: str
    field: str
    most: int
    since: int

    @property
    def unit(self) -> Literal["tokens", "usd"]:
        return BUDGET_FIELDS[self.field][0]

    @property
    def per(self) -> BudgetPeriod:
        return BUDGET_FIELDS[self.field][1]

    @property
    def key(self) -> str:
        """As the commands call it."""
        return f"{self.scope}:{self.name}" if self.name else self.scope


class LimitStanding(msgspec.Struct, frozen=True):
    """A limit and how much of it is gone: what was used, and what calls that go on hold. `extra`
    was added to it."""

    limit: Limit
    used: int
    held: int = 0
    extra: int = 0

    @property
    def most(self) -> int:
        return self.limit.most + self.extra

    @property
    def remaining(self) -> int:
        return self.most - self.used - self.held

    @property
    def share(self) -> float:
        """How much of it is used, as a fraction; 1 of nothing."""
        return self.used / self.most if self.most else 1.0


def iter_scopes(charge: Charge) -> Iterator[tuple[BudgetScope, str]]:
    """Everybody and everything that a call is counted for."""
    for of, name in zip(
        BUDGET_SCOPES, ("", charge.person, charge.agent, charge.job, charge.session), strict=True
    ):
        if of == "all" or name:
            yield of, name


def iter_limits(
    budgets: Mapping[str, Budget], of: BudgetScope, name: str, today: int
) -> Iterator[Limit]:
    """What holds there. What is set by name stands over what is set for all of its kind, field by
    field."""
    general = budgets.get(of, Budget())
    own = budgets.get(f"{of}:{name}", Budget()) if name else Budget()
    for field, (unit, per) in BUDGET_FIELDS.items():
        most: float | None = getattr(own, field)
        if most is None:
            most = getattr(general, field)
        if most is not None:
            yield Limit(
                of,
                name,
                field,
                round(most * 1e6) if unit == "usd" else int(most),
                period_start(per, today),
            )


def to_day_number(at: float, zone: ZoneInfo) -> int:
    """The calendar day there, as a number."""
    return datetime.fromtimestamp(at, zone).date().toordinal()


def period_start(per: BudgetPeriod, today: int) -> int:
    """The first day that counts."""
    if per == "ever":
        return 0
    return today if per == "day" else date.fromordinal(today).replace(day=1).toordinal()


def reset_date(limit: Limit, today: int) -> date | None:
    """The day on which nothing of it is used any more; None: never."""
    if limit.per == "ever":
        return None
    first = date.fromordinal(period_start(limit.per, today))
    return (
        first + timedelta(days=1)
        if limit.per == "day"
        else (first + timedelta(days=31)).replace(day=1)
    )


class Learned(msgspec.Struct, frozen=True):
    """What one run of a job uses, by so many of them."""

    runs: int
    tokens: float
    micros: float


class BudgetForecast(msgspec.Struct, frozen=True):
    """What a month of a job may come to. `known`: there is something to go by."""

    runs: float
    tokens: int
    micros: int
    known: bool
    words: str


def forecast_job(job: str, each: Learned, runs: float, limits: Iterable[Limit]) -> BudgetForecast:
    """So many runs a month, as far as can be told, beside what `limits` allow."""
    tokens = round(each.tokens * runs)
    micros = round(each.micros * runs)
    if not each.tokens:
        words = (
            f"{job} runs about {runs:,.0f} times a month; what a run uses is not known before "
            "the first one."
        )
        return BudgetForecast(runs, 0, 0, False, words)
    by = (
        f"learned from {each.runs} run{'s' * (each.runs != 1)}"
        if each.runs
        else "as much as one run may use"
    )
    dollars = f", about {format_amount('usd', micros)}" if micros else ""
    words = (
        f"{job} runs about {runs:,.0f} times a month with "
        f"{format_amount('tokens', round(each.tokens))} each ({by}): "
        f"{format_amount('tokens', tokens)} a month{dollars}."
    )
    for limit in limits:
        share = 1 if limit.per == "month" else 30.4
        comes = round((tokens if limit.unit == "tokens" else micros) / share)
        if comes > limit.most:
            per = f"a {limit.per}"
            words += (
                f" That is more than {describe_budget(limit)} allows: "
                f"{format_amount(limit.unit, limit.most)} {per}."
            )
    return BudgetForecast(runs, tokens, micros, True, words)


# In words


def format_amount(unit: Literal["tokens", "usd"], number: int) -> str:
    """12,000 tokens, or $1.25."""
    if unit == "tokens":
        return f"{number:,} tokens"
    return f"${number / 1e6:,.2f}" if number >= 10_000 or not number else f"${number / 1e6:.4f}"


def describe_budget(limit: Limit) -> str:
    """The budget, as people call it."""
    named = {
        "all": "the budget of all that is done here",
        "session": "the budget of this conversation",
    }
    kinds = {"agent": "agent ", "job": "job "}
    return named.get(limit.scope) or f"the budget of {kinds.get(limit.scope, '')}{limit.name}"


PERIOD_WORDS = {"day": " today", "month": " this month", "ever": ""}


def format_used(standing: LimitStanding) -> str:
    """How much of it is used."""
    limit = standing.limit
    used = format_amount(limit.unit, standing.used).removesuffix(" tokens")
    return f"{used} of {format_amount(limit.unit, standing.most)}{PERIOD_WORDS[limit.per]}"


def describe_reset(limit: Limit, today: int, zone: ZoneInfo) -> str:
    """When it is fresh again."""
    on = reset_date(limit, today)
    if on is None:
        return "It does not become fresh by itself."
    return (
        f"It is fresh again on {datetime.combine(on, hour(), zone):%A, %d %B at %H:%M} "
        f"({zone.key})."
    )


def explain_spent(standing: LimitStanding, wanted: int, today: int, zone: ZoneInfo) -> str:
    """Why a call is not made, and what can be done."""
    limit = standing.limit
    if not standing.most:
        change = (
            f"deskhand budget set {quote_key(limit.key)} --{limit.field.replace('_', '-')} NUMBER"
        )
        return f"{describe_budget(limit)} allows nothing. An owner changes it with: {change}"
    held = (
        f", {format_amount(limit.unit, standing.held)} are held by calls that go on"
        if standing.held
        else ""
    )
    lift = f"deskhand budget lift {quote_key(limit.key)} --per {limit.per}"
    return (
        f"{describe_budget(limit)} is spent: {format_used(standing)} are used{held}, and "
        "this call may take "
        f"{format_amount(limit.unit, wanted)}. {describe_reset(limit, today, zone)} An "
        "owner allows as much "
        f"once more with: {lift}"
    )


def render_warning(standing: LimitStanding, today: int, zone: ZoneInfo) -> str:
    """That it will soon be spent."""
    limit = standing.limit
    said = (
        f"{describe_budget(limit)} is at {standing.share:.0%}: {format_used(standing)}. "
        f"{describe_reset(limit, today, zone)}"
    )
    return said[0].upper() + said[1:]


def quote_key(key: str) -> str:
    """As a word of a shell."""
    return key if re.fullmatch(r"[\w:./@+-]+", key) else "'" + key.replace("'", "'\\''") + "'"
