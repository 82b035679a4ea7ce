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

from ..assembly.models import catalogue_of
from ..config.config import Settings
from ..config.sections import Per
from ..gateway.inject import InboundInjector
from ..models.weights import PROVIDER
from ..store.base import Store, Used
from ..types.budget import Budgets, Charge
from ..types.clock import Clock, Ids
from ..types.commit import Change
from ..types.errors import DeskhandError
from ..types.events import AskedAside, MessageReceived, ModelReplied, Recorded
from ..types.identity import SYSTEM, Address, Command, Inbound, Principal, acts_for
from ..types.messages import Usage
from .limit_rules import (
    WARN_AT,
    BudgetForecast,
    Learned,
    Limit,
    LimitStanding,
    Of,
    amount,
    day_of,
    forecast,
    gone,
    limits_of,
    of_charge,
    spent,
    warning,
)
from .prices import cost_usd

log = logging.getLogger(__name__)

FREE = (PROVIDER, "scripted")
PLACES = 1_000
"""So many conversations are remembered with the place where they are warned."""
LAST = 1 << 60
PAUSE_S = 5.0
LOOKS = 4


class Hold(msgspec.Struct):
    """What one call may use. Where any limit holds, it stands in the database under its id until
    the commit that counts it, and `over` says that this commit is on its way. `near`: with it, some
    limit is nearly reached."""

    id: str
    charge: Charge
    day: int
    tokens: int
    micros: int
    near: bool = False
    over: bool = False

    @property
    def most(self) -> tuple[int, int]:
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
        zone, today = self._now()
        limits = self._limits(of_charge(charge), today)
        hold = Hold(
            self._ids.new("hold") if limits else "",
            charge,
            today,
            tokens,
            self._most(limits, charge.model, tokens),
        )
        if (
            before := self._open.pop(key, None)
        ) is not None:  # its driver was cut off, and nobody settled it
            await self._store.change(
                (_counted(before.charge, before.day, *before.most), *self._dropped(before))
            )
        for standing in self._standings(limits) if limits else ():
            wanted = tokens if standing.limit.unit == "tokens" else hold.micros
            if wanted > standing.left or not standing.most:
                return spent(standing, wanted, today, zone)
            hold.near |= standing.most - standing.left + wanted >= WARN_AT * standing.most
        if limits:
            self._held[hold.id] = hold  # from here on, before anything waits
            row = (hold.id, today, tokens, hold.micros, msgspec.json.encode(charge))
            try:
                with anyio.CancelScope(
                    shield=True
                ):  # it stands there, and goes again where it must, or it never did
                    await self._store.change((Change("budget_hold", row),))
                    over = next((each for each in self._standings(limits) if each.left < 0), None)
                    if over is not None:  # another process held something at the same moment
                        await self._store.change(self._dropped(hold))
            except BaseException:
                self._held.pop(hold.id, None)
                raise
            if over is not None:
                wanted = tokens if over.limit.unit == "tokens" else hold.micros
                return spent(replace(over, held=over.held - wanted), wanted, today, zone)
        self._open[key] = hold
        return ""

    def settle(self, key: str, usage: Usage) -> tuple[Change, ...]:
        hold = self._open.pop(key, None)
        if hold is None:
            return ()
        used = hold.tokens, hold.micros
        if usage != Usage():
            used = usage.input_tokens + usage.output_tokens, self._micros(hold.charge.model, usage)
        if hold.id in self._held and (hold.near or used[0] > hold.tokens or used[1] > hold.micros):
            self._near.add(hold.charge)
        held = hold.most
        hold.tokens, hold.micros = max(hold.tokens, used[0]), max(hold.micros, used[1])
        if hold.id not in self._held:
            return (_counted(hold.charge, hold.day, *used),)
        return (_settled(hold, used, held), *self._dropped(hold))

    def release(self, key: str) -> tuple[Change, ...]:
        hold = self._open.pop(key, None)
        if hold is None or hold.id not in self._held:
            return ()
        return (_settled(hold, (0, 0), hold.most), *self._dropped(hold))

    def _dropped(self, hold: Hold) -> tuple[Change, ...]:
        hold.over = True
        return (Change("budget_drop", (hold.id,)),) if hold.id in self._held else ()

    # What there is

    def standings(self, charge: Charge) -> list[LimitStanding]:
        """Every limit that holds for this call, and how much of it is gone."""
        return self._standings(self._limits(of_charge(charge), self._now()[1]))

    def standing(self, of: Of, name: str) -> list[LimitStanding]:
        """The limits of one person, agent, job, conversation, or of all."""
        return self._standings(self._limits([(of, name)], self._now()[1]))

    def used(self, of: Of, name: str, since: int = 0) -> tuple[int, int]:
        """The tokens and the millionths of US dollars that were used there from that day on. What
        was used while the clock was ahead counts when that time comes; that of tomorrow counts at
        once, since zones differ by a day."""
        until = self._now()[1] + 1 if since else LAST
        tokens, micros = self._store.look("budget_sum", (of, name, since, until))[0]
        return int(tokens), int(micros)

    def cost(self, session: str, principal: Principal) -> str:
        """What a conversation has used, and what is left of the budgets of this person, in
        words."""
        tokens, micros = self.used("session", session)
        dollars = f", about {amount('usd', micros)}" if micros else ""
        lines = [f"This conversation has used {amount('tokens', tokens)}{dollars}."]
        charge = Charge(session, acts_for(principal), session.partition("/")[0])
        seen = [
            each
            for each in self.standings(charge)
            if each.limit.of != "all" or "owner" in principal.roles
        ]
        for each in seen:
            what = {"all": "All that is done here", "session": "This conversation"}.get(
                each.limit.of, each.limit.name
            )
            lines.append(f"{what}: {gone(each)} ({each.share:.0%}).")
        return "\n".join(lines if seen else [*lines, "No budget is set that it would count for."])

    async def names(self, of: Of, since: int, limit: int) -> list[str]:
        """Who of that kind has used anything from that day on, the most first."""
        return [name for name, *_ in await self._store.rows("budget_names", (of, since, limit))]

    async def lift(
        self, of: Of, name: str, by: Principal, per: Per | Literal[""] = ""
    ) -> list[LimitStanding]:
        """Allow as much once more: until the budget is fresh again, or for good where it never is.
        Of all its limits, or of those for that time. Returns how they stand then; [] where there is
        none."""
        chosen = [each.limit for each in self.standing(of, name) if per in ("", each.limit.per)]
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
        return [each for each in self.standing(of, name) if each.limit in chosen]

    def forecast(self, job: str, runs_per_month: float, tokens_per_run: int = 0) -> BudgetForecast:
        """What a month of a job may come to, by what its runs of the last 30 days have used; before
        its first run by `tokens_per_run`, what one run may use."""
        today = self._now()[1]
        pattern = f"*/job:{glob.escape(job)}:*"
        runs, tokens, micros = map(int, self._store.look("budget_runs", (today - 29, pattern))[0])
        each = (tokens / runs, micros / runs) if runs else (float(tokens_per_run), 0.0)
        a_month = [
            standing.limit
            for standing in (*self.standing("job", job), *self.standing("all", ""))
            if standing.limit.per != "ever"
        ]
        return forecast(job, Learned(runs, *each), runs_per_month, a_month)

    def _limits(self, of: Iterable[tuple[Of, str]], today: int) -> list[Limit]:
        budgets = self._settings().config.budgets
        return (
            [limit for kind, name in of for limit in limits_of(budgets, kind, name, today)]
            if budgets
            else []
        )

    def _standings(self, limits: Sequence[Limit]) -> list[LimitStanding]:
        rows = self._store.look("budget_holds")
        for _ in range(LOOKS):
            found = self._look(limits, {row[0]: row for row in rows})
            before = rows
            rows = self._store.look("budget_holds")
            if rows == before:
                # else something was committed in between, which may have been counted twice, never
                # not at all
                break
        return found

    def _look(
        self, limits: Sequence[Limit], rows: Mapping[str, tuple[Any, ...]]
    ) -> list[LimitStanding]:
        holds = self._holds(rows)
        found = []
        for limit in limits:
            usd = limit.unit == "usd"
            place = (limit.of, limit.name)
            mine = [
                each
                for each in holds
                if each.day >= limit.since and place in of_charge(each.charge)
            ]
            held = sum(each.micros if usd else each.tokens for each in mine)
            lifted = self._store.look("budget_lifted", (*place, limit.field, limit.since))
            used = self.used(*place, limit.since)[usd]
            found.append(LimitStanding(limit, used, held, int(lifted[0][0]) if lifted else 0))
        return found

    def _holds(self, rows: Mapping[str, tuple[Any, ...]]) -> list[Hold]:
        """All that is held, `rows` being what stands in the database."""
        gone = [id_ for id_, hold in self._held.items() if hold.over and id_ not in rows]
        others = [
            Hold(id_, msgspec.json.decode(charge, type=Charge), day, tokens, micros)
            for id_, day, tokens, micros, charge in rows.values()
            if id_ not in self._held
        ]
        for id_ in gone:
            del self._held[id_]  # its commit is there
        return [*self._held.values(), *others]

    def _now(self) -> tuple[ZoneInfo, int]:
        zone = ZoneInfo(self._settings().config.timezone)
        return zone, day_of(self._clock.now(), zone)

    def _micros(self, model: str, usage: Usage) -> int:
        """What that cost; 0 where no price is known."""
        if model.partition("/")[0] in FREE:
            return 0
        counts = (
            usage.input_tokens,
            usage.output_tokens,
            usage.cached_tokens,
            usage.cache_write_tokens,
        )
        usd = cost_usd(Used("", "", model, 0, 1, *counts), catalogue_of(self._settings()))
        return round((usd or 0) * 1e6)

    def _most(self, limits: Sequence[Limit], model: str, tokens: int) -> int:
        """The most that so many tokens can cost, where that is limited."""
        if not any(limit.unit == "usd" for limit in limits):
            return 0
        return max(self._micros(model, Usage(tokens)), self._micros(model, Usage(0, tokens)))

    # For ever

    def see(self, recorded: Recorded) -> None:
        """An event passes: where people are, and that something was used."""
        match recorded.event:
            case MessageReceived(principal=principal, address=address) if (
                principal.kind == "person"
            ):
                self._places.pop(recorded.session, None)
                self._places[recorded.session] = address
                if len(self._places) > PLACES:
                    del self._places[next(iter(self._places))]
            case ModelReplied() | AskedAside() if self._near:
                self._poke.set()
            case _:
                pass

    async def run(self, waker: InboundInjector) -> None:
        """Count what a process held that is gone; then warn those whose budget is nearly spent."""
        await self.take_over()
        while True:
            await self._poke.wait()
            self._poke = anyio.Event()
            await self._warn(waker)
            if self._near:  # the disk is full, or much waits there
                await anyio.sleep(PAUSE_S)
                self._poke.set()

    async def take_over(self) -> None:
        """What was held by a process that is gone counts as used. Only who drives may call it."""
        for id_, day, tokens, micros, charge in await self._store.rows("budget_holds", ()):
            if id_ not in self._held:
                used = _counted(msgspec.json.decode(charge, type=Charge), day, tokens, micros)
                await self._store.change((used, Change("budget_drop", (id_,))))

    async def _warn(self, waker: InboundInjector) -> None:
        near = self._near
        self._near = set()
        zone, today = self._now()
        for charge in near:
            for standing in self.standings(charge):
                limit = standing.limit
                row = (limit.of, limit.name, limit.field, limit.since, standing.most)
                if standing.share < WARN_AT or self._store.look("budget_warned", row):
                    continue
                words = warning(standing, today, zone)
                log.warning("%s", words)
                try:
                    await self._tell(
                        waker, charge.session, f"budget:{':'.join(map(str, row))}", words
                    )
                    await self._store.change((Change("budget_warn", row),))
                except DeskhandError as error:
                    self._near.add(charge)  # again, soon
                    log.warning("nobody was warned of it: %s", error)

    async def _tell(self, waker: InboundInjector, session: str, name: str, words: str) -> None:
        """Once, at the place where somebody talks to the agent alone."""
        place = self._places.get(session)
        if place is not None and not place.group:
            note = Command("budget", words)
            await waker.hand_in(
                Inbound(name, place, SYSTEM.id, self._clock.now(), note, session), SYSTEM
            )


def _counted(who: Charge, day: int, tokens: int, micros: int) -> Change:
    return Change("budget_use", (day, tokens, micros, who.person, who.agent, who.job, who.session))


def _settled(hold: Hold, used: tuple[int, int], held: tuple[int, int]) -> Change:
    who = hold.charge
    return Change(
        "budget_settle",
        (hold.day, *used, who.person, who.agent, who.job, who.session, hold.id, *held),
    )


_: type[Budgets] = BudgetLedger
