"""What models used and what it cost: by day, model, agent, person and conversation, and what this
month will come to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec

from ..store.base import Store, Used
from ..store.queries import members_of_used
from .conversations import PREVIEW_CHARS
from .names import format_session_name
from .routing import Call, Endpoint
from .views import Price

DAY_S = 86_400
RANGE_DAYS = {"today": 0, "7d": 6, "30d": 29}
RECENT_DAYS = 30
"""How far back it is looked to tell since when models are used."""
PACE_DAYS = 7
OTHER_ACTORS = ("job:", "agent:", "system")
"""How the ids of those begin that take part in a conversation and are no people."""


class UsageQuery(msgspec.Struct, frozen=True):
    """`range`: since midnight (UTC), the last seven or thirty days, or everything. The others leave
    only what was used with one model, by one agent, in conversations of one person (as in `people`
    of the answer), or on one day (as 2026-11-29)."""

    range: Literal["today", "7d", "30d", "all"] = "all"
    model: str = ""
    agent: str = ""
    person: str = ""
    day: str = ""


class Sum(msgspec.Struct, frozen=True, kw_only=True):
    """`cost` is in US dollars by the prices of the catalogue; None where one of them is not known.
    `known_cost` is what the calls with a known price come to, `unpriced_calls` is how many others
    there are."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    api_calls: int
    cost: float | None
    known_cost: float = 0.0
    unpriced_calls: int = 0


class SessionUsage(Sum, frozen=True, kw_only=True):
    """A sum of one conversation; `preview` is how it began."""

    session_id: str
    preview: str


class UsageLine(Sum, frozen=True, kw_only=True):
    """A sum of one model, day, agent or person, whose name is `id`."""

    id: str


class Forecast(msgspec.Struct, frozen=True):
    """What this month (UTC) has used so far, and what it comes to at the pace of the last
    `pace_days` days: seven, or fewer where nothing was used before. Calls of unknown price count
    nothing."""

    so_far: Sum
    total_tokens: int
    known_cost: float
    pace_days: int


class UsageSummary(msgspec.Struct, frozen=True):
    """`people` are those who take part in the conversations; where several do, their ids stand in
    one line with commas between them. Only owners are shown it."""

    total: Sum
    sessions: list[SessionUsage]
    models: list[UsageLine]
    days: list[UsageLine]
    agents: list[UsageLine]
    people: list[UsageLine]
    month: Forecast


async def get_usage(call: Call) -> UsageSummary:
    now = call.web.clock.now()
    span = RANGE_DAYS.get(call.query.range)
    since = 0.0 if span is None else start_of_day(now) - span * DAY_S
    recent = start_of_day(now) - RECENT_DAYS * DAY_S
    first = min(since, recent)

    who = call.principal
    found = [row for row in await call.web.store.usage(who, first) if row.day >= first]
    people = await people_of_sessions(call.web.store, first) if "owner" in who.roles else {}
    found = [row for row in found if is_wanted(row, call.query, people)]
    rows = [row for row in found if row.day >= since]
    prices = {model: call.web.admin.price(model) for model in {row.model for row in found}}

    def lines_by(name_of: Callable[[Used], str]) -> list[UsageLine]:
        named = sum_by(rows, name_of, prices)
        return [UsageLine(id=name, **msgspec.structs.asdict(each)) for name, each in named]

    titles = {row.session: row.title for row in rows}
    sessions = [
        SessionUsage(
            session_id=format_session_name(key, who, call.web.admin.agents[0]),
            preview=titles[key][:PREVIEW_CHARS],
            **msgspec.structs.asdict(each),
        )
        for key, each in sum_by(rows, lambda row: row.session, prices)
    ]
    return UsageSummary(
        total=sum_usage(rows, prices),
        sessions=sessions,
        models=lines_by(lambda row: row.model),
        days=sorted(lines_by(date_of), key=lambda line: line.id),
        agents=lines_by(agent_of),
        people=lines_by(lambda row: people.get(row.session, "")) if people else [],
        month=forecast_month(found, now, prices),
    )


async def people_of_sessions(store: Store, since: float) -> Mapping[str, str]:
    """Who takes part in each conversation that has used anything since then: their ids, with commas
    between them."""
    members = dict[str, list[str]]()
    for session, principal in await members_of_used(store, int(since // DAY_S)):
        if not principal.startswith(OTHER_ACTORS):
            members.setdefault(session, []).append(principal)
    return {session: ", ".join(ids) for session, ids in members.items()}


def is_wanted(row: Used, query: UsageQuery, people: Mapping[str, str]) -> bool:
    return (
        query.model in ("", row.model)
        and query.agent in ("", agent_of(row))
        and query.person in ("", people.get(row.session, ""))
        and query.day in ("", date_of(row))
    )


def agent_of(row: Used) -> str:
    return row.session.partition("/")[0]


def date_of(row: Used) -> str:
    return datetime.fromtimestamp(row.day, UTC).date().isoformat()


def start_of_day(now: float) -> float:
    return now // DAY_S * DAY_S


def sum_by(
    rows: Iterable[Used], name_of: Callable[[Used], str], prices: Mapping[str, Price | None]
) -> list[tuple[str, Sum]]:
    """The sum for each name, the one with the most tokens first."""
    named = dict[str, list[Used]]()
    for row in rows:
        named.setdefault(name_of(row), []).append(row)
    sums = [(name, sum_usage(each, prices)) for name, each in named.items()]
    return sorted(sums, key=lambda line: -line[1].total_tokens)


def sum_usage(rows: Iterable[Used], prices: Mapping[str, Price | None]) -> Sum:
    """What these came to."""
    read = written = calls = unpriced = 0
    known = 0.0
    whole = True
    for row in rows:
        read += row.input_tokens
        written += row.output_tokens
        calls += row.calls
        price = prices[row.model]
        if price is None:
            whole = False
            unpriced += row.calls
        else:
            known += cost_of(row, price)
    known = round(known, 6)
    return Sum(
        prompt_tokens=read,
        completion_tokens=written,
        total_tokens=read + written,
        api_calls=calls,
        cost=known if whole else None,
        known_cost=known,
        unpriced_calls=unpriced,
    )


def cost_of(row: Used, price: Price) -> float:
    """In US dollars."""
    fresh = row.input_tokens - row.cached_tokens
    return (
        fresh * price.read + row.cached_tokens * price.cached + row.output_tokens * price.written
    ) / 1e6


def forecast_month(
    rows: Sequence[Used], now: float, prices: Mapping[str, Price | None]
) -> Forecast:
    """What the month comes to. `rows` go back at least to its first day, and a week."""
    today = start_of_day(now)
    first = datetime.fromtimestamp(now, UTC).replace(
        day=1, hour=0, minute=0, second=0, microsecond=0
    )
    end = (first + timedelta(days=31)).replace(day=1).timestamp()
    days_left = (end - now) / DAY_S
    so_far = sum_usage((row for row in rows if row.day >= first.timestamp()), prices)

    window = today - (PACE_DAYS - 1) * DAY_S
    began = max(window, min((row.day for row in rows), default=window))
    last = sum_usage((row for row in rows if row.day >= began), prices)
    days = max(1.0, (now - began) / DAY_S)  # of the first hours alone, nothing follows for a day
    return Forecast(
        so_far=so_far,
        total_tokens=round(so_far.total_tokens + last.total_tokens / days * days_left),
        known_cost=round(so_far.known_cost + last.known_cost / days * days_left, 6),
        pace_days=round((today - began) / DAY_S) + 1,
    )


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/usage",
        "read",
        get_usage,
        "Get token usage and cost",
        query=UsageQuery,
        returns=UsageSummary,
        invalid=422,
        tag="conversations",
    ),
)
