"""Looks back at conversations that are over, and at the days that are: what they taught, and what
stays."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, time
from functools import partial
from math import inf
from zoneinfo import ZoneInfo

import anyio.to_thread
import msgspec

from ..memory import fact_extraction as harvest
from ..memory import project_days, reflect
from ..memory.fact_extraction import Stored
from ..memory.facts import NewFact, Scope, parse_fact_row
from ..memory.reflect import Reflection, ReflectionConfig
from ..types.commit import Change
from ..types.labels import Label, join_labels
from ..types.people import OWNER_NAME
from .extraction import Gatherer, choose_fact_owner, is_held, make_owner_viewer, to_stored
from .proposals.store import Proposal, add_proposal

MOST_NEW = 1_000
"""Among so many conversations with something new the one that was ended is looked for."""


class Reflecting:
    """`gatherer` does the asking and the keeping, `propose` gives the rows of what could become a
    skill."""

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
        """Look back at each conversation that is over and has gone on since it was looked at last,
        one question for each. Returns what came of it, '' for nothing. Raises DeskhandError where
        some of it failed."""
        gatherer = self._gatherer
        config = self._config
        async with gatherer.lock:
            now = gatherer.ground.clock.now()
            args = ("reflect", now - 60 * config.quiet_minutes, now, config.max_sessions)
            rows = await gatherer.ground.store.query("gathered_new", args)
            work = [(row[0], partial(self._reflect, row[0], row[1], row[2])) for row in rows]
            return await gatherer.run_all("reflect", work)

    async def reflect_session(self, session: str) -> str:
        """Look back at a conversation that somebody has just ended, and put into MEMORY.md what is
        worth knowing always: the next one is to know it. Returns what came of it, '' for nothing.
        Raises DeskhandError where it failed: then it is done when looking back is due."""
        gatherer = self._gatherer
        async with gatherer.lock:
            now = gatherer.ground.clock.now()
            rows = await gatherer.ground.store.query(
                "gathered_new", ("reflect", now, now, MOST_NEW)
            )
            work = [
                (row[0], partial(self._reflect, row[0], row[1], row[2]))
                for row in rows
                if row[0] == session
            ]
            said = await gatherer.run_all("reflect", work)
        return "; ".join(filter(None, (said, await self.promote(inf) if work else "")))

    async def _reflect(self, session: str, agent: str, after: int) -> int:
        """Returns how many things were learned."""
        gatherer = self._gatherer
        talk = await gatherer.load_transcript(session, after)
        new = [line for line in talk.lines if line.n > after]
        if talk.busy or len(talk.lines) < reflect.MIN_LINES or len(new) < reflect.MIN_NEW_LINES:
            row = (
                session,
                after,
                talk.n,
                gatherer.ground.clock.now(),
                "processed" if after else "too_short",
                "",
            )
            await gatherer.ground.store.change((Change("gathered_set", ("reflect", *row)),))
            return 0
        scope, owner = choose_fact_owner(talk, agent)
        known = [
            *await self._load_kind("knowledge", scope, owner),
            *await self._load_kind("learning", scope, owner),
        ]
        found = reflect.select_excerpt(talk.lines, talk.calls, after)
        near = await gatherer.find_known("\n".join(line.text for line in new), scope, owner)
        question = reflect.build_prompt(found, near, self._config.output_tokens)
        answer = await gatherer.ask(agent, question, self._config.models, "reflect")
        back = reflect.parse_answer(answer, found, [each.text for each in known])
        n = new[-1].n
        held = is_held(scope, back.label, (*found.earlier, *found.new))
        gone = harvest.drop_mentioned_again(new, await gatherer.list_forgotten(scope, owner))
        facts = self._make_facts(back, (scope, owner), (session, n), held)
        facts = [each for each in facts if not harvest.is_forgotten(each.text, new[0].at, gone)]
        now = gatherer.ground.clock.now()
        redact = gatherer.ground.redact
        skills = [
            Proposal(
                each.name,
                redact(each.description),
                redact(each.body),
                agent,
                session,
                n,
                back.label,
            )
            for each in back.skills
        ]
        note = "" if back.label.integrity == "untrusted" else redact(back.summary)
        rows = [
            row
            for each in skills
            for row in await anyio.to_thread.run_sync(self._propose, each, now)
        ]
        await gatherer.save_facts(
            facts, *rows, gatherer.mark_processed("reflect", session, talk.n, note=note)
        )
        return len(back.knowledge) + len(back.learnings) + len(skills)

    def _make_facts(
        self, back: Reflection, whose_: tuple[Scope, str], event: tuple[str, int], held: bool
    ) -> list[NewFact]:
        """Knowledge and learnings; of a private conversation also what it was about, for the notes
        of the day."""
        about = [("knowledge", each.text, each.confidence) for each in back.knowledge]
        about += [("learning", each.text, each.confidence) for each in back.learnings]
        if whose_[0] == "user" and back.summary:
            about.append(("summary", back.summary, 1.0))
        redact = self._gatherer.ground.redact
        return [
            NewFact(
                redact(text),
                *whose_,
                back.label,
                "reflection",
                harvest.make_fact_key(kind, *event, text),
                *event,
                confidence,
                "candidate" if kind == "summary" else "durable",
                held=held,
            )
            for kind, text, confidence in about
        ]

    async def _load_kind(self, kind: str, scope: Scope, owner: str) -> list[Stored]:
        owners = msgspec.json.encode([[scope, owner]]).decode()
        return [
            to_stored(parse_fact_row(row))
            for row in await self._gatherer.ground.store.query("notes_kind", (owners, kind))
        ]

    # Notes of days

    async def promote(self, before: float | None = None) -> str:
        """What of the owner's notes is worth knowing always becomes that, in MEMORY.md: of those
        from `before` that time, None for those of past days. Returns what came of it, '' for
        nothing. Raises DeskhandError where it failed."""
        gatherer = self._gatherer
        async with gatherer.lock:
            rows = await gatherer.ground.store.query("gathered_get", ("promote", OWNER_NAME))
            notes = await self._load_new_notes(
                rows[0][0] if rows else 0, self._start_of_today() if before is None else before
            )
            work: list[tuple[str, Callable[[], Awaitable[int]]]] = []
            if notes:
                work.append((OWNER_NAME, partial(self._promote, notes)))
            return await gatherer.run_all("promote", work)

    def _start_of_today(self) -> float:
        """When today began, where the person is."""
        ground = self._gatherer.ground
        zone = ZoneInfo(ground.settings().config.timezone)
        return datetime.combine(
            datetime.fromtimestamp(ground.clock.now(), zone).date(), time(), zone
        ).timestamp()

    async def _load_new_notes(self, after: int, before: float) -> list[Stored]:
        """What was noted by then, and nobody has looked through."""
        notes = [
            *await self._load_kind("summary", "user", OWNER_NAME),
            *await self._load_kind("day", "user", OWNER_NAME),
        ]
        fresh = [each for each in notes if each.id > after and each.at < before and not each.pinned]
        fresh = [each for each in fresh if each.label.integrity != "untrusted"]
        return sorted(fresh, key=lambda each: each.id)[: project_days.MOST_NOTES]

    async def _promote(self, notes: Sequence[Stored]) -> int:
        gatherer = self._gatherer
        always = [
            fact
            for fact in gatherer.memory.pinned(make_owner_viewer("user", OWNER_NAME))
            if (fact.scope, fact.owner) == ("user", OWNER_NAME)
        ]
        said = [fact.text for fact in always]
        agent = gatherer.ground.settings().agents[0]
        answer = await gatherer.ask(
            agent, project_days.build_prompt(notes, said), self._config.models, "promote"
        )
        kept = project_days.parse_answer(answer, notes, said)
        read = join_labels([*(each.label for each in notes), *(fact.label for fact in always)])
        facts = [self._make_pinned_fact(each, notes, read) for each in kept]
        await gatherer.save_facts(
            facts, gatherer.mark_processed("promote", OWNER_NAME, notes[-1].id)
        )
        return len(facts)

    def _make_pinned_fact(
        self, kept: project_days.KeptDays, notes: Sequence[Stored], label: Label
    ) -> NewFact:
        note = next(each for each in notes if each.id == kept.id)
        return NewFact(
            self._gatherer.ground.redact(kept.text),
            "user",
            OWNER_NAME,
            label,
            "reflection",
            f"promote:{kept.id}",
            note.session,
            note.n,
            pinned=label.integrity != "untrusted",
            held=label.integrity == "untrusted",
            replaces=(kept.id,),
        )
