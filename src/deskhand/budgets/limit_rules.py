"""The rules of budgets: which limits apply to a call, when they reset, and the words that explain
them. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from typing import Literal, NamedTuple, assert_never
from zoneinfo import ZoneInfo

import msgspec

from ..config.sections import BUDGET_FIELDS, Budget, BudgetPeriod
from ..types.budget import Charge
from ..types.marked_texts import mark_text

BudgetScope = Literal["all", "person", "agent", "job", "session"]
BUDGET_SCOPES: tuple[BudgetScope, ...] = ("all", "person", "agent", "job", "session")
WARN_AT = 0.8


class Amounts(NamedTuple):
    """Tokens, and millionths of US dollars."""

    tokens: int
    micros: int


class Limit(msgspec.Struct, frozen=True):
    """One limit in a scope: at most `most` since the day number `since` (0: since ever). US dollars
    are counted in millionths."""

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
        """As commands and the configuration name it, such as `person:anna`."""
        return f"{self.scope}:{self.name}" if self.name else self.scope

    def measure(self, amounts: Amounts) -> int:
        """How much of these amounts counts for this limit: the tokens or the dollars."""
        return amounts.micros if self.unit == "usd" else amounts.tokens


class LimitStanding(msgspec.Struct, frozen=True):
    """A limit and how much of it is taken: what was used, and what running calls hold. `extra` was
    added to it by lifting."""

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
        """The used fraction; 1 when the limit is 0."""
        return self.used / self.most if self.most else 1.0


def iter_scopes(charge: Charge) -> Iterator[tuple[BudgetScope, str]]:
    """Every scope that a call counts in, with its name there."""
    for of, name in zip(
        BUDGET_SCOPES, ("", charge.person, charge.agent, charge.job, charge.session), strict=True
    ):
        if of == "all" or name:
            yield of, name


def iter_limits(
    budgets: Mapping[str, Budget], of: BudgetScope, name: str, today: int
) -> Iterator[Limit]:
    """The limits that apply to `name` in this scope. A field that is set for the name wins over the
    one that is set for the whole scope."""
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
    """The calendar day in this time zone, as `date.toordinal()` counts it."""
    return datetime.fromtimestamp(at, zone).date().toordinal()


def period_start(per: BudgetPeriod, today: int) -> int:
    """The first day of the period that `today` is in, as a day number; 0 for `ever`."""
    match per:
        case "ever":
            return 0
        case "day":
            return today
        case "month":
            return date.fromordinal(today).replace(day=1).toordinal()
        case _:
            assert_never(per)


def reset_date(limit: Limit, today: int) -> date | None:
    """The day on which the limit resets, or None if it never does."""
    if limit.per == "ever":
        return None
    first = date.fromordinal(period_start(limit.per, today))
    if limit.per == "day":
        return first + timedelta(days=1)
    return (first + timedelta(days=31)).replace(day=1)


class Learned(msgspec.Struct, frozen=True):
    """What one run of a job uses on average. `runs` is how many runs that was learned from."""

    runs: int
    tokens: float
    micros: float


class BudgetForecast(msgspec.Struct, frozen=True):
    """What a month of a job may use. `known`: there was something to estimate from."""

    runs: float
    tokens: int
    micros: int
    known: bool
    words: str


def forecast_job(job: str, each: Learned, runs: float, limits: Iterable[Limit]) -> BudgetForecast:
    """Estimate a month with this many runs, and say which of the limits it would exceed."""
    tokens = round(each.tokens * runs)
    micros = round(each.micros * runs)
    if not each.tokens:
        words = (
            f"{job} runs about {runs:,.0f} times a month. What one run uses is known after the "
            "first one."
        )
        return BudgetForecast(runs, 0, 0, False, words)
    if each.runs:
        source = f"learned from {each.runs} run{'s' * (each.runs != 1)}"
    else:
        source = "the most that one run may use"
    dollars = f", about {format_amount('usd', micros)}" if micros else ""
    words = (
        f"{job} runs about {runs:,.0f} times a month with "
        f"{format_amount('tokens', round(each.tokens))} each ({source}): "
        f"{format_amount('tokens', tokens)} a month{dollars}."
    )
    for limit in limits:
        share = 1 if limit.per == "month" else 30.4
        comes = round((tokens if limit.unit == "tokens" else micros) / share)
        if comes > limit.most:
            words += (
                f" That is more than {describe_budget(limit)} allows: "
                f"{format_amount(limit.unit, limit.most)} a {limit.per}."
            )
    return BudgetForecast(runs, tokens, micros, True, words)


# In words


def format_amount(unit: Literal["tokens", "usd"], number: int) -> str:
    """An amount for people: `12,000 tokens`, or `$1.25` for millionths of dollars."""
    if unit == "tokens":
        return mark_text("{tokens_number} tokens").format(
            tokens_number=_format_number(unit, number)
        )
    return mark_text("${dollars_number}").format(dollars_number=_format_number(unit, number))


def _format_number(unit: Literal["tokens", "usd"], number: int) -> str:
    """The same without its unit."""
    if unit == "tokens":
        return f"{number:,}"
    if 0 < number < 10_000:  # less than a cent
        return f"{number / 1e6:.4f}"
    return f"{number / 1e6:,.2f}"


def describe_use(tokens: int, micros: int) -> str:
    """What a conversation has used, in a sentence."""
    used = f"{tokens:,}"
    if not micros:
        said = mark_text("This conversation has used {tokens_number} tokens.")
        return said.format(tokens_number=used)
    return mark_text(
        "This conversation has used {tokens_number} tokens, about ${dollars_number}."
    ).format(tokens_number=used, dollars_number=_format_number("usd", micros))


def describe_budget(limit: Limit) -> str:
    """The name of the budget in a sentence, such as `the budget of agent coder`."""
    return BUDGET_TEXTS[limit.scope].format(budget_name=limit.name)


BUDGET_TEXTS: dict[BudgetScope, str] = {
    "all": mark_text("the total budget"),
    "person": mark_text("the budget of {budget_name}"),
    "agent": mark_text("the budget of agent {budget_name}"),
    "job": mark_text("the budget of job {budget_name}"),
    "session": mark_text("the budget of this conversation"),
}
WARNING_TEXTS: dict[BudgetScope, str] = {
    "all": mark_text("The total budget is at {share_number}%: {used_text}."),
    "person": mark_text("The budget of {budget_name} is at {share_number}%: {used_text}."),
    "agent": mark_text("The budget of agent {budget_name} is at {share_number}%: {used_text}."),
    "job": mark_text("The budget of job {budget_name} is at {share_number}%: {used_text}."),
    "session": mark_text("The budget of this conversation is at {share_number}%: {used_text}."),
}
USE_TEXTS: dict[BudgetScope, str] = {
    "all": mark_text("In total: {used_text} ({share_number}%)."),
    "person": mark_text("{budget_name}: {used_text} ({share_number}%)."),
    "agent": mark_text("{budget_name}: {used_text} ({share_number}%)."),
    "job": mark_text("{budget_name}: {used_text} ({share_number}%)."),
    "session": mark_text("This conversation: {used_text} ({share_number}%)."),
}
"""How a limit stands, as a line of `/cost`."""
USED_TEXTS: dict[tuple[Literal["tokens", "usd"], BudgetPeriod], str] = {
    ("tokens", "day"): mark_text("{used_number} of {most_number} tokens today"),
    ("tokens", "month"): mark_text("{used_number} of {most_number} tokens this month"),
    ("tokens", "ever"): mark_text("{used_number} of {most_number} tokens"),
    ("usd", "day"): mark_text("${used_number} of ${most_number} today"),
    ("usd", "month"): mark_text("${used_number} of ${most_number} this month"),
    ("usd", "ever"): mark_text("${used_number} of ${most_number}"),
}


def format_used(standing: LimitStanding) -> str:
    """How much of the limit is used, such as `700 of 1,000 tokens today`."""
    limit = standing.limit
    return USED_TEXTS[limit.unit, limit.per].format(
        used_number=_format_number(limit.unit, standing.used),
        most_number=_format_number(limit.unit, standing.most),
    )


def render_use(standing: LimitStanding) -> str:
    """How the limit stands, as a line of `/cost`."""
    return _fill_standing(USE_TEXTS[standing.limit.scope], standing)


def _fill_standing(form: str, standing: LimitStanding) -> str:
    return form.format(
        budget_name=standing.limit.name,
        share_number=f"{standing.share:.0%}".removesuffix("%"),
        used_text=format_used(standing),
    )


def describe_reset(limit: Limit, today: int, zone: ZoneInfo) -> str:
    """A sentence that says when the limit resets."""
    on = reset_date(limit, today)
    if on is None:
        return mark_text("It does not reset by itself.")
    at = datetime.combine(on, time(), zone)
    return mark_text(
        "It resets on {reset_days}, {day_number} {reset_month} at {reset_clocks} ({zone_name})."
    ).format(
        reset_days=f"{at:%A}",
        day_number=f"{at:%d}",
        reset_month=f"{at:%B}",
        reset_clocks=f"{at:%H:%M}",
        zone_name=zone.key,
    )


def explain_spent(standing: LimitStanding, wanted: int, today: int, zone: ZoneInfo) -> str:
    """Why a call that wants this much is refused, and how an owner can allow more."""
    limit = standing.limit
    if not standing.most:
        change = (
            f"deskhand budget set {quote_key(limit.key)} --{limit.field.replace('_', '-')} NUMBER"
        )
        return mark_text(
            "{budget_text} is 0. An owner can change it with: {change_command}"
        ).format(budget_text=describe_budget(limit), change_command=change)
    form = mark_text(
        "{budget_text} is spent: {used_text} are used, and this call may use {wanted_text}. "
        "{reset_text} An owner can allow the same amount again with: {lift_command}"
    )
    if standing.held:
        form = mark_text(
            "{budget_text} is spent: {used_text} are used, {held_text} are reserved for running "
            "calls, and this call may use {wanted_text}. {reset_text} An owner can allow the same "
            "amount again with: {lift_command}"
        )
    return form.format(
        budget_text=describe_budget(limit),
        used_text=format_used(standing),
        held_text=format_amount(limit.unit, standing.held),
        wanted_text=format_amount(limit.unit, wanted),
        reset_text=describe_reset(limit, today, zone),
        lift_command=f"deskhand budget lift {quote_key(limit.key)} --per {limit.per}",
    )


def render_warning(standing: LimitStanding, today: int, zone: ZoneInfo) -> str:
    """A warning that the limit is nearly used up."""
    limit = standing.limit
    said = _fill_standing(WARNING_TEXTS[limit.scope], standing)
    return f"{said} {describe_reset(limit, today, zone)}"


def quote_key(key: str) -> str:
    """The key as one word for a shell."""
    return key if re.fullmatch(r"[\w:./@+-]+", key) else "'" + key.replace("'", "'\\''") + "'"
