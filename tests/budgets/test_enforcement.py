"""Budgets: held before a call, settled with its reply, and never overdrawn."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import anyio
import msgspec
import pytest
from msgspec.structs import replace

from deskhand.agent.agent import Agent
from deskhand.assembly.side_queries import SideQueries
from deskhand.budgets.enforcement import BudgetLedger
from deskhand.budgets.limit_rules import period_start
from deskhand.config.clock import RandomIds
from deskhand.config.config import Config, Home, Settings
from deskhand.config.sections import Budget, check_budgets
from deskhand.config.statements import load_statements
from deskhand.models.base import Item, Model, Reply, Request, TextDelta, ThinkingDelta
from deskhand.models.side_completion import Aside
from deskhand.runtime.app import App
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.clock import SetClock
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.testing.temporary_home import OWNER, TemporaryHome, at_rest, wait_for
from deskhand.types.budget import Charge
from deskhand.types.commit import Change
from deskhand.types.errors import BudgetSpent, ConfigError, ModelUnavailable
from deskhand.types.events import CommandRun, ModelReplied, TurnEnded
from deskhand.types.identity import Principal
from deskhand.types.messages import Usage

ANNA = Charge("default/web:anna:1", "anna", "default")
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC).timestamp()
DAY_S = 86_400.0


class Desktop:
    """A ledger on a database of its own, at noon of a day."""

    def __init__(
        self, home: Path, store: SqliteStore, budgets: dict[str, Any], zone: str = "UTC"
    ) -> None:
        config = Config(budgets=msgspec.convert(budgets, dict[str, Budget]), timezone=zone)
        self.settings = Settings(Home(home), config)
        self.store, self.clock = store, SetClock(NOON)
        self.ledger = self.anew()

    def anew(self) -> BudgetLedger:
        """What another process would make."""
        return BudgetLedger(self.store, self.clock, RandomIds(), lambda: self.settings)

    async def call(self, charge: Charge, tokens: int, used: Usage | None = None) -> str:
        """One whole call, that uses all of it where nothing else is said."""
        if why := await self.ledger.reserve(charge, tokens, "call"):
            return why
        await self.store.change(self.ledger.settle("call", used or Usage(tokens)))
        return ""


@asynccontextmanager
async def desktop(home: Path, budgets: dict[str, Any], zone: str = "UTC") -> AsyncIterator[Desktop]:
    store = SqliteStore(home / "budgets.db", load_statements())
    try:
        yield Desktop(home, store, budgets, zone)
    finally:
        await store.close()


async def test_a_call_that_does_not_fit_is_not_made(tmp_path: Path) -> None:
    async with desktop(tmp_path, {"person": {"tokens_per_day": 1000}}, "Europe/Berlin") as desk:
        assert await desk.call(ANNA, 700) == ""
        assert await desk.call(replace(ANNA, person="bert"), 900) == "", "each has their own"
        assert await desk.call(ANNA, 301) == (
            "the budget of anna is spent: 700 of 1,000 tokens today are used, and this call "
            "may use 301 tokens. It resets on Monday, 23 November at 00:00 (Europe/Berlin). "
            "An owner can allow the same amount again with: "
            "deskhand budget lift person:anna --per day"
        )
        assert await desk.call(ANNA, 300) == ""
        desk.clock.advance(11 * 3600 - 1)
        assert "1,000 of 1,000 tokens today" in await desk.call(ANNA, 1)
        desk.clock.advance(1)  # midnight in Berlin, not in London
        assert await desk.call(ANNA, 1000) == ""


async def test_every_kind_of_budget_counts(tmp_path: Path) -> None:
    job = Charge("default/job:morning:7", "anna", "default", "morning")
    for of, other in (
        ("all", job),
        ("person", replace(job, session="x", agent="y", job="z")),
        ("agent", replace(job, session="x", person="y", job="z")),
        ("job", replace(job, session="x", person="y", agent="z")),
        ("session", replace(job, person="y", agent="y", job="z")),
    ):
        (tmp_path / of).mkdir()
        async with desktop(tmp_path / of, {of: {"tokens": 10}}) as desk:
            assert await desk.call(job, 6) == ""
            assert "is spent: 6 of 10 tokens are used" in await desk.call(other, 6), of
            if of != "all":
                assert await desk.call(Charge("s", "p", "a"), 6) == "", of


async def test_a_name_stands_over_its_kind_and_a_month_over_days(tmp_path: Path) -> None:
    budgets = {
        "person": {"tokens_per_day": 100, "tokens_per_month": 250},
        "person:anna": {"tokens_per_day": 200},
    }
    async with desktop(tmp_path, budgets) as desk:
        assert await desk.call(ANNA, 200) == ""
        assert "100 tokens" in await desk.call(replace(ANNA, person="bert"), 101)
        desk.clock.advance(DAY_S)
        assert "200 of 250 tokens this month" in (why := await desk.call(ANNA, 51))
        assert "resets on Tuesday, 01 December at 00:00 (UTC)" in why and "--per month" in why
        assert await desk.call(ANNA, 50) == ""
        desk.clock.advance(8 * DAY_S)
        assert await desk.call(ANNA, 200) == ""
    assert (
        period_start("month", datetime(2026, 11, 30).toordinal())
        == datetime(2026, 11, 1).toordinal()
    )


async def test_what_is_held_and_given_back(tmp_path: Path) -> None:
    async with desktop(tmp_path, {"all": {"tokens": 1000}}) as desk:
        ledger = desk.ledger
        change = desk.store.change
        assert await ledger.reserve(ANNA, 600, "a") == ""
        assert "600 tokens are reserved for running calls" in await ledger.reserve(ANNA, 600, "b")
        await change(ledger.release("a"))
        assert await ledger.reserve(ANNA, 600, "b") == ""
        rows = ledger.settle("b", Usage(100, 50))
        assert ledger.list_charge_standings(ANNA)[0].remaining == 400, "its commit may be lost"
        await change(rows)
        assert await ledger.reserve(ANNA, 851, "c") != ""
        assert [(each.used, each.held) for each in ledger.list_charge_standings(ANNA)] == [(150, 0)]
        assert await ledger.reserve(ANNA, 850, "c") == ""
        await change(ledger.settle("c", Usage()))
        assert ledger.sum_used("all", "")[0] == 1000, (
            "a reply that does not say what it used has used what was held"
        )
        await ledger.lift("all", "", OWNER)
        assert await ledger.reserve(ANNA, 500, "d") == ""
        rows = ledger.settle("d", Usage(900, 50))
        assert ledger.list_charge_standings(ANNA)[0].remaining == 50, (
            "more than was held counts at once"
        )
        assert ledger.settle("c", Usage(1)) == ledger.release("never") == ()


@pytest.mark.parametrize("seed", range(6))
async def test_never_more_than_allowed_however_much_goes_on(tmp_path: Path, seed: int) -> None:
    """Sixty conversations at once, their commits late and in any order, some lost with their
    process."""
    random = Random(seed)
    budgets = {
        "all": {"tokens": 20_000, "usd": 0.12},
        "person": {"tokens_per_day": 6_000},
        "session": {"tokens": 2_000},
    }
    async with desktop(tmp_path, budgets) as desk:
        refused = 0
        made = 0

        async def talk(number: int) -> None:
            nonlocal refused, made
            charge = Charge(f"s{number % 30}", f"p{number % 5}", "default", model="openai/gpt-5")
            for turn in range(6):
                key = f"{number}.{turn}"
                most = random.randrange(1, 900)
                ledger = desk.ledger
                if await ledger.reserve(charge, most, key):
                    refused += 1
                    continue
                made += 1
                within(ledger)
                await anyio.sleep(random.random() / 500)
                how = random.random()
                if how < 0.15:
                    continue  # cut off: nobody settles it
                read = random.randrange(most + 1)
                rows = (
                    ledger.release(key)
                    if how < 0.3
                    else ledger.settle(key, Usage(read, most - read))
                )
                within(ledger)
                await anyio.sleep(random.random() / 500)
                if how < 0.9:
                    await desk.store.change(rows)
                within(ledger)

        def within(ledger: BudgetLedger) -> None:
            for name in range(5):
                for each in (
                    *ledger.list_standings("person", f"p{name}"),
                    *ledger.list_standings("all", ""),
                ):
                    assert each.remaining >= 0 and each.used <= each.most, each

        async with anyio.create_task_group() as tasks:
            for number in range(60):
                tasks.start_soon(talk, number)
        assert made > 20 and refused > 20
        desk.ledger = desk.anew()
        before = desk.ledger.list_standings("all", "")
        await desk.ledger.recover_holds()
        after = desk.ledger.list_standings("all", "")
        assert [each.used + each.held for each in before] == [each.used for each in after]
        within(desk.ledger)


async def test_a_call_in_which_the_process_dies_counts_in_full(tmp_path: Path) -> None:
    async with desktop(tmp_path, {"all": {"tokens": 1000}}) as desk:
        assert await desk.ledger.reserve(ANNA, 600, "a") == ""
        next_one = desk.ledger = desk.anew()
        assert next_one.list_charge_standings(ANNA)[0].remaining == 400, (
            "before anybody has looked after it"
        )
        assert await next_one.reserve(ANNA, 300, "b") == ""
        await next_one.recover_holds()
        assert [(each.used, each.held) for each in next_one.list_charge_standings(ANNA)] == [
            (600, 300)
        ], "its own is not taken"
        await next_one.recover_holds()
        assert next_one.sum_used("person", "anna")[0] == 600


async def test_nothing_is_written_before_a_call_where_nothing_is_limited(tmp_path: Path) -> None:
    async with desktop(tmp_path, {"person:bert": {"tokens": 1}}) as desk:
        looked: list[str] = []
        look = desk.store.query_sync

        def noted(name: str, args: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
            looked.append(name)
            return look(name, args)

        desk.store.query_sync = noted  # type: ignore[assignment, method-assign]
        assert await desk.ledger.reserve(ANNA, 10**9, "a") == ""
        rows = desk.ledger.settle("a", Usage(7, 3))
        assert (looked, len(rows)) == ([], 1), "and nothing is looked at"
        assert desk.store.query_sync("budget_holds") == []
        await desk.store.change(rows)
        assert desk.ledger.sum_used("person", "anna")[0] == 10, (
            "what is used counts for a budget that is set later"
        )


async def test_money_by_the_prices_of_the_catalogue(tmp_path: Path) -> None:
    paid, free, unknown = (
        replace(ANNA, model=name) for name in ("openai/gpt-5", "ollama/llama3", "openai/nobody")
    )
    async with desktop(tmp_path, {"all": {"usd_per_month": 0.05}}) as desk:
        assert await desk.call(paid, 4_000, Usage(2_000, 2_000)) == ""
        spent = desk.ledger.sum_used("all", "")[1]
        assert 0 < spent < 40_000, (
            "the most that it could cost was held, what it did cost is counted"
        )
        assert "the total budget is spent: $0.02 of $0.05 this month" in (
            await desk.call(paid, 4_000)
        ), desk.ledger.list_charge_standings(paid)
        assert await desk.call(free, 10**6) == "" and await desk.call(unknown, 10**6) == ""
        assert desk.ledger.sum_used("all", "")[1] == spent


class Busy(SqliteStore):
    """Another process holds something at the same moment, and the call is cancelled."""

    scope: anyio.CancelScope

    async def change(self, changes: Sequence[Change]) -> list[int]:
        await anyio.sleep(0)
        counts = await super().change(changes)
        if changes[0].statement == "budget_hold" and not self.scope.cancel_called:
            row = ("other", *changes[0].args[1:])
            await super().change([Change("budget_hold", row)])
            self.scope.cancel()
        return counts


async def test_what_is_held_at_the_same_moment_and_cut_off_is_let_go(tmp_path: Path) -> None:
    store = Busy(tmp_path / "budgets.db", load_statements())
    desk = Desktop(tmp_path, store, {"all": {"tokens": 1000}})
    with anyio.CancelScope() as store.scope:
        await desk.ledger.reserve(ANNA, 600, "call")
    assert [row[0] for row in store.query_sync("budget_holds")] == ["other"]
    assert desk.ledger.list_standings("all", "")[0].remaining == 400
    await store.close()


async def test_lifted_until_it_is_fresh(tmp_path: Path) -> None:
    async with desktop(tmp_path, {"person": {"tokens_per_day": 100, "tokens": 1000}}) as desk:
        assert await desk.call(ANNA, 100) == ""
        lifted = await desk.ledger.lift("person", "anna", OWNER, "day")
        assert [(each.most, each.remaining) for each in lifted] == [(200, 100)]
        assert await desk.call(ANNA, 100) == "" and await desk.call(ANNA, 1) != ""
        await desk.ledger.lift("person", "anna", OWNER, "day")
        assert await desk.call(ANNA, 100) == ""
        assert await desk.ledger.lift("person", "anna", OWNER, "month") == []
        desk.clock.advance(DAY_S)
        assert await desk.call(ANNA, 101) != "" and await desk.call(ANNA, 100) == ""
        notes = await desk.store.query("people_notes", (5,))
        assert [note[1:] for note in notes] == [("owner", "budget lifted", "person:anna day")] * 2


async def test_questions_away_from_a_conversation_are_paid_too(tmp_path: Path) -> None:
    def failing(request: object) -> Any:
        raise ModelUnavailable("down")

    models: dict[str, Model] = {
        "scripted/down": ScriptedModel(failing),
        "scripted/up": ScriptedModel(lambda request: Reply(say("yes"), "stop", Usage(30, 12))),
    }
    async with desktop(tmp_path, {"agent": {"tokens": 500}}) as desk:
        agent = _agent("scripted/down", "scripted/up")
        thinking = SideQueries(
            lambda name: agent, models.__getitem__, desk.ledger, desk.store.change
        )
        aside = Aside("Judge.", "Is it done?", output_tokens=200)
        aired = await thinking.ask("default", aside, charge=ANNA)
        assert (aired.text, aired.model) == ("yes", "scripted/up")
        assert desk.ledger.sum_used("person", "anna")[0] == 42, "the one that was down used nothing"
        assert desk.store.query_sync("budget_holds") == []
        await desk.call(ANNA, 300)
        with pytest.raises(BudgetSpent, match="the budget of agent default is spent"):
            await thinking.ask("default", aside)
        assert (
            await SideQueries(lambda name: agent, models.__getitem__).ask("default", aside)
        ).text == "yes"


def _agent(*models: str) -> Agent:
    nobody: Any = None
    return Agent(
        name="default",
        models=models,
        tools={},
        context=nobody,
        judge=nobody,
        workspace=nobody,
        commands=nobody,
        folder="",
    )


async def test_a_forecast_by_what_runs_have_used(tmp_path: Path) -> None:
    async with desktop(tmp_path, {"job": {"tokens_per_day": 1500}}) as desk:
        nothing = desk.ledger.forecast("morning", 30.4)
        assert not nothing.known and "known after the first one" in nothing.words
        guessed = desk.ledger.forecast("morning", 10, 5000)
        assert (guessed.tokens, guessed.known) == (
            50_000,
            True,
        ) and "the most that one run may use" in guessed.words
        for run, tokens in enumerate((400, 800)):
            charge = Charge(f"default/job:morning:{run}", "anna", "default", "morning")
            assert (
                await desk.call(charge, tokens // 2) == await desk.call(charge, tokens // 2) == ""
            )
        await desk.call(Charge("default/job:morning-two:1", "anna", "default", "morning-two"), 900)
        found = desk.ledger.forecast("morning", 30)
        assert found.words == (
            "morning runs about 30 times a month with 600 tokens each (learned from 2 "
            "runs): 18,000 tokens a month."
        )
        often = desk.ledger.forecast("morning", 300)
        assert often.words.endswith(
            "more than the budget of job morning allows: 1,500 tokens a day."
        )
        desk.clock.advance(30 * DAY_S)
        assert not desk.ledger.forecast("morning", 30).known


def test_a_key_that_names_nobody() -> None:
    for key in ("person:anna", "all", "session:default/web:a b:1", "job"):
        check_budgets({key: Budget()})
    for key in ("all:anna", "people", "person:", "Person", ""):
        with pytest.raises(
            ConfigError, match="is not a valid budget; write all, person, agent, job or session"
        ):
            check_budgets({key: Budget()})


async def test_who_comes_near_is_warned_once(tmp_path: Path) -> None:
    """At the place where they talk, without a call of a model; and what it has cost is said on
    demand."""
    desk = TemporaryHome(
        tmp_path, budgets={"person": {"tokens_per_day": 100_000}, "all": {"tokens": 1_000_000}}
    )
    session = "default/terminal:1"
    async with desk.running() as app:
        ledger = app.features.budgets
        charge = Charge(session, "owner", "default")

        async def notes(name: str) -> list[str]:
            events = [each.event for each in await app.store.events(session)]
            return [
                event.reply
                for event in events
                if isinstance(event, CommandRun) and event.name == name
            ]

        async def says(number: int) -> None:
            await desk.say(app, "hello")
            await wait_for(lambda: _replies(app, session, number))

        await says(1)
        assert await ledger.reserve(charge, 79_970, "k") == ""
        await app.store.change(ledger.settle("k", Usage(79_970)))
        await says(2)
        said = await wait_for(lambda: notes("budget"))
        assert said[0].startswith(
            "The budget of owner is at 80%: 80,010 of 100,000 tokens today. It resets on "
        )
        await says(3)
        await desk.say(app, "/cost")
        cost = (await wait_for(lambda: notes("cost")))[0]
        assert "This conversation has used 80,030 tokens." in cost
        assert "owner: 80,030 of 100,000 tokens today (80%)" in cost
        assert "In total: 80,030 of 1,000,000" in cost
        assert "In total" not in ledger.render_cost(session, Principal("owner", ("member",)))
        assert len(await notes("budget")) == 1 and len(desk.model.requests) == 3


async def _replies(app: App, session: str, number: int) -> bool:
    events = [each.event for each in await app.store.events(session)]
    return sum(isinstance(event, ModelReplied) for event in events) == number and await at_rest(
        app, session
    )


async def test_a_conversation_stops_in_words_and_goes_on(tmp_path: Path) -> None:
    """No call is made that does not fit, no other model is tried, and what is lifted holds at
    once."""
    desk = TemporaryHome(
        tmp_path,
        budgets={"person": {"tokens": 100_000}},
        defaults={"models": ["scripted/x", "scripted/y"]},
    )
    session = "default/terminal:1"
    async with desk.running() as app:
        ledger = app.features.budgets

        async def ended() -> list[str]:
            events = [each.event for each in await app.store.events(session)]
            return [event.said for event in events if isinstance(event, TurnEnded)]

        await desk.say(app, "hello")
        await wait_for(lambda: at_rest(app, session))
        assert (await ended(), ledger.sum_used("person", "owner")[0]) == ([""], 20), (
            "as the model says"
        )
        assert app.store.query_sync("budget_holds") == []
        assert await ledger.reserve(Charge("x", "owner", "default"), 99_900, "k") == ""
        await desk.say(app, "hello again")
        await wait_for(lambda: at_rest(app, session))
        said = (await ended())[-1]
        assert said.startswith(
            "Sorry, I could not answer: the budget of owner is spent: 20 of 100,000 tokens are used"
        )
        assert said.endswith(
            "An owner can allow the same amount again with: "
            "deskhand budget lift person:owner --per ever"
        )
        assert len(desk.model.requests) == 1
        await ledger.lift("person", "owner", OWNER)
        await desk.say(app, "hello again")
        await wait_for(lambda: at_rest(app, session))
        assert (await ended())[-1] == "" and len(desk.model.requests) == 2


async def test_two_processes_cannot_hold_more_than_there_is(tmp_path: Path) -> None:
    """A replay asks beside whoever drives: both look, both find room, and one is refused all the
    same."""
    async with desktop(tmp_path, {"all": {"tokens": 1000}}) as desk:
        other = desk.anew()
        refused = list[str]()

        async def ask(ledger: BudgetLedger) -> None:
            refused.append(await ledger.reserve(ANNA, 600, "a"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, desk.ledger)
            tasks.start_soon(ask, other)
        assert refused.count("") <= 1 and any("is spent" in each for each in refused)
        assert all(each.remaining >= 0 for each in desk.ledger.list_standings("all", ""))
        assert sum(row[2] for row in desk.store.query_sync("budget_holds")) <= 600


@pytest.mark.parametrize("ends", ["settled", "released"])
async def test_who_takes_over_charges_nobody_twice(tmp_path: Path, ends: str) -> None:
    """The one who drives is started while another process is in a call: its hold is taken for one
    of the dead."""
    async with desktop(tmp_path, {"all": {"tokens": 10_000}}) as desk:
        other = desk.anew()
        assert await other.reserve(ANNA, 600, "a") == ""
        await desk.ledger.recover_holds()
        assert desk.ledger.sum_used("person", "anna")[0] == 600
        rows = other.settle("a", Usage(150, 50)) if ends == "settled" else other.release("a")
        await desk.store.change(rows)
        used = 200 if ends == "settled" else 0
        for ledger in (desk.ledger, other):
            assert [(each.used, each.held) for each in ledger.list_standings("all", "")] == [
                (used, 0)
            ]
        assert desk.ledger.sum_used("person", "anna")[0] == used
        assert await other.reserve(ANNA, 600, "b") == ""
        await desk.store.change(other.release("b"))
        assert desk.store.query_sync("budget_names", ("person", 0, 9)) == [("anna", used, 0)]


async def test_a_call_whose_driver_was_cut_off_is_held_only_once(tmp_path: Path) -> None:
    """It goes on under the same name, in the same process: the first try counts in full, and holds
    nothing any more."""
    async with desktop(tmp_path, {"all": {"tokens": 2000}}) as desk:
        assert await desk.ledger.reserve(ANNA, 600, "a") == ""
        assert await desk.ledger.reserve(ANNA, 500, "a") == ""
        assert [(each.used, each.held) for each in desk.ledger.list_charge_standings(ANNA)] == [
            (600, 500)
        ]
        await desk.store.change(desk.ledger.settle("a", Usage(100, 0)))
        assert [(each.used, each.held) for each in desk.ledger.list_charge_standings(ANNA)] == [
            (700, 0)
        ]


async def test_a_clock_that_was_ahead_does_not_spend_the_years_to_come(tmp_path: Path) -> None:
    async with desktop(
        tmp_path, {"person": {"tokens_per_day": 100, "tokens_per_month": 150}}
    ) as desk:
        desk.clock.advance(1000 * DAY_S)
        assert await desk.call(ANNA, 100) == ""
        desk.clock.at = NOON
        assert await desk.call(ANNA, 100) == "", "that day is not today"
        assert "100 of 100 tokens today" in await desk.call(ANNA, 1)
        desk.clock.at = NOON - DAY_S
        assert "100 of 100 tokens today" in await desk.call(ANNA, 1), "zones differ by a day"


@pytest.mark.parametrize("first", [TextDelta("so f"), ThinkingDelta("hm")])
async def test_what_broke_off_while_it_answered_has_cost_something(
    tmp_path: Path, first: Item
) -> None:
    class Breaks(ScriptedModel):
        async def reply(self, request: Request) -> AsyncIterator[Item]:
            yield first
            raise ModelUnavailable("the connection broke")

    models: dict[str, Model] = {
        "scripted/breaks": Breaks(),
        "scripted/up": ScriptedModel(lambda request: say("yes")),
    }
    async with desktop(tmp_path, {"agent": {"tokens": 5_000}}) as desk:
        agent = _agent("scripted/breaks", "scripted/up")
        thinking = SideQueries(
            lambda name: agent, models.__getitem__, desk.ledger, desk.store.change
        )
        await thinking.ask(
            "default", Aside("Judge.", "Is it done?", output_tokens=200), charge=ANNA
        )
        assert desk.ledger.sum_used("person", "anna")[0] > 200 + 20, (
            "what was held, and the 20 of the other"
        )
    desk2 = TemporaryHome(tmp_path / "home", budgets={"person": {"tokens": 1_000_000}})
    desk2.model = Breaks()
    async with desk2.running() as app:
        await desk2.say(app, "hello")
        assert await wait_for(lambda: _used(app)) > 1_000, "in a conversation too"


async def _used(app: App) -> int:
    return app.features.budgets.sum_used("person", "owner")[0]


@pytest.mark.parametrize(
    "most", [{"usd": float("nan")}, {"usd_per_day": float("inf")}, {"tokens": -1}]
)
def test_an_amount_that_is_no_number(most: dict[str, Any]) -> None:
    with pytest.raises(
        ConfigError, match="is not an amount: write a number such as 20, or leave it out"
    ):
        check_budgets({"person:anna": Budget(**most)})


async def test_who_may_use_nothing_is_told_how_that_is_changed(tmp_path: Path) -> None:
    """To lift nothing is nothing."""
    async with desktop(tmp_path, {"person": {"usd_per_day": 0}}) as desk:
        why = await desk.call(replace(ANNA, model="openai/gpt-5"), 1)
        assert why == (
            "the budget of anna is 0. An owner can change it with: "
            "deskhand budget set person:anna --usd-per-day NUMBER"
        )
