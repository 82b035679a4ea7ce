"""`deskhand budget`: what model calls may use, what they have used, and how to allow more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar
from zoneinfo import ZoneInfo

import click
import msgspec

from ..budgets.enforcement import BudgetLedger
from ..budgets.limit_rules import (
    BUDGET_SCOPES,
    Amounts,
    BudgetScope,
    LimitStanding,
    describe_reset,
    format_amount,
    format_used,
    period_start,
    quote_key,
    to_day_number,
)
from ..config.clock import RandomIds, SystemClock
from ..config.config import Settings
from ..config.first_settings import store_setting
from ..config.sections import BUDGET_FIELDS, Budget, BudgetPeriod, check_budgets
from ..types.errors import DeskhandError
from .encoded import to_json
from .plain import escape_control
from .run import ME, USAGE, Listing, config_option, fail, limit_option, load_settings, with_store
from .table import print_table

T = TypeVar("T")
MAX_LISTED = 20
_UNITS = {"k": 1_000, "m": 1_000_000}


class Amount(click.ParamType[int]):
    """50000, 50_000, 50k or 2m."""

    name = "tokens"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).strip().lower().replace("_", "").replace(",", "")
        unit = _UNITS.get(text[-1:], 1)
        try:
            number = int(float(text if unit == 1 else text[:-1]) * unit)
        except (ValueError, OverflowError):
            number = -1
        if number < 0:
            self.fail(f"{value!r} is not a number of tokens: write 50000, 50k or 2m", param, ctx)
        return number


def with_ledger(settings: Settings, use: Callable[[BudgetLedger], Awaitable[T]]) -> T:
    """Look at the budgets, or lift them, beside whoever drives."""
    return with_store(
        settings,
        lambda store: use(BudgetLedger(store, SystemClock(), RandomIds(), lambda: settings)),
    )


@click.group(cls=Listing)
def budget() -> None:
    """Show and set token and cost limits.

    A budget applies to all usage, to every person, agent, job or session, or to one of them by
    name. The maximum that a call may use is reserved before the call, so a budget is never
    exceeded, even with many calls at once.

    \b
    Examples:
      deskhand budget
      deskhand budget set all --usd-per-month 20
      deskhand budget set person:anna --tokens-per-day 500k
      deskhand budget lift person:anna
    """


@budget.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@limit_option()
@config_option
def list_(as_json: bool, limit: int | None, config: str | None) -> None:
    """List budgets and their usage.

    \b
    Example:
      deskhand budget list --json
    """
    settings = load_settings(config)
    zone = ZoneInfo(settings.config.timezone)
    today = to_day_number(SystemClock().now(), zone)

    async def use(ledger: BudgetLedger) -> list[LimitStanding]:
        standings = list[LimitStanding]()
        for of, name in await _list_budget_keys(ledger, settings, today):
            standings += ledger.list_standings(of, name)
        return standings

    async def read_month_usage(ledger: BudgetLedger) -> Amounts:
        return ledger.sum_used("all", "", period_start("month", today))

    found = with_ledger(settings, use)[:limit]
    if as_json:
        click.echo(to_json([_to_dict(each) for each in found]))
        return
    rows = [
        (
            each.limit.key,
            format_used(each),
            f"{each.share:.0%}",
            describe_reset(each.limit, today, zone),
        )
        for each in found
    ]
    if rows:
        print_table(("budget of", "used", "", ""), rows)
    tokens, micros = with_ledger(settings, read_month_usage)
    dollars = f", about {format_amount('usd', micros)}" if micros else ""
    click.echo(f"Total this month: {format_amount('tokens', tokens)}{dollars}.")
    if not settings.config.budgets:
        click.echo("No budget is set. Set one with: deskhand budget set all --tokens-per-day 2m")


async def _list_budget_keys(
    ledger: BudgetLedger, settings: Settings, today: int
) -> list[tuple[BudgetScope, str]]:
    """Whom there is a line for: those that have a budget by name, and those who used something of a
    general one."""
    found: dict[tuple[BudgetScope, str], None] = {}
    for key in settings.config.budgets:
        of, name = _parse_key(key)
        found[of, name] = None
        if of != "all" and not name:
            del found[of, name]
            for name in await ledger.list_spenders(of, period_start("month", today), MAX_LISTED):
                found[of, name] = None
    return list(found)


def _to_dict(standing: LimitStanding) -> dict[str, Any]:
    limit = standing.limit
    scale = 1e6 if standing.limit.unit == "usd" else 1
    numbers = {"used": standing.used, "held": standing.held, "most": standing.most}
    return {
        "of": limit.key,
        "field": limit.field,
        **{name: number / scale for name, number in numbers.items()},
    }


@budget.command("set")
@click.argument("whose")
@click.option("--tokens-per-day", type=Amount(), help="Input and output tokens per calendar day.")
@click.option("--tokens-per-month", type=Amount(), help="Tokens per calendar month.")
@click.option("--tokens", type=Amount(), help="Tokens in total.")
@click.option(
    "--usd-per-day",
    type=click.FloatRange(min=0),
    help="US dollars per day, by catalogue prices.",
)
@click.option("--usd-per-month", type=click.FloatRange(min=0))
@click.option("--usd", type=click.FloatRange(min=0))
@click.option("--none", "nothing", is_flag=True, help="Remove the budget.")
@config_option
def set_(whose: str, nothing: bool, config: str | None, **most: float | None) -> None:
    """Set a budget for WHOSE: all, person, agent, job, session, or one of them such as person:NAME.

    Without a name, the budget applies to each of them. Limits that you do not set are kept. Changes
    apply from the next call.

    \b
    Examples:
      deskhand budget set all --usd-per-month 20
      deskhand budget set person --tokens-per-day 500k
      deskhand budget set job:morning --tokens-per-day 50k
      deskhand budget set person:anna --none
    """
    settings = load_settings(config)
    given = {field: most[field] for field in BUDGET_FIELDS if most[field] is not None}
    if bool(given) == nothing:
        fail("set a limit, such as --tokens-per-day 500k, or --none", USAGE)
    before = settings.config.budgets.get(whose, Budget())
    after = Budget() if nothing else msgspec.structs.replace(before, **given)
    try:
        check_budgets({whose: after})
        store_setting(settings, ("budgets", whose), msgspec.to_builtins(after))
    except DeskhandError as error:
        fail(str(error), USAGE)
    click.echo(escape_control(f"Set for {whose}: {_describe_budget(after)}"))


def _describe_budget(budget: Budget) -> str:
    said = []
    for field, (unit, per) in BUDGET_FIELDS.items():
        most = getattr(budget, field)
        if most is not None:
            number = round(most * 1e6) if unit == "usd" else int(most)
            said.append(
                f"{format_amount(unit, number)} {'in all' if per == 'ever' else f'a {per}'}"
            )
    return ", ".join(said) or "no limit"


@budget.command()
@click.argument("whose")
@click.option(
    "--per", type=click.Choice(["day", "month", "ever"]), help="Only the budget for this period."
)
@config_option
def lift(whose: str, per: BudgetPeriod | None, config: str | None) -> None:
    """Allow the same amount again until the budget resets. The limit itself stays as it is.

    \b
    Examples:
      deskhand budget lift person:anna
      deskhand budget lift all --per month
    """
    settings = load_settings(config)
    of, name = _parse_key(whose)
    if of != "all" and not name:
        fail(f"name one, as {of}:NAME; list budgets with: deskhand budget", USAGE)

    async def use(ledger: BudgetLedger) -> list[LimitStanding]:
        return await ledger.lift(of, name, ME, per or "")

    chosen = with_ledger(settings, lambda ledger: _select_limits(ledger, of, name, per or ""))
    zero = [each.limit.field for each in chosen if not each.most]
    amounts = " ".join(f"--{field.replace('_', '-')} NUMBER" for field in zero)
    change = f"deskhand budget set {quote_key(whose)} {amounts}"
    nothing = f"is 0, so lifting it has no effect; change it with: {change}"
    if zero and len(zero) == len(chosen):
        fail(f"the budget of {whose} {nothing}", USAGE)
    lifted = with_ledger(settings, use)
    if not lifted:
        limited = "no budget is set" if per is None else f"no budget for a {per} is set"
        fail(
            f"{limited} for {whose}, so there is nothing to lift; list budgets with: deskhand "
            "budget",
            USAGE,
        )
    further = "" if zero else "; write `continue` to resume"
    for each in lifted:
        if each.most:
            click.echo(escape_control(f"{each.limit.key}: {format_used(each)} are used{further}."))
    if zero:
        click.echo(escape_control(f"deskhand: one of the budgets of {whose} {nothing}"), err=True)


async def _select_limits(
    ledger: BudgetLedger, of: BudgetScope, name: str, per: BudgetPeriod | Literal[""]
) -> list[LimitStanding]:
    """Its limits, or those for that time."""
    return [each for each in ledger.list_standings(of, name) if per in ("", each.limit.per)]


def _parse_key(key: str) -> tuple[BudgetScope, str]:
    """Ends the command for one that names nobody."""
    kind, _, name = key.partition(":")
    of = next((each for each in BUDGET_SCOPES if each == kind), None)
    try:
        check_budgets({key: Budget()})
    except DeskhandError as error:
        fail(str(error), USAGE)
    if of is None:
        raise AssertionError("it was checked")
    return of, name
