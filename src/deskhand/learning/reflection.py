"""Reflects on conversations that are over, and moves what lasts from the notes of a day to
MEMORY.md."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, time
from functools import partial
from math import inf
from zoneinfo import ZoneInfo

import anyio.to_thread
import msgspec

from ..memory import fact_extraction as harvest
from ..memory import project_days, queries, reflect
from ..memory.fact_extraction import Excerpt, Stored, TranscriptLine
from ..memory.facts import NewFact, Scope
from ..memory.queries import Processed, UnprocessedSession
from ..memory.reflect import Reflection, ReflectionConfig
from ..types.commit import Change
from ..types.labels import Label, join_labels
from ..types.people import OWNER_NAME
from .extraction import Gatherer, choose_fact_owner, is_held, make_owner_viewer, to_stored
from .proposals.queries import Proposal
from .proposals.store import add_proposal

MOST_NEW = 1_000
"""The session that was ended is looked for among so many with something new."""


class _Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where facts of a reflection come from, and whose they are."""

    scope: Scope
    owner: str
    session: str
    n: int
    held: bool


class Reflecting:
    """Reflects on conversations. `gatherer` asks the model and writes the facts, `propose` gives
    the changes that store a proposed skill."""

    def __init__(
        self,
        gatherer: Gatherer,
        propose: Callable[[Proposal, float], tuple[Change, ...]] = add_proposal,
    ) -> None:
        self._gatherer = gatherer
        self._propose = propose

    @property
    def _config(self) -> ReflectionConfig:
        return self._gatherer.ground.settings().config.reflection

    async def reflect(self) -> str:
        """Reflect on each conversation that is over and has gone on since the last reflection, with
        one question for each.

        Returns a summary, '' when there was nothing to do. Raises DeskhandError when some of it
        failed.
        """
        gatherer = self._gatherer
        config = self._config
        async with gatherer.lock:
            now = gatherer.ground.clock.now()
            sessions = await queries.unprocessed_sessions(
                gatherer.ground.store,
                "reflect",
                quiet_since=now - 60 * config.quiet_minutes,
                now=now,
                limit=config.max_sessions,
            )
            return await gatherer.run_all("reflect", [self._work(each) for each in sessions])

    async def reflect_session(self, session: str) -> str:
        """Reflect on a conversation that somebody has just ended, and put what is always worth
        knowing into MEMORY.md, so that the next conversation knows it.

        Returns a summary, '' when there was nothing to do. Raises DeskhandError when it failed; it
        is then done with the next scheduled reflection.
        """
        gatherer = self._gatherer
        async with gatherer.lock:
            now = gatherer.ground.clock.now()
            sessions = await queries.unprocessed_sessions(
                gatherer.ground.store, "reflect", quiet_since=now, now=now, limit=MOST_NEW
            )
            work = [self._work(each) for each in sessions if each.session == session]
            said = await gatherer.run_all("reflect", work)
        promoted = await self.promote(inf) if work else ""
        return "; ".join(filter(None, (said, promoted)))

    def _work(self, one: UnprocessedSession) -> tuple[str, Callable[[], Awaitable[int]]]:
        return one.session, partial(self._reflect, one.session, one.agent, one.after)

    async def _reflect(self, session: str, agent: str, after: int) -> int:
        """Reflect on what was said after event `after`. Returns how many things were learned."""
        gatherer = self._gatherer
        talk = await gatherer.load_transcript(session, after)
        new = [line for line in talk.lines if line.n > after]
        if talk.busy or len(talk.lines) < reflect.MIN_LINES or len(new) < reflect.MIN_NEW_LINES:
            await self._skip(session, after, talk.n)
            return 0

        scope, owner = choose_fact_owner(talk, agent)
        excerpt = reflect.select_excerpt(talk.lines, talk.calls, after)
        back = await self._ask_model(excerpt, new, agent, (scope, owner))

        origin = _Origin(
            scope=scope,
            owner=owner,
            session=session,
            n=new[-1].n,
            held=is_held(scope, back.label, (*excerpt.earlier, *excerpt.new)),
        )
        forgotten = await queries.forgotten_facts(gatherer.ground.store, scope, owner)
        forgotten = harvest.drop_mentioned_again(new, forgotten)
        facts = [
            fact
            for fact in self._make_facts(back, origin)
            if not harvest.is_forgotten(fact.text, new[0].at, forgotten)
        ]

        proposals = await self._propose_skills(back, agent, origin)
        trusted = back.label.integrity != "untrusted"
        note = gatherer.ground.redact(back.summary) if trusted else ""
        mark = gatherer.mark_processed("reflect", session, talk.n, note=note)
        await gatherer.save_facts(facts, *proposals, mark)
        return len(back.knowledge) + len(back.learnings) + len(back.skills)

    async def _skip(self, session: str, after: int, seen: int) -> None:
        """Note that there is too little to reflect on yet, or that a turn is still running."""
        ground = self._gatherer.ground
        done = Processed(
            kind="reflect",
            subject=session,
            n=after,
            seen=seen,
            at=ground.clock.now(),
            status="processed" if after else "too_short",
        )
        await ground.store.change((queries.mark_processed(done),))

    async def _ask_model(
        self,
        excerpt: Excerpt,
        new: Sequence[TranscriptLine],
        agent: str,
        whose: tuple[Scope, str],
    ) -> Reflection:
        gatherer = self._gatherer
        known = [
            *await self._load_kind("knowledge", *whose),
            *await self._load_kind("learning", *whose),
        ]
        near = await gatherer.find_known("\n".join(line.text for line in new), *whose)
        question = reflect.build_prompt(excerpt, near, self._config.output_tokens)
        answer = await gatherer.ask(agent, question, self._config.models, "reflect")
        return reflect.parse_answer(answer, excerpt, [each.text for each in known])

    async def _propose_skills(self, back: Reflection, agent: str, origin: _Origin) -> list[Change]:
        redact = self._gatherer.ground.redact
        now = self._gatherer.ground.clock.now()
        changes: list[Change] = []
        for skill in back.skills:
            proposal = Proposal(
                name=skill.name,
                description=redact(skill.description),
                body=redact(skill.body),
                agent=agent,
                session=origin.session,
                n=origin.n,
                label=back.label,
            )
            changes += await anyio.to_thread.run_sync(self._propose, proposal, now)
        return changes

    def _make_facts(self, back: Reflection, origin: _Origin) -> list[NewFact]:
        """Knowledge and learnings. For a private conversation also its summary, for the notes of
        the day."""
        found = [("knowledge", each.text, each.confidence) for each in back.knowledge]
        found += [("learning", each.text, each.confidence) for each in back.learnings]
        if origin.scope == "user" and back.summary:
            found.append(("summary", back.summary, 1.0))
        return [
            NewFact(
                text=self._gatherer.ground.redact(text),
                scope=origin.scope,
                owner=origin.owner,
                label=back.label,
                writer="reflection",
                key=harvest.make_fact_key(kind, origin.session, origin.n, text),
                session=origin.session,
                n=origin.n,
                confidence=confidence,
                retention="candidate" if kind == "summary" else "durable",
                held=origin.held,
            )
            for kind, text, confidence in found
        ]

    async def _load_kind(self, kind: str, scope: Scope, owner: str) -> list[Stored]:
        """The open facts of this owner of one kind, the oldest first."""
        store = self._gatherer.ground.store
        facts = await queries.facts_of_kind(store, [(scope, owner)], kind)
        return [to_stored(fact) for fact in facts]

    # Notes of days

    async def promote(self, before: float | None = None) -> str:
        """Put what is always worth knowing of the owner's notes into MEMORY.md: of the notes from
        before that time (seconds since the epoch), None for those of past days.

        Returns a summary, '' when there was nothing to do. Raises DeskhandError when it failed.
        """
        gatherer = self._gatherer
        async with gatherer.lock:
            after = await queries.processed_up_to(gatherer.ground.store, "promote", OWNER_NAME)
            until = self._start_of_today() if before is None else before
            notes = await self._load_new_notes(after, until)
            work: list[tuple[str, Callable[[], Awaitable[int]]]] = []
            if notes:
                work.append((OWNER_NAME, partial(self._promote, notes)))
            return await gatherer.run_all("promote", work)

    def _start_of_today(self) -> float:
        """When today began in the configured time zone, in seconds since the epoch."""
        ground = self._gatherer.ground
        zone = ZoneInfo(ground.settings().config.timezone)
        today = datetime.fromtimestamp(ground.clock.now(), zone).date()
        return datetime.combine(today, time(), zone).timestamp()

    async def _load_new_notes(self, after: int, before: float) -> list[Stored]:
        """The trusted notes with an id above `after` from before that time, by id."""
        notes = [
            *await self._load_kind("summary", "user", OWNER_NAME),
            *await self._load_kind("day", "user", OWNER_NAME),
        ]
        fresh = []
        for note in notes:
            is_new = note.id > after and note.at < before and not note.pinned
            if is_new and note.label.integrity != "untrusted":
                fresh.append(note)
        return sorted(fresh, key=lambda note: note.id)[: project_days.MOST_NOTES]

    async def _promote(self, notes: Sequence[Stored]) -> int:
        """Returns how many facts were pinned."""
        gatherer = self._gatherer
        mine = ("user", OWNER_NAME)
        pinned = [
            fact
            for fact in gatherer.memory.pinned(make_owner_viewer("user", OWNER_NAME))
            if (fact.scope, fact.owner) == mine
        ]
        known = [fact.text for fact in pinned]
        agent = gatherer.ground.settings().agents[0]
        question = project_days.build_prompt(notes, known)
        answer = await gatherer.ask(agent, question, self._config.models, "promote")
        chosen = project_days.parse_answer(answer, notes, known)

        label = join_labels([*(note.label for note in notes), *(fact.label for fact in pinned)])
        facts = [self._make_pinned_fact(each, notes, label) for each in chosen]
        mark = gatherer.mark_processed("promote", OWNER_NAME, notes[-1].id)
        await gatherer.save_facts(facts, mark)
        return len(facts)

    def _make_pinned_fact(
        self, kept: project_days.KeptNote, notes: Sequence[Stored], label: Label
    ) -> NewFact:
        note = next(each for each in notes if each.id == kept.id)
        trusted = label.integrity != "untrusted"
        return NewFact(
            text=self._gatherer.ground.redact(kept.text),
            scope="user",
            owner=OWNER_NAME,
            label=label,
            writer="reflection",
            key=f"promote:{kept.id}",
            session=note.session,
            n=note.n,
            pinned=trusted,
            held=not trusted,
            replaces=(kept.id,),
        )
