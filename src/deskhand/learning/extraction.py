"""Extracts facts from conversations, and cleans up the facts that there are."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial

import anyio
import anyio.to_thread
from msgspec.structs import replace

from ..assembly.host import Host
from ..assembly.models import is_small
from ..assembly.side_queries import SideQueries
from ..memory import clean, queries
from ..memory import fact_extraction as harvest
from ..memory.clean import Add, CleanupPlan
from ..memory.fact_extraction import Excerpt, Stored, TranscriptLine
from ..memory.facts import (
    Fact,
    NewFact,
    Scope,
    Viewer,
    add_fact,
    add_fact_source,
    keep_fact,
)
from ..memory.queries import Processed
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
from ..types.events import Recorded
from ..types.labels import Label
from .transcript import Transcript, TranscriptReader

log = logging.getLogger(__name__)

PAGE = 200
"""So many events are read at once: a conversation may have hundreds of thousands."""
SESSIONS_AT_ONCE = 20
BATCHES_AT_ONCE = 5
"""At most so many questions are asked in one run. The rest waits for the next run."""
MAX_KNOWN = 20
TOO_SMALL_MESSAGE = "{} wait: {}; set a larger model as cheap_model, or under memory and reflection"


class Gatherer:
    """Extracts facts from conversations and cleans them up.

    How far a conversation was read is written together with the facts that it gave. When a model
    fails, nothing is written and the same text is read again later.
    """

    def __init__(self, ground: Host, thinking: SideQueries, memory: Memory) -> None:
        self.ground = ground
        self.thinking = thinking
        self.memory = memory
        self.lock = anyio.Lock()

    # Facts from conversations

    async def harvest(self) -> str:
        """Extract facts from what is new in conversations, with one question for each.

        Returns a summary, '' when nothing was new. Raises DeskhandError when a conversation could
        not be read; the others were.
        """
        async with self.lock:
            now = self.ground.clock.now()
            sessions = await queries.unprocessed_sessions(
                self.ground.store, "harvest", quiet_since=now, now=now, limit=SESSIONS_AT_ONCE
            )
            work = [
                (each.session, partial(self._harvest, each.session, each.agent, each.after))
                for each in sessions
            ]
            return await self.run_all("harvest", work)

    async def _harvest(self, session: str, agent: str, after: int) -> int:
        """Read one conversation from event `after` on. Returns how many facts were written."""
        talk = await self.load_transcript(session, after)
        excerpt = harvest.make_excerpt(talk.vouched_lines(), after)
        facts: list[NewFact] = []
        sources: list[Change] = []
        if any(line.who != harvest.MODEL for line in excerpt.new):  # somebody has said something
            facts, sources = await self._extract(talk, excerpt, session, agent)
        fresh, changes = await self._drop_duplicates(facts)
        mark = self.mark_processed("harvest", session, talk.n)
        await self.save_facts(fresh, *changes, *sources, mark)
        return len(fresh)

    async def _extract(
        self, talk: Transcript, excerpt: Excerpt, session: str, agent: str
    ) -> tuple[list[NewFact], list[Change]]:
        """Ask a model what an excerpt teaches. Returns the facts, and the changes that note where
        known facts were said again."""
        store = self.ground.store
        scope, owner = choose_fact_owner(talk, agent)
        new_text = "\n".join(line.text for line in excerpt.new)
        known = await self.find_known(new_text, scope, owner)
        forgotten = await queries.forgotten_facts(store, scope, owner)
        question = harvest.build_prompt(excerpt, known, forgotten)
        answer = await self.ask(agent, question, self._memory.harvester.models, "harvest")

        recalled = [fact.text for fact in await queries.get_facts(store, talk.recalled_ids)]
        forgotten = await queries.forgotten_facts(store, scope, owner)  # also since the question
        found = harvest.parse_answer(answer, excerpt, known, recalled, forgotten)
        if found.dropped:
            log.info("Dropped %d unusable facts from %s.", found.dropped, session)

        said_at = {line.n: line.at for line in excerpt.new}
        facts = []
        for each in found.facts:
            fact = NewFact(
                text=self.ground.redact(each.text),
                scope=scope,
                owner=owner,
                label=found.label,
                writer="harvester",
                key=harvest.make_fact_key("harvest", session, each.n, each.text),
                session=session,
                n=each.n,
                confidence=each.confidence,
                retention=each.keep,
                held=is_held(scope, found.label, (*excerpt.earlier, *excerpt.new)),
                replaces=each.replaces,
            )
            facts.append(await self._replace_contradicted(fact, said_at[each.n]))

        sources = []
        for repeated in found.repeated:
            same = await self.memory.find_exact(repeated.text, [(scope, owner)])
            sources += [add_fact_source(fact.id, session, repeated.n) for fact in same]
        return facts, sources

    async def _replace_contradicted(self, fact: NewFact, said_at: float) -> NewFact:
        """The fact, replacing also the older facts that it contradicts. Pinned facts, and those
        that a held fact contradicts, are left to a person."""
        if fact.held:
            return fact
        known = await self.memory.find_contradicted(fact.text, fact.scope, fact.owner)
        wrong = (each.id for each in known if not each.pinned and each.valid_from <= said_at)
        return replace(fact, replaces=tuple(dict.fromkeys((*fact.replaces, *wrong))))

    async def _drop_duplicates(
        self, facts: Sequence[NewFact]
    ) -> tuple[list[NewFact], list[Change]]:
        """The facts that are not stored in other words, and the changes for the others: a new
        source, and a candidate that has turned out to last is kept."""
        fresh: list[NewFact] = []
        changes: list[Change] = []
        for fact in facts:
            same = await self.memory.find_duplicate(fact.text, fact.scope, fact.owner)
            if same is None or (same.held and not fact.held):
                fresh.append(fact)
                continue
            changes.append(add_fact_source(same.id, fact.session, fact.n))
            if same.retention == "candidate" and fact.retention == "durable" and not fact.held:
                changes.append(keep_fact(same.id))
        return fresh, changes

    # Cleaning up

    async def clean(self) -> str:
        """Close candidates that have expired, and clean up the facts of everybody who has new ones.

        Returns a summary, '' when there was nothing to do. Raises DeskhandError when a plan could
        not be carried out; then nothing of that plan was.
        """
        async with self.lock:
            store = self.ground.store
            now = self.ground.clock.now()
            parts = []
            expired = await queries.count_expired(store, now)
            if expired:
                await store.change((queries.expire_facts(now),))
                parts.append(f"{expired} candidates expired")
            work = []
            for each in await queries.owners_with_new_facts(store, now):
                do = partial(self._clean, each.scope, each.owner, each.after)
                work.append((f"{each.scope}:{each.owner}", do))
            if cleaned := await self.run_all("clean", work):
                parts.append(cleaned)
            return "; ".join(parts)

    async def _clean(self, scope: Scope, owner: str, after: int) -> int:
        """Clean up the facts of one owner. Returns how many were removed."""
        store = self.ground.store
        removed = 0
        subject = f"{scope}:{owner}"
        for _ in range(BATCHES_AT_ONCE):
            new = await queries.facts_after(store, scope, owner, after, clean.BATCH // 2)
            if not new:
                break
            batch = await self._build_batch(new, scope, owner)
            after = new[-1].id
            mark = self.mark_processed("clean", subject, after)
            if len(batch) < 2:
                await store.change((mark,))
                continue

            days = [(to_stored(fact), _format_day(fact.at)) for fact in batch.values()]
            agent = owner if scope == "agent" else self.ground.settings().agents[0]
            question = clean.build_prompt(days)
            answer = await self.ask(agent, question, self._memory.cleaner.models, "clean")
            plan = clean.parse_plan(answer, [each for each, _ in days])

            await self._check_unchanged(batch, plan)
            await store.change((*self._build_changes(plan, batch), mark))
            removed += len(plan.delete)
        return removed

    async def _build_batch(self, new: Sequence[Fact], scope: Scope, owner: str) -> dict[int, Fact]:
        """New facts together with similar ones, by id."""
        batch = {fact.id: fact for fact in new}
        viewer = make_owner_viewer(scope, owner)
        for fact in new:
            for hit in await self.memory.search(fact.text, viewer, clean.NEIGHBOURS + 1, scope):
                if len(batch) < clean.BATCH and not hit.fact.held:
                    batch.setdefault(hit.fact.id, hit.fact)
        return batch

    async def _check_unchanged(self, batch: dict[int, Fact], plan: CleanupPlan) -> None:
        """Raises MalformedReply when a fact of the plan was changed while the plan was made."""
        touched = [each.id for each in plan.delete]
        touched += [each.by for each in plan.delete if each.by]
        facts = await queries.get_facts(self.ground.store, touched)
        if len(facts) < len(set(touched)):
            raise MalformedReply(
                "the plan to clean up memory was dropped: a fact was erased in the meantime"
            )
        for fact in facts:
            before = batch[fact.id]
            was = (before.valid_to, before.pinned, before.held)
            if (fact.valid_to, fact.pinned, fact.held) != was:
                raise MalformedReply(
                    f"the plan to clean up memory was dropped: fact {fact.id} was changed in the "
                    "meantime"
                )

    def _build_changes(self, plan: CleanupPlan, batch: dict[int, Fact]) -> list[Change]:
        now = self.ground.clock.now()
        changes: list[Change] = []
        for each in plan.delete:
            if each.why == "merged":
                continue
            by = each.by if each.why in ("duplicate", "contradicted") else 0
            changes.append(queries.give_way(each.id, now, f"cleaner: {each.why}", by))
            if each.why == "duplicate":
                changes.append(add_fact_source(by, batch[each.id].session, batch[each.id].n))

        facts = [to_stored(fact) for fact in batch.values()]
        for add in plan.add:
            fact = self._make_merged_fact(add, [batch[id_] for id_ in add.of], facts)
            changes += add_fact(fact, now, self._memory.keeping)
        return changes

    def _make_merged_fact(
        self, add: Add, sources: Sequence[Fact], facts: Sequence[Stored]
    ) -> NewFact:
        """The fact that takes the place of several."""
        last = max(sources, key=lambda fact: fact.at)
        label = clean.join_source_labels(add, facts)
        kind = clean.find_common_kind(add, facts) or "clean"
        durable = any(fact.retention == "durable" for fact in sources)
        return NewFact(
            text=self.ground.redact(add.text),
            scope=last.scope,
            owner=last.owner,
            label=label,
            writer="cleaner",
            key=f"{kind}:{'+'.join(map(str, sorted(add.of)))}",
            session=last.session,
            n=last.n,
            confidence=max(fact.confidence for fact in sources),
            retention="durable" if durable else "candidate",
            held=label.integrity == "untrusted",
            replaces=add.of,
        )

    # Used by all jobs

    @property
    def _memory(self) -> MemoryConfig:
        return self.ground.settings().config.memory

    async def run_all(
        self, kind: str, work: Sequence[tuple[str, Callable[[], Awaitable[int]]]]
    ) -> str:
        """Do each (subject, work) on its own: one that fails is tried again later, one that needs a
        larger model waits, and nothing more is asked when a budget is spent.

        Returns how much came of how many. Raises DeskhandError when some failed.
        """
        found = 0
        failed: list[str] = []
        waiting: list[str] = []
        for subject, do in work:
            try:
                found += await do()
            except ModelTooSmall as error:
                waiting.append(str(error))
            except (ModelError, ConfigError) as error:
                failed.append(f"{subject}: {await self._note_failure(kind, subject, error)}")
                if isinstance(error, BudgetSpent):
                    break

        parts = []
        if done := len(work) - len(failed) - len(waiting):
            parts.append(f"{kind}: {found} from {done}")
        if waiting:
            parts.append(TOO_SMALL_MESSAGE.format(len(waiting), waiting[0]))
        if failed:
            parts.append(f"{kind} failed for {'; '.join(failed)}")
            raise DeskhandError("; ".join(parts))
        return "; ".join(parts)

    async def _note_failure(self, kind: str, subject: str, error: Exception) -> str:
        """Returns the reason, without secrets."""
        why = self.ground.redact(str(error))[:500]
        failure = queries.mark_failed(kind, subject, self.ground.clock.now(), why)
        await self.ground.store.change((failure,))
        log.warning("Job %s failed for %s and is tried again later: %s", kind, subject, why)
        return why

    async def load_transcript(self, session: str, after: int) -> Transcript:
        """What was said in a conversation, at least after event `after`."""
        store = self.ground.store
        reader = TranscriptReader(session)
        page: Sequence[Recorded] = await store.history(session)
        more = bool(page) and 1 < page[0].n > after
        if more:
            page = await store.events(session, limit=PAGE)
        await anyio.to_thread.run_sync(reader.read, page)
        while more and (page := await store.events(session, page[-1].n, PAGE)):
            await anyio.to_thread.run_sync(reader.read, page)
        return reader.transcript()

    async def find_known(self, text: str, scope: Scope, owner: str) -> list[Stored]:
        """The facts of this owner that are about the same things as this text."""
        viewer = make_owner_viewer(scope, owner)
        hits = await self.memory.search(text, viewer, MAX_KNOWN, scope)
        return [to_stored(hit.fact) for hit in hits]

    async def ask(self, agent: str, question: Aside, models: Sequence[str], job: str) -> str:
        """The answer of a model to this question, charged to this job. Small models are only asked
        when the settings name them for it: they cannot tell what is worth keeping.

        Raises ModelTooSmall, ModelError, ConfigError.
        """
        here = self.thinking.agent(agent)
        settings = self.ground.settings()
        candidates = cheapest_first(here.cheap_model, here.models)
        if not models and all(is_small(settings, one) for one in candidates):
            raise ModelTooSmall(f"the model of {agent} is too small to {job}")
        charge = Charge("", "", agent, job)
        return (await self.thinking.ask(agent, question, models, charge)).text

    def mark_processed(
        self, kind: str, subject: str, n: int, status: str = "processed", note: str = ""
    ) -> Change:
        """The change that notes how far a subject was read."""
        now = self.ground.clock.now()
        return queries.mark_processed(
            Processed(kind=kind, subject=subject, n=n, seen=n, at=now, status=status, note=note)
        )

    async def save_facts(self, facts: Sequence[NewFact], *more: Change) -> None:
        """Write these facts and the other changes, all or none."""
        now = self.ground.clock.now()
        changes: list[Change] = []
        for fact in facts:
            changes += add_fact(fact, now, self._memory.keeping)
        await self.ground.store.change([*changes, *more])


def choose_fact_owner(talk: Transcript, agent: str) -> tuple[Scope, str]:
    """The scope and owner of facts from this conversation: the person if they are alone with the
    agent, else the agent."""
    return ("user", talk.person) if talk.is_private else ("agent", agent)


def is_held(scope: Scope, label: Label, lines: Iterable[TranscriptLine]) -> bool:
    """Whether facts from these lines wait until an owner accepts them: they contain words from
    outside, or would tell everybody what somebody other than an owner said."""
    others = any(
        line.who not in (harvest.MODEL, harvest.TOOL) and line.label.integrity != "owner"
        for line in lines
    )
    return label.integrity == "untrusted" or (scope != "user" and others)


def _format_day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).date().isoformat()


def make_owner_viewer(scope: Scope, owner: str) -> Viewer:
    """Sees all facts of this owner."""
    return Viewer(owner, owner, private=scope == "user", all_seeing=True)


def to_stored(fact: Fact) -> Stored:
    """The fact as models see it."""
    return Stored(
        fact.id, fact.text, fact.label, fact.pinned, fact.at, fact.key, fact.session, fact.n
    )
