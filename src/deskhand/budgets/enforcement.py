"""Keeps model calls within what was set: held before the call, settled in the commit of the
reply."""

from __future__ import annotations

import glob
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal
from zoneinfo import ZoneInfo

import anyio
import msgspec
from msgspec.structs import replace

from ..assembly.models import build_catalogue
from ..config.config import Settings
from ..config.sections import BudgetPeriod
from ..gateway.inject import InboundInjector
from ..models.weights import PROVIDER
from ..store.base import Store, Used
from ..types.budget import Budgets, Charge
from ..types.clock import Clock, Ids
from ..types.commit import Change
from ..types.errors import DeskhandError
from ..types.events import AskedAside, MessageReceived, ModelReplied, Recorded
from ..types.identity import SYSTEM, Address, Command, Inbound, Principal, responsible_person
from ..types.messages import Usage
from .limit_rules import (
    WARN_AT,
    BudgetForecast,
    BudgetScope,
    Learned,
    Limit,
    LimitStanding,
    explain_spent,
    forecast_job,
    format_amount,
    format_used,
    iter_limits,
    iter_scopes,
    render_warning,
    to_day_number,
)
from .prices import cost_usd

log = logging.getLogger(__name__)

FREE_PROVIDERS = (PROVIDER, "scripted")
MAX_PLACES = 1_000
"""So many conversations are remembered with the place where they are warned."""
LAST_DAY = 1 << 60
PAUSE_S = 5.0
MAX_READS = 4


class Hold(msgspec.Struct):
    """What one call may use. Where any limit holds, it stands in the database under its id until
    the commit that counts it, and `over` says that this commit is on its way. `near`: with it, some
    limit is nearly reached."""

    id: str
    charge: Charge
    day: int
    tokens: int
    micros: int
    near_limit: bool = False
    settled: bool = False

    @property
    def amounts(self) -> tuple[int, int]:
        return self.tokens, self.micros


class BudgetLedger:
    """All budgets. The process that drives reserves, and so do others that ask a model beside it: a
    replay.

    What counts is what stands in the database, and the holds on their way into it. One that was
    settled or released counts on until the commit with its rows is there: that may be lost, and the
    hold would then count again.
    """

    def __init__(
        self, store: Store, clock: Clock, ids: Ids, settings: Callable[[], Settings]
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._settings = settings
        self._open: dict[str, Hold] = {}
        self._held: dict[str, Hold] = {}
        self._places: dict[str, Address] = {}
        self._near: set[Charge] = set()
        self._poke = anyio.Event()

    # Before, and after, each call

    async def reserve(self, charge: Charge, tokens: int, key: str) -> str:
        zone, today = self._zone_and_today()
        limits = self._list_limits(iter_scopes(charge), today)
        hold = Hold(
            self._ids.new("hold") if limits else "",
            charge,
            today,
            tokens,
            self._max_cost_micros(limits, charge.model, tokens),
        )
        if (
            before := self._open.pop(key, None)
        ) is not None:  # its driver was cut off, and nobody settled it
            await self._store.change(
                (
                    _make_use_change(before.charge, before.day, *before.amounts),
                    *self._drop_hold(before),
                )
            )
        for standing in self._list_standings(limits) if limits else ():
            wanted = tokens if standing.limit.unit == "tokens" else hold.micros
            if wanted > standing.remaining or not standing.most:
                return explain_spent(standing, wanted, today, zone)
            hold.near_limit |= (
                standing.most - standing.remaining + wanted >= WARN_AT * standing.most
            )
        if limits:
            self._held[hold.id] = hold  # from here on, before anything waits
            row = (hold.id, today, tokens, hold.micros, msgspec.json.encode(charge))
            try:
                with anyio.CancelScope(
                    shield=True
                ):  # it stands there, and goes again where it must, or it never did
                    await self._store.change((Change("budget_hold", row),))
                    over = next(
                        (each for each in self._list_standings(limits) if each.remaining < 0), None
                    )
                    if over is not None:  # another process held something at the same moment
                        await self._store.change(self._drop_hold(hold))
            except BaseException:
                self._held.pop(hold.id, None)
                raise
            if over is not None:
                wanted = tokens if over.limit.unit == "tokens" else hold.micros
                return explain_spent(replace(over, held=over.held - wanted), wanted, today, zone)
        self._open[key] = hold
        return ""

    def settle(self, key: str, usage: Usage) -> tuple[Change, ...]:
        hold = self._open.pop(key, None)
        if hold is None:
            return ()
        used = hold.tokens, hold.micros
        if usage != Usage():
            used = (
                usage.input_tokens + usage.output_tokens,
                self._cost_micros(hold.charge.model, usage),
            )
        if hold.id in self._held and (
            hold.near_limit or used[0] > hold.tokens or used[1] > hold.micros
        ):
            self._near.add(hold.charge)
        held = hold.amounts
        hold.tokens, hold.micros = max(hold.tokens, used[0]), max(hold.micros, used[1])
        if hold.id not in self._held:
            return (_make_use_change(hold.charge, hold.day, *used),)
        return (_make_settle_change(hold, used, held), *self._drop_hold(hold))

    def release(self, key: str) -> tuple[Change, ...]:
        hold = self._open.pop(key, None)
        if hold is None or hold.id not in self._held:
            return ()
        return (_make_settle_change(hold, (0, 0), hold.amounts), *self._drop_hold(hold))

    def _drop_hold(self, hold: Hold) -> tuple[Change, ...]:
        hold.settled = True
        return (Change("budget_drop", (hold.id,)),) if hold.id in self._held else ()

    # What there is

    def list_charge_standings(self, charge: Charge) -> list[LimitStanding]:
        """Every limit that holds for this call, and how much of it is gone."""
        return self._list_standings(
            self._list_limits(iter_scopes(charge), self._zone_and_today()[1])
        )

    def list_standings(self, of: BudgetScope, name: str) -> list[LimitStanding]:
        """The limits of one person, agent, job, conversation, or of all."""
        return self._list_standings(self._list_limits([(of, name)], self._zone_and_today()[1]))

    def sum_used(self, of: BudgetScope, name: str, since: int = 0) -> tuple[int, int]:
        """The tokens and the millionths of US dollars that were used there from that day on. What
        was used while the clock was ahead counts when that time comes; that of tomorrow counts at
        once, since zones differ by a day."""
        until = self._zone_and_today()[1] + 1 if since else LAST_DAY
        tokens, micros = self._store.query_sync("budget_sum", (of, name, since, until))[0]
        return int(tokens), int(micros)

    def render_cost(self, session: str, principal: Principal) -> str:
        """What a conversation has used, and what is left of the budgets of this person, in
        words."""
        tokens, micros = self.sum_used("session", session)
        dollars = f", about {format_amount('usd', micros)}" if micros else ""
        lines = [f"This conversation has used {format_amount('tokens', tokens)}{dollars}."]
        charge = Charge(session, responsible_person(principal), session.partition("/")[0])
        seen = [
            each
            for each in self.list_charge_standings(charge)
            if each.limit.scope != "all" or "owner" in principal.roles
        ]
        for each in seen:
            what = {"all": "All that is done here", "session": "This conversation"}.get(
                each.limit.scope, each.limit.name
            )
            lines.append(f"{what}: {format_used(each)} ({each.share:.0%}).")
        return "\n".join(lines if seen else [*lines, "No budget is set that it would count for."])

    async def list_spenders(self, of: BudgetScope, since: int, limit: int) -> list[str]:
        """Who of that kind has used anything from that day on, the most first."""
        return [name for name, *_ in await self._store.query("budget_names", (of, since, limit))]

    async def lift(
        self, of: BudgetScope, name: str, by: Principal, per: BudgetPeriod | Literal[""] = ""
    ) -> list[LimitStanding]:
        """Allow as much once more: until the budget is fresh again, or for good where it never is.
        Of all its limits, or of those for that time. Returns how they stand then; [] where there is
        none."""
        chosen = [
            each.limit for each in self.list_standings(of, name) if per in ("", each.limit.per)
        ]
        if not chosen:
            return []
        note = Change(
            "people_note",
            (self._clock.now(), by.id, "budget lifted", f"{chosen[0].key} {per}".strip()),
        )
        rows = [
            Change("budget_lift", (of, name, limit.field, limit.since, limit.most))
            for limit in chosen
        ]
        await self._store.change([note, *rows])
        return [each for each in self.list_standings(of, name) if each.limit in chosen]

    def forecast(self, job: str, runs_per_month: float, tokens_per_run: int = 0) -> BudgetForecast:
        """What a month of a job may come to, by what its runs of the last 30 days have used; before
        its first run by `tokens_per_run`, what one run may use."""
        today = self._zone_and_today()[1]
        pattern = f"*/job:{glob.escape(job)}:*"
        runs, tokens, micros = map(
            int, self._store.query_sync("budget_runs", (today - 29, pattern))[0]
        )
        each = (tokens / runs, micros / runs) if runs else (float(tokens_per_run), 0.0)
        a_month = [
            standing.limit
            for standing in (*self.list_standings("job", job), *self.list_standings("all", ""))
            if standing.limit.per != "ever"
        ]
        return forecast_job(job, Learned(runs, *each), runs_per_month, a_month)

    def _list_limits(self, of: Iterable[tuple[BudgetScope, str]], today: int) -> list[Limit]:
        budgets = self._settings().config.budgets
        return (
            [limit for kind, name in of for limit in iter_limits(budgets, kind, name, today)]
            if budgets
            else []
        )

    def _list_standings(self, limits: Sequence[Limit]) -> list[LimitStanding]:
        rows = self._store.query_sync("budget_holds")
        for _ in range(MAX_READS):
            found = self._read_standings(limits, {row[0]: row for row in rows})
            before = rows
            rows = self._store.query_sync("budget_holds")
            if rows == before:
                # else something was committed in between, which may have been counted twice, never
                # not at all
                break
        return found

    def _read_standings(
        self, limits: Sequence[Limit], rows: Mapping[str, tuple[Any, ...]]
    ) -> list[LimitStanding]:
        holds = self._merge_holds(rows)
        found = []
        for limit in limits:
            usd = limit.unit == "usd"
            place = (limit.scope, limit.name)
            mine = [
                each
                for each in holds
                if each.day >= limit.since and place in iter_scopes(each.charge)
            ]
            held = sum(each.micros if usd else each.tokens for each in mine)
            lifted = self._store.query_sync("budget_lifted", (*place, limit.field, limit.since))
            used = self.sum_used(*place, limit.since)[usd]
            found.append(LimitStanding(limit, used, held, int(lifted[0][0]) if lifted else 0))
        return found

    def _merge_holds(self, rows: Mapping[str, tuple[Any, ...]]) -> list[Hold]:
        """All that is held, `rows` being what stands in the database."""
        gone = [id_ for id_, hold in self._held.items() if hold.settled and id_ not in rows]
        others = [
            Hold(id_, msgspec.json.decode(charge, type=Charge), day, tokens, micros)
            for id_, day, tokens, micros, charge in rows.values()
            if id_ not in self._held
        ]
        for id_ in gone:
            del self._held[id_]  # its commit is there
        return [*self._held.values(), *others]

    def _zone_and_today(self) -> tuple[ZoneInfo, int]:
        zone = ZoneInfo(self._settings().config.timezone)
        return zone, to_day_number(self._clock.now(), zone)

    def _cost_micros(self, model: str, usage: Usage) -> int:
        """What that cost; 0 where no price is known."""
        if model.partition("/")[0] in FREE_PROVIDERS:
            return 0
        counts = (
            usage.input_tokens,
            usage.output_tokens,
            usage.cached_tokens,
            usage.cache_write_tokens,
        )
        usd = cost_usd(Used("", "", model, 0, 1, *counts), build_catalogue(self._settings()))
        return round((usd or 0) * 1e6)

    def _max_cost_micros(self, limits: Sequence[Limit], model: str, tokens: int) -> int:
        """The most that so many tokens can cost, where that is limited."""
        if not any(limit.unit == "usd" for limit in limits):
            return 0
        return max(
            self._cost_micros(model, Usage(tokens)), self._cost_micros(model, Usage(0, tokens))
        )

    # For ever

    def on_event(self, recorded: Recorded) -> None:
        """An event passes: where people are, and that something was used."""
        match recorded.event:
            case MessageReceived(principal=principal, address=address) if (
                principal.kind == "person"
            ):
                self._places.pop(recorded.session, None)
                self._places[recorded.session] = address
                if len(self._places) > MAX_PLACES:
                    del self._places[next(iter(self._places))]
            case ModelReplied() | AskedAside() if self._near:
                self._poke.set()
            case _:
                pass

    async def run(self, waker: InboundInjector) -> None:
        """Count what a process held that is gone; then warn those whose budget is nearly spent."""
        await self.recover_holds()
        while True:
            await self._poke.wait()
            self._poke = anyio.Event()
            await self._warn(waker)
            if self._near:  # the disk is full, or much waits there
                await anyio.sleep(PAUSE_S)
                self._poke.set()

    async def recover_holds(self) -> None:
        """What was held by a process that is gone counts as used. Only who drives may call it."""
        for id_, day, tokens, micros, charge in await self._store.query("budget_holds", ()):
            if id_ not in self._held:
                used = _make_use_change(
                    msgspec.json.decode(charge, type=Charge), day, tokens, micros
                )
                await self._store.change((used, Change("budget_drop", (id_,))))

    async def _warn(self, waker: InboundInjector) -> None:
        near = self._near
        self._near = set()
        zone, today = self._zone_and_today()
        for charge in near:
            for standing in self.list_charge_standings(charge):
                limit = standing.limit
                row = (limit.scope, limit.name, limit.field, limit.since, standing.most)
                if standing.share < WARN_AT or self._store.query_sync("budget_warned", row):
                    continue
                words = render_warning(standing, today, zone)
                log.warning("%s", words)
                try:
                    await self._send_warning(
                        waker, charge.session, f"budget:{':'.join(map(str, row))}", words
                    )
                    await self._store.change((Change("budget_warn", row),))
                except DeskhandError as error:
                    self._near.add(charge)  # again, soon
                    log.warning("nobody was warned of it: %s", error)

    async def _send_warning(
        self, waker: InboundInjector, session: str, name: str, words: str
    ) -> None:
        """Once, at the place where somebody talks to the agent alone."""
        place = self._places.get(session)
        if place is not None and not place.group:
            note = Command("budget", words)
            await waker.hand_in(
                Inbound(name, place, SYSTEM.id, self._clock.now(), note, session), SYSTEM
            )


def _make_use_change(who: Charge, day: int, tokens: int, micros: int) -> Change:
    return Change("budget_use", (day, tokens, micros, who.person, who.agent, who.job, who.session))


def _make_settle_change(hold: Hold, used: tuple[int, int], held: tuple[int, int]) -> Change:
    who = hold.charge
    return Change(
        "budget_settle",
        (hold.day, *used, who.person, who.agent, who.job, who.session, hold.id, *held),
    )


_: type[Budgets] = BudgetLedger
