"""What was used and what it cost: by model, day, agent and person; calls of unknown price beside
the sum; what the month will come to."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from deskhand.store.base import Used
from deskhand.testing.clock import SetClock
from deskhand.types import events as e
from deskhand.types.commit import Commit
from deskhand.types.identity import Address, Principal
from deskhand.types.labels import OWNER
from deskhand.types.messages import Message, Text, Usage
from deskhand.web.usage import DAY_S, forecast_month
from deskhand.web.views import Price

from .served import Served, serving
from .test_guard import problem

DEAR = "anthropic/claude-sonnet-5"
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp()
OWNER_PERSON = Principal("owner", ("owner",))
EVE = Principal("eve", ("member",))
HER_JOB = Principal("job:morning", ("member",), "clock", "eve")


async def use(
    served: Served, session: str, model: str, at: float, who: Principal = OWNER_PERSON
) -> None:
    """A conversation in which this person asked once and this model answered."""
    asked = Message("user", (Text(f"Ask {model}", OWNER),))
    answer = Message("assistant", (Text("Here."),))
    address = Address("web", who.id, session.rpartition(":")[2])
    events = (
        e.MessageReceived(0, who, address, asked, session),
        e.ModelReplied(answer, model, "stop", Usage(1_000_000, 100_000)),
        e.TurnEnded("done"),
    )
    await served.app.store.commit(Commit(session, 1, at, events, close=True))


async def test_unknown_prices_do_not_hide_what_is_known(served: Served) -> None:
    now = time.time()
    await use(served, "default/web:owner:a", DEAR, now)
    await use(served, "default/web:owner:b", "unknown/one", now)
    used = await served.owner.get("/api/usage?range=today")
    by_model = {line["id"]: line for line in used["models"]}
    known = by_model[DEAR]["known_cost"]
    assert known > 0 and by_model[DEAR]["unpriced_calls"] == 0
    assert (by_model["unknown/one"]["cost"], by_model["unknown/one"]["unpriced_calls"]) == (None, 1)
    assert (used["total"]["known_cost"], used["total"]["unpriced_calls"]) == (known, 1)
    assert used["month"]["so_far"]["unpriced_calls"] == 1


async def test_by_agent_and_person_and_what_a_line_is_made_of(served: Served) -> None:
    now = time.time()
    await served.people.add_user("eve", "member")
    _, eve = await served.token("eve")
    await use(served, "default/web:owner:mine", DEAR, now)
    await use(served, "default/web:eve:hers", "unknown/one", now, EVE)
    await use(served, "careful/web:owner:also", "unknown/one", now)
    await use(served, "default/telegram:bot:group", "unknown/one", now)
    await use_again(served, "default/telegram:bot:group", now, EVE)
    await use(served, "default/job:morning", "unknown/one", now, HER_JOB)

    used = await served.owner.get("/api/usage?range=7d")
    assert {line["id"]: line["api_calls"] for line in used["agents"]} == {
        "default": 5,
        "careful": 1,
    }
    assert {line["id"]: line["api_calls"] for line in used["people"]} == {
        "owner": 2,
        "eve": 2,
        "eve, owner": 2,
    }

    async def sessions(query: str) -> set[str]:
        found = await served.owner.get(f"/api/usage?range=7d&{query}")
        assert found["total"]["api_calls"] == sum(row["api_calls"] for row in found["sessions"])
        return {row["session_id"] for row in found["sessions"]}

    assert await sessions("person=eve") == {"default~web:eve:hers", "default~job:morning"}
    assert await sessions("person=eve,%20owner") == {"default~telegram:bot:group"}
    assert await sessions("agent=careful") == {"careful~web:owner:also"}
    assert await sessions(f"model={DEAR}") == {"mine"}
    assert len(await sessions(f"day={datetime.fromtimestamp(now, UTC):%Y-%m-%d}")) == 5
    assert await sessions("day=2001-01-01") == set()

    hers = await eve.get("/api/usage?range=7d")
    assert hers["people"] == []
    assert {row["session_id"] for row in hers["sessions"]} == {
        "hers",
        "default~telegram:bot:group",
        "default~job:morning",
    }
    assert (await eve.get("/api/usage?range=7d&person=owner"))["sessions"] == []
    assert problem(await eve.ask("GET", "/api/usage?range=year"))[0] == 422


async def use_again(served: Served, session: str, at: float, who: Principal) -> None:
    """Somebody else goes on in it."""
    asked = Message("user", (Text("And now?", OWNER),))
    answer = Message("assistant", (Text("Now too."),))
    address = Address("telegram", "bot", "group")
    events = (
        e.MessageReceived(0, who, address, asked, f"{session}:2"),
        e.ModelReplied(answer, "unknown/one", "stop", Usage(10, 10)),
        e.TurnEnded("done"),
    )
    await served.app.store.commit(Commit(session, 4, at, events, close=True))


async def test_the_month_is_that_of_the_clock(tmp_path: Path) -> None:
    async with serving(tmp_path, clock=SetClock(NOON)) as served:
        await use(served, "default/web:owner:old", DEAR, NOON - 40 * DAY_S)
        await use(served, "default/web:owner:last", DEAR, NOON - 21 * DAY_S)  # 30 October
        await use(served, "default/web:owner:new", DEAR, NOON - 2 * DAY_S)
        used = await served.owner.get("/api/usage?range=today")
        assert used["total"]["api_calls"] == 0
        month = used["month"]
        assert month["so_far"]["api_calls"] == 1
        one = month["so_far"]["known_cost"]
        assert month["known_cost"] == pytest.approx(one + one / 6.5 * 10.5)
        assert month["pace_days"] == 7
        assert len((await served.owner.get("/api/usage?range=all"))["sessions"]) == 3


def used_on(*days_ago: int) -> list[Used]:
    """A million tokens, read with one call, so many days before noon of 20 November 2026."""
    midnight = int(NOON) // DAY_S * DAY_S
    return [
        Used(f"default/web:owner:{ago}", "", "m", midnight - ago * DAY_S, 1, 1_000_000, 0, 0, 0)
        for ago in days_ago
    ]


PRICES = {"m": Price(read=1.0, written=1.0, cached=0.1)}


def test_a_forecast_is_what_was_used_and_the_pace_of_the_week() -> None:
    found = forecast_month(used_on(0, 1, 2, 3, 4, 5, 6, 25), NOON, PRICES)
    assert (found.so_far.api_calls, found.so_far.known_cost, found.pace_days) == (7, 7.0, 7)
    assert found.known_cost == pytest.approx(7 + 7 / 6.5 * 10.5)
    assert found.total_tokens == round(7e6 + 7e6 / 6.5 * 10.5)


def test_who_began_yesterday_has_a_pace_of_two_days() -> None:
    found = forecast_month(used_on(0, 1), NOON, PRICES)
    assert found.pace_days == 2
    assert found.known_cost == pytest.approx(2 + 2 / 1.5 * 10.5)


def test_the_first_hour_counts_as_a_day() -> None:
    found = forecast_month(used_on(0), NOON, PRICES)
    assert found.pace_days == 1
    assert found.known_cost == pytest.approx(1 + 1 * 10.5)


def test_an_idle_week_adds_nothing() -> None:
    found = forecast_month(used_on(10, 12), NOON, PRICES)
    assert found.known_cost == found.so_far.known_cost == 2.0
    nothing = forecast_month([], NOON, PRICES)
    assert (nothing.total_tokens, nothing.known_cost, nothing.pace_days) == (0, 0.0, 7)


def test_on_the_first_of_january_the_year_before_counts_for_the_pace_alone() -> None:
    new_year = datetime(2027, 1, 1, 12, tzinfo=UTC).timestamp()
    shift = int(new_year - NOON)
    rows = [
        Used(row.session, "", "m", row.day + shift, 1, 1_000_000, 0, 0, 0)
        for row in used_on(*range(10))
    ]
    found = forecast_month(rows, new_year, PRICES)
    assert found.so_far.known_cost == 1.0
    assert found.known_cost == pytest.approx(1 + 7 / 6.5 * 30.5)
