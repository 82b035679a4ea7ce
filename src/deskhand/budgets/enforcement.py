"""Keeps model calls within the budgets: reserves before each call, settles in the commit of its
reply."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Literal
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
from ..store.queries import find_subagent
from ..types.budget import Budgets, Charge
from ..types.clock import Clock, Ids
from ..types.commit import Change
from ..types.errors import DeskhandError
from ..types.events import AskedAside, MessageReceived, ModelReplied, Recorded
from ..types.identity import SYSTEM, Address, Command, Inbound, Principal, responsible_person
from ..types.marked_texts import mark_text
from ..types.messages import Usage
from ..types.subagents import SCRIPT_MODEL, SESSION_MARK
from ..users.queries import audit_note
from . import queries
from .limit_rules import (
    WARN_AT,
    Amounts,
    BudgetForecast,
    BudgetScope,
    Learned,
    Limit,
    LimitStanding,
    describe_use,
    explain_spent,
    forecast_job,
    iter_limits,
    iter_scopes,
    render_use,
    render_warning,
    to_day_number,
)
from .prices import cost_usd
from .queries import HoldRow

log = logging.getLogger(__name__)

FREE_PROVIDERS = (PROVIDER, "scripted")
MAX_ADDRESSES = 1_000
"""For how many sessions it is remembered where to warn people."""
LAST_DAY = 1 << 60
RETRY_S = 5.0
"""How long to wait before warning again where that failed."""
MAX_READS = 4
"""How often the holds are read until two readings agree."""


class Hold(msgspec.Struct):
    """What one call may use. Where any limit applies, it is in the database until the commit that
    counts it. `settled`: that commit is on its way. `near_limit`: with this call, a limit is nearly
    reached."""

    row: HoldRow
    near_limit: bool = False
    settled: bool = False


class BudgetLedger:
    """All budgets. The process that drives reserves, and so does a replay in another process.

    What counts is what the database holds, and the holds of this process on their way into it. A
    hold that was settled or released counts until the commit with its rows has succeeded: if that
    commit is lost, the hold is still there.
    """

    def __init__(
        self, store: Store, clock: Clock, ids: Ids, settings: Callable[[], Settings]
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._settings = settings
        self._open: dict[str, Hold] = {}
        """Calls that go on, by their key."""
        self._held: dict[str, Hold] = {}
        """Holds of this process that are in the database, by their id."""
        self._addresses: dict[str, Address] = {}
        """Where people last wrote in each session, to warn them there."""
        self._near: set[Charge] = set()
        """Who may have come near a limit and has not been warned yet."""
        self._wake = anyio.Event()

    # Before and after each call

    def _charge_giver(self, charge: Charge) -> Charge:
        """What a sub-agent uses, the conversation and the job pay that it works for."""
        task = find_subagent(self._store, charge.session)
        if task is None:
            return charge
        return replace(charge, session=task.request.root, job=task.request.job)

    async def reserve(self, charge: Charge, tokens: int, key: str) -> str:
        if charge.model.startswith(SCRIPT_MODEL):  # no model is asked
            return ""
        if SESSION_MARK in charge.session:
            charge = self._charge_giver(charge)
        zone, today = self._zone_and_today()
        limits = self._list_limits(iter_scopes(charge), today)
        amounts = Amounts(tokens, self._max_cost_micros(limits, charge.model, tokens))
        id_ = self._ids.new("hold") if limits else ""
        hold = Hold(HoldRow(id_, charge, today, amounts))

        abandoned = self._open.pop(key, None)
        if abandoned is not None:  # its driver was cut off, and nobody settled it
            row = abandoned.row
            used = queries.count_use(row.charge, row.day, row.amounts)
            await self._store.change((used, *self._drop_hold(abandoned)))

        if limits:
            for standing in self._list_standings(limits):
                wanted = standing.limit.measure(amounts)
                if wanted > standing.remaining or not standing.most:
                    return explain_spent(standing, wanted, today, zone)
                taken = standing.most - standing.remaining + wanted
                hold.near_limit |= taken >= WARN_AT * standing.most

            exceeded = await self._write_hold(hold, limits)
            if exceeded is not None:
                wanted = exceeded.limit.measure(amounts)
                others = replace(exceeded, held=exceeded.held - wanted)
                return explain_spent(others, wanted, today, zone)

        self._open[key] = hold
        return ""

    async def _write_hold(self, hold: Hold, limits: Sequence[Limit]) -> LimitStanding | None:
        """Write the hold to the database. If another process held something at the same moment and
        both together do not fit, remove it again and return the limit that is exceeded."""
        exceeded = None
        self._held[hold.row.id] = hold  # before anything waits: other calls must count it
        try:
            with anyio.CancelScope(shield=True):  # a hold that is written may have to be removed
                await self._store.change((queries.write_hold(hold.row),))
                for standing in self._list_standings(limits):
                    if standing.remaining < 0:
                        exceeded = standing
                        await self._store.change(self._drop_hold(hold))
                        break
        except BaseException:
            self._held.pop(hold.row.id, None)
            raise
        return exceeded

    def settle(self, key: str, usage: Usage) -> tuple[Change, ...]:
        hold = self._open.pop(key, None)
        if hold is None:
            return ()

        row = hold.row
        held = row.amounts
        used = held
        if usage != Usage():
            tokens = usage.input_tokens + usage.output_tokens
            used = Amounts(tokens, self._cost_micros(row.charge.model, usage))
        if row.id not in self._held:
            return (queries.count_use(row.charge, row.day, used),)

        if hold.near_limit or used.tokens > held.tokens or used.micros > held.micros:
            self._near.add(row.charge)
        # Until the commit has succeeded, the larger of the two counts.
        most = Amounts(max(held.tokens, used.tokens), max(held.micros, used.micros))
        hold.row = replace(row, amounts=most)
        return (queries.settle_hold(row, used), *self._drop_hold(hold))

    def release(self, key: str) -> tuple[Change, ...]:
        hold = self._open.pop(key, None)
        if hold is None or hold.row.id not in self._held:
            return ()
        return (queries.settle_hold(hold.row, Amounts(0, 0)), *self._drop_hold(hold))

    def _drop_hold(self, hold: Hold) -> tuple[Change, ...]:
        hold.settled = True
        return (queries.drop_hold(hold.row.id),) if hold.row.id in self._held else ()

    # How the limits stand

    def list_charge_standings(self, charge: Charge) -> list[LimitStanding]:
        """Every limit that applies to this call, and how much of it is used."""
        _, today = self._zone_and_today()
        return self._list_standings(self._list_limits(iter_scopes(charge), today))

    def list_standings(self, of: BudgetScope, name: str) -> list[LimitStanding]:
        """The limits of one person, agent, job or session, or those for all."""
        _, today = self._zone_and_today()
        return self._list_standings(self._list_limits([(of, name)], today))

    def sum_used(self, of: BudgetScope, name: str, since: int = 0) -> Amounts:
        """What was used there from day `since` on.

        Days after tomorrow do not count before they come: they were written while the clock was
        ahead. Tomorrow counts at once, since time zones differ by up to a day.
        """
        until = LAST_DAY
        if since:
            _, today = self._zone_and_today()
            until = today + 1
        return queries.sum_used(self._store, of, name, since=since, until=until)

    def render_cost(self, session: str, principal: Principal) -> str:
        """The reply to /cost: what this session has used, and how this person's budgets stand."""
        tokens, micros = self.sum_used("session", session)
        lines = [describe_use(tokens, micros)]
        charge = Charge(session, responsible_person(principal), session.partition("/")[0])
        seen = [
            each
            for each in self.list_charge_standings(charge)
            if each.limit.scope != "all" or "owner" in principal.roles
        ]
        lines += [render_use(each) for each in seen]
        if not seen:
            lines.append(mark_text("No budget applies to it."))
        return "\n".join(lines)

    async def list_spenders(self, of: BudgetScope, since: int, limit: int) -> list[str]:
        """The names in this scope that have used anything from day `since` on, the most first."""
        return await queries.names_by_use(self._store, of, since, limit)

    async def lift(
        self, of: BudgetScope, name: str, by: Principal, per: BudgetPeriod | Literal[""] = ""
    ) -> list[LimitStanding]:
        """Allow as much once more until the period ends, or for good for limits without a period.

        `per` selects the limits with that period; '' selects all. Returns how they stand then, or
        [] when there is no such limit.
        """
        chosen = [
            each.limit for each in self.list_standings(of, name) if per in ("", each.limit.per)
        ]
        if not chosen:
            return []
        subject = f"{chosen[0].key} {per}".strip()
        note = audit_note(self._clock.now(), by.id, what="budget lifted", subject=subject)
        await self._store.change([note, *(queries.lift(limit) for limit in chosen)])
        return [each for each in self.list_standings(of, name) if each.limit in chosen]

    def forecast(self, job: str, runs_per_month: float, tokens_per_run: int = 0) -> BudgetForecast:
        """What a month of this job may use, going by its runs of the last 30 days. Before its first
        run, `tokens_per_run` is taken instead: what one run may use."""
        _, today = self._zone_and_today()
        found = queries.used_by_runs(self._store, job, since=today - 29)
        if found.runs:
            learned = Learned(
                found.runs,
                tokens=found.amounts.tokens / found.runs,
                micros=found.amounts.micros / found.runs,
            )
        else:
            learned = Learned(0, tokens=float(tokens_per_run), micros=0.0)
        limits = [
            standing.limit
            for standing in (*self.list_standings("job", job), *self.list_standings("all", ""))
            if standing.limit.per != "ever"
        ]
        return forecast_job(job, learned, runs_per_month, limits)

    def _list_limits(self, of: Iterable[tuple[BudgetScope, str]], today: int) -> list[Limit]:
        budgets = self._settings().config.budgets
        if not budgets:
            return []
        return [limit for kind, name in of for limit in iter_limits(budgets, kind, name, today)]

    def _list_standings(self, limits: Sequence[Limit]) -> list[LimitStanding]:
        """How these limits stand. A call that is settled meanwhile may count twice, never not at
        all."""
        rows = queries.list_holds(self._store)
        for _ in range(MAX_READS):
            found = self._read_standings(limits, rows)
            before = rows
            rows = queries.list_holds(self._store)
            if rows == before:  # nothing was committed between the two readings
                break
        return found

    def _read_standings(
        self, limits: Sequence[Limit], rows: Mapping[str, HoldRow]
    ) -> list[LimitStanding]:
        holds = self._merge_holds(rows)
        found = []
        for limit in limits:
            place = (limit.scope, limit.name)
            held = sum(
                limit.measure(each.amounts)
                for each in holds
                if each.day >= limit.since and place in iter_scopes(each.charge)
            )
            used = limit.measure(self.sum_used(limit.scope, limit.name, limit.since))
            extra = queries.extra_of(self._store, limit)
            found.append(LimitStanding(limit, used, held=held, extra=extra))
        return found

    def _merge_holds(self, rows: Mapping[str, HoldRow]) -> list[HoldRow]:
        """All holds, `rows` being those in the database. Our own stand here with what they count
        for now."""
        for id_, hold in list(self._held.items()):
            if hold.settled and id_ not in rows:
                del self._held[id_]  # its commit has succeeded
        own = [hold.row for hold in self._held.values()]
        return own + [row for id_, row in rows.items() if id_ not in self._held]

    def _zone_and_today(self) -> tuple[ZoneInfo, int]:
        zone = ZoneInfo(self._settings().config.timezone)
        return zone, to_day_number(self._clock.now(), zone)

    def _cost_micros(self, model: str, usage: Usage) -> int:
        """What this usage costs; 0 when no price is known."""
        if model.partition("/")[0] in FREE_PROVIDERS:
            return 0
        used = Used(
            session="",
            title="",
            model=model,
            day=0,
            calls=1,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_tokens=usage.cached_tokens,
            cache_write_tokens=usage.cache_write_tokens,
        )
        usd = cost_usd(used, build_catalogue(self._settings()))
        return round((usd or 0) * 1e6)

    def _max_cost_micros(self, limits: Sequence[Limit], model: str, tokens: int) -> int:
        """The most that so many tokens can cost; 0 when no limit counts dollars."""
        if not any(limit.unit == "usd" for limit in limits):
            return 0
        all_read = self._cost_micros(model, Usage(input_tokens=tokens))
        all_written = self._cost_micros(model, Usage(output_tokens=tokens))
        return max(all_read, all_written)

    # While the process runs

    listens_to = (
        MessageReceived,
        ModelReplied,
        AskedAside,
    )

    def on_event(self, recorded: Recorded) -> None:
        """Remember where people write, and wake up when a model call may have come near a limit."""
        match recorded.event:
            case MessageReceived(principal=principal, address=address) if (
                principal.kind == "person"
            ):
                self._addresses.pop(recorded.session, None)
                self._addresses[recorded.session] = address
                if len(self._addresses) > MAX_ADDRESSES:
                    del self._addresses[next(iter(self._addresses))]
            case ModelReplied() | AskedAside() if self._near:
                self._wake.set()
            case _:
                pass

    async def run(self, waker: InboundInjector) -> None:
        """Recover the holds of dead processes, then warn people whose budget is nearly spent. Runs
        until it is cancelled."""
        if not self._store.shares_work:
            await self.recover_holds()
        while True:
            await self._wake.wait()
            self._wake = anyio.Event()
            await self._warn(waker)
            if self._near:  # the disk is full, or the inbox there
                await anyio.sleep(RETRY_S)
                self._wake.set()

    async def recover_holds(self, agents: Collection[str] | None = None) -> None:
        """Count the holds of dead processes as used: of these agents, or of all. Only the process
        that drives them may call this."""
        for id_, row in queries.list_holds(self._store).items():
            agent = row.charge.session.partition("/")[0]
            if id_ not in self._held and (agents is None or agent in agents):
                used = queries.count_use(row.charge, row.day, row.amounts)
                await self._store.change((used, queries.drop_hold(id_)))

    async def _warn(self, waker: InboundInjector) -> None:
        near = self._near
        self._near = set()
        for charge in near:
            for standing in self.list_charge_standings(charge):
                if standing.share >= WARN_AT and not queries.was_warned(self._store, standing):
                    await self._warn_of(standing, charge, waker)

    async def _warn_of(
        self, standing: LimitStanding, charge: Charge, waker: InboundInjector
    ) -> None:
        """Warn in this session, once. What cannot be written is tried again later."""
        zone, today = self._zone_and_today()
        words = render_warning(standing, today, zone)
        log.warning("%s", words)
        limit = standing.limit
        name = f"budget:{limit.scope}:{limit.name}:{limit.field}:{limit.since}:{standing.most}"
        try:
            await self._send_warning(waker, charge.session, name, words)
            await self._store.change((queries.mark_warned(standing),))
        except DeskhandError as error:
            self._near.add(charge)
            log.warning("The warning was not sent: %s. Trying again in %.0f s.", error, RETRY_S)

    async def _send_warning(
        self, waker: InboundInjector, session: str, name: str, words: str
    ) -> None:
        """Hand the warning in where a person talks to the agent alone. Groups are not warned."""
        address = self._addresses.get(session)
        if address is not None and not address.group:
            note = Command("budget", words)
            inbound = Inbound(name, address, SYSTEM.id, self._clock.now(), note, session)
            await waker.hand_in(inbound, SYSTEM)


_: type[Budgets] = BudgetLedger
