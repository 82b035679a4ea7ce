"""Learns from what was said: gathers facts, tidies them, looks back at conversations. Nothing new
costs nothing."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial

import anyio
import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ..assembly.host import Host
from ..assembly.models import is_small
from ..assembly.side_queries import SideQueries
from ..memory import clean
from ..memory import fact_extraction as harvest
from ..memory.clean import CleanupPlan
from ..memory.fact_extraction import LetGo, Stored, TranscriptLine
from ..memory.facts import (
    Fact,
    NewFact,
    Scope,
    Viewer,
    add_fact,
    add_fact_source,
    keep_fact,
    parse_fact_row,
)
from ..memory.recall import Memory
from ..memory.settings import MemoryConfig
from ..models.side_completion import Aside, cheapest_first
from ..types.budget import Charge
from ..types.commit import Change
from ..types.errors import (
    BudgetSpent,
    ConfigError,
    DeskhandError,
    MalformedReply,
    ModelError,
    ModelTooSmall,
)
from ..types.labels import Label
from .transcript import Transcript, parse_transcript

log = logging.getLogger(__name__)

SESSIONS_AT_ONCE = 20
BATCHES_AT_ONCE = 5
"""So many questions are asked in one run, at most; the rest waits for the next."""
MAX_KNOWN = 20
TOO_SMALL_MESSAGE = "{} wait: {}; name a bigger one as cheap_model, or under memory and reflection"


class Gatherer:
    """Gathers facts from conversations, and tidies them. What was read is noted in the very commit
    that holds what came of it; where a model fails nothing is noted, and it is read again later."""

    def __init__(self, ground: Host, thinking: SideQueries, memory: Memory) -> None:
        self.ground = ground
        self.thinking = thinking
        self.memory = memory
        self.lock = anyio.Lock()

    # Facts from conversations

    async def harvest(self) -> str:
        """Read what is new in conversations, one question for each. Returns what came of it, '' for
        nothing new. Raises DeskhandError where some of them could not be read."""
        async with self.lock:
            now = self.ground.clock.now()
            rows = await self.ground.store.query(
                "gathered_new", ("harvest", now, now, SESSIONS_AT_ONCE)
            )
            return await self.run_all(
                "harvest",
                [(row[0], partial(self._harvest, row[0], row[1], row[2])) for row in rows],
            )

    async def _harvest(self, session: str, agent: str, after: int) -> int:
        """Returns how many facts were found."""
        talk = await self.load_transcript(session, after)
        shown = harvest.make_excerpt(talk.vouched_lines(), after)
        facts = list[NewFact]()
        again = list[Change]()
        if any(line.who != harvest.MODEL for line in shown.new):  # else nobody has said anything
            scope, owner = choose_fact_owner(talk, agent)
            known = await self.find_known("\n".join(line.text for line in shown.new), scope, owner)
            said_at = {line.n: line.at for line in shown.new}
            asked = harvest.build_prompt(shown, known, await self.list_forgotten(scope, owner))
            answer = await self.ask(agent, asked, self._memory.harvester.models, "harvest")
            told = await self.ground.store.query(
                "fact_get", (msgspec.json.encode(talk.recalled_ids).decode(),)
            )
            gone = await self.list_forgotten(
                scope, owner
            )  # also what was forgotten while the model thought
            found = harvest.parse_answer(
                answer, shown, known, [parse_fact_row(row).text for row in told], gone
            )
            if found.dropped:
                log.info(
                    "%d facts that a model found in %s could not be used", found.dropped, session
                )
            facts = [
                NewFact(
                    self.ground.redact(each.text),
                    scope,
                    owner,
                    found.label,
                    "harvester",
                    harvest.make_fact_key("harvest", session, each.n, each.text),
                    session,
                    each.n,
                    each.confidence,
                    each.keep,
                    held=is_held(scope, found.label, (*shown.earlier, *shown.new)),
                    replaces=each.replaces,
                )
                for each in found.facts
            ]
            facts = [await self._replace_contradicted(fact, said_at[fact.n]) for fact in facts]
            for each in found.repeated:
                known_ = await self.memory.find_exact(each.text, [(scope, owner)])
                again += [add_fact_source(fact.id, session, each.n) for fact in known_]
        fresh, changes = await self._drop_duplicates(facts)
        await self.save_facts(
            fresh, *changes, *again, self.mark_processed("harvest", session, talk.n)
        )
        return len(fresh)

    async def _replace_contradicted(self, fact: NewFact, said_at: float) -> NewFact:
        """This fact, in place of what cannot hold any more since it was said. What is held, and
        what somebody has pinned, stays for a person to decide."""
        if fact.held:
            return fact
        known = await self.memory.find_contradicted(fact.text, fact.scope, fact.owner)
        wrong = (each.id for each in known if not each.pinned and each.valid_from <= said_at)
        return replace(fact, replaces=tuple(dict.fromkeys((*fact.replaces, *wrong))))

    async def _drop_duplicates(
        self, facts: Sequence[NewFact]
    ) -> tuple[list[NewFact], list[Change]]:
        """Those that nobody has written down in other words. What turns out to last is no candidate
        any more."""
        fresh = list[NewFact]()
        changes = list[Change]()
        for fact in facts:
            twin = await self.memory.find_duplicate(fact.text, fact.scope, fact.owner)
            if twin is None or (twin.held and not fact.held):
                fresh.append(fact)
                continue
            changes.append(add_fact_source(twin.id, fact.session, fact.n))
            if twin.retention == "candidate" and fact.retention == "durable" and not fact.held:
                changes.append(keep_fact(twin.id))
        return fresh, changes

    # Facts among themselves

    async def clean(self) -> str:
        """Let go of candidates that are too old, and tidy the facts of everybody who has new ones.
        Returns what came of it, '' for nothing. Raises DeskhandError where a plan could not be
        carried out: then nothing of it was."""
        async with self.lock:
            store = self.ground.store
            now = self.ground.clock.now()
            expired = (await store.query("fact_expiring", (now,)))[0][0]
            done = f"{expired} candidates expired" if expired else ""
            if expired:
                await store.change((Change("fact_expire", (now,)),))
            rows = await store.query("fact_owners", (now,))
            work = [
                (f"{row[0]}:{row[1]}", partial(self._clean, row[0], row[1], row[2])) for row in rows
            ]
            told = await self.run_all("clean", work)
            return "; ".join(filter(None, (done, told)))

    async def _clean(self, scope: Scope, owner: str, after: int) -> int:
        """Returns how many facts went."""
        gone = 0
        subject = f"{scope}:{owner}"
        for _ in range(BATCHES_AT_ONCE):
            rows = await self.ground.store.query(
                "fact_after", (scope, owner, after, clean.BATCH // 2)
            )
            if not (new := [parse_fact_row(row) for row in rows]):
                break
            batch = await self._build_batch(new, scope, owner)
            after = new[-1].id
            mark = self.mark_processed("clean", subject, after)
            if len(batch) < 2:
                await self.ground.store.change((mark,))
                continue
            days = [(to_stored(fact), _format_day(fact.at)) for fact in batch.values()]
            agent = owner if scope == "agent" else self.ground.settings().agents[0]
            answer = await self.ask(
                agent, clean.build_prompt(days), self._memory.cleaner.models, "clean"
            )
            plan = clean.parse_plan(answer, [each for each, _ in days])
            await self._check_unchanged(batch, plan)
            await self.ground.store.change((*self._build_changes(plan, batch), mark))
            gone += len(plan.delete)
        return gone

    async def _build_batch(self, new: Sequence[Fact], scope: Scope, owner: str) -> dict[int, Fact]:
        """What is looked at together: new facts, and those that are like them."""
        batch = {fact.id: fact for fact in new}
        for fact in new:
            for found in await self.memory.search(
                fact.text, make_owner_viewer(scope, owner), clean.NEIGHBOURS + 1, scope
            ):
                if len(batch) < clean.BATCH and not found.fact.held:
                    batch.setdefault(found.fact.id, found.fact)
        return batch

    async def _check_unchanged(self, batch: dict[int, Fact], plan: CleanupPlan) -> None:
        """Raises MalformedReply where somebody changed what the plan is about while it was made."""
        touched = [
            *(each.id for each in plan.delete),
            *(each.by for each in plan.delete if each.by),
        ]
        rows = await self.ground.store.query("fact_get", (msgspec.json.encode(touched).decode(),))
        if len(rows) < len(set(touched)):
            raise MalformedReply(
                "the plan to tidy memory was not carried out: a fact was erased meanwhile"
            )
        for row in rows:
            fact = parse_fact_row(row)
            before = batch[fact.id]
            if (fact.valid_to, fact.pinned, fact.held) != (
                before.valid_to,
                before.pinned,
                before.held,
            ):
                raise MalformedReply(
                    f"the plan to tidy memory was not carried out: fact {fact.id} changed meanwhile"
                )

    def _build_changes(self, plan: CleanupPlan, batch: dict[int, Fact]) -> list[Change]:
        now = self.ground.clock.now()
        changes = list[Change]()
        for each in plan.delete:
            if each.why != "merged":
                by = each.by if each.why in ("duplicate", "contradicted") else 0
                changes.append(Change("fact_give_way", (each.id, now, f"cleaner: {each.why}", by)))
                if each.why == "duplicate":
                    changes.append(add_fact_source(by, batch[each.id].session, batch[each.id].n))
        facts = [to_stored(fact) for fact in batch.values()]
        for add in plan.add:
            sources = [batch[id_] for id_ in add.of]
            last = max(sources, key=lambda fact: fact.at)
            label = clean.join_source_labels(add, facts)
            durable = any(fact.retention == "durable" for fact in sources)
            ids = "+".join(map(str, sorted(add.of)))
            fact = NewFact(
                self.ground.redact(add.text),
                last.scope,
                last.owner,
                label,
                "cleaner",
                f"{clean.find_common_kind(add, facts) or 'clean'}:{ids}",
                last.session,
                last.n,
                max(fact.confidence for fact in sources),
                "durable" if durable else "candidate",
                held=label.integrity == "untrusted",
                replaces=add.of,
            )
            changes += add_fact(fact, now, self._memory.keeping)
        return changes

    # What they have in common

    @property
    def _memory(self) -> MemoryConfig:
        return self.ground.settings().config.memory

    async def run_all(
        self, kind: str, work: Sequence[tuple[str, Callable[[], Awaitable[int]]]]
    ) -> str:
        """Do all of this, each for itself. Returns how much came of how many; raises DeskhandError
        for those that failed. Where a budget is spent nothing more is asked; what needs a bigger
        model than there is waits."""
        found = 0
        failed = list[str]()
        waiting = list[str]()
        for subject, one in work:
            try:
                found += await one()
            except ModelTooSmall as error:
                waiting.append(str(error))
            except (ModelError, ConfigError) as error:
                now = self.ground.clock.now()
                why = self.ground.redact(str(error))[:500]
                await self.ground.store.change(
                    (Change("gathered_failed", (kind, subject, now, why)),)
                )
                log.warning("%s of %s failed, and is tried again: %s", kind, subject, why)
                failed.append(f"{subject}: {why}")
                if isinstance(error, BudgetSpent):
                    break
        done = len(work) - len(failed) - len(waiting)
        said = f"{kind}: {found} from {done}" if done else ""
        if waiting:
            said = "; ".join(
                filter(None, (said, TOO_SMALL_MESSAGE.format(len(waiting), waiting[0])))
            )
        if failed:
            raise DeskhandError(
                f"{f'{said}; ' if said else ''}{kind} failed for {'; '.join(failed)}"
            )
        return said

    async def load_transcript(self, session: str, after: int) -> Transcript:
        """What was said in a conversation, at least from event `after` on."""
        log_ = await self.ground.store.history(session)
        if log_ and 1 < log_[0].n > after:
            log_ = await self.ground.store.events(session)
        return await anyio.to_thread.run_sync(parse_transcript, session, log_)

    async def find_known(self, text: str, scope: Scope, owner: str) -> list[Stored]:
        """What is known of what stands in this text."""
        return [
            to_stored(found.fact)
            for found in await self.memory.search(
                text, make_owner_viewer(scope, owner), MAX_KNOWN, scope
            )
        ]

    async def list_forgotten(self, scope: Scope, owner: str) -> list[LetGo]:
        """What of this owner's a person had forgotten lately."""
        rows = await self.ground.store.query("gathered_let_go", (scope, owner))
        return [LetGo(text, at, bool(held)) for text, at, held in rows]

    async def ask(self, agent: str, aside: Aside, models: Sequence[str], job: str) -> str:
        """What a model says to this; this job pays. Small ones are asked only where they were named
        for it: what is worth keeping they cannot tell. Raises ModelTooSmall, ModelError,
        ConfigError."""
        here = self.thinking.agent(agent)
        settings = self.ground.settings()
        if not models and all(
            is_small(settings, one) for one in cheapest_first(here.cheap_model, here.models)
        ):
            raise ModelTooSmall(f"the model of {agent} is too small to {job}")
        return (await self.thinking.ask(agent, aside, models, Charge("", "", agent, job))).text

    def mark_processed(
        self, kind: str, subject: str, n: int, status: str = "processed", note: str = ""
    ) -> Change:
        """The row that says up to where something was read."""
        return Change("gathered_set", (kind, subject, n, n, self.ground.clock.now(), status, note))

    async def save_facts(self, facts: Sequence[NewFact], *more: Change) -> None:
        """Write these facts, and that they were read, together or not at all."""
        now = self.ground.clock.now()
        keeping = self._memory.keeping
        await self.ground.store.change(
            [*(each for fact in facts for each in add_fact(fact, now, keeping)), *more]
        )


def choose_fact_owner(talk: Transcript, agent: str) -> tuple[Scope, str]:
    """Whose facts come from this conversation: of the one person in it; where several take part,
    the agent's."""
    return ("user", talk.person) if talk.is_private else ("agent", agent)


def is_held(scope: Scope, label: Label, lines: Iterable[TranscriptLine]) -> bool:
    """Whether what comes of these lines waits for an owner's yes: where any of it is from outside,
    or all would be told what others than owners have said."""
    others = any(
        line.who not in (harvest.MODEL, harvest.TOOL) and line.label.integrity != "owner"
        for line in lines
    )
    return label.integrity == "untrusted" or (scope != "user" and others)


def _format_day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).date().isoformat()


def make_owner_viewer(scope: Scope, owner: str) -> Viewer:
    """Sees all that is this owner's, and by its scope nothing else."""
    return Viewer(owner, owner, private=scope == "user", all_seeing=True)


def to_stored(fact: Fact) -> Stored:
    """As it is shown to a model."""
    return Stored(
        fact.id, fact.text, fact.label, fact.pinned, fact.at, fact.key, fact.session, fact.n
    )
