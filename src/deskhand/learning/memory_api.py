"""Memory for the page and the API: it implements `web.protocols.MemoryBackend`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import anyio.to_thread

from ..assembly.host import Host
from ..memory import corrections, queries
from ..memory.access import make_person_viewer, may_change, may_list
from ..memory.contradictions import Contradiction, find_contradictions
from ..memory.corrections import FactEdit
from ..memory.facts import (
    Fact,
    Scope,
    Viewer,
    close_fact,
    fit_fact_text,
    pin_fact,
    promote_fact,
    undo_last_change,
)
from ..memory.recall import MOST_FOUND, FactsPage, Memory, Only
from ..tools.documents.invisible_characters import escape_invisible
from ..types.commit import Change
from ..types.errors import NoSuchFact, Refused
from ..types.identity import Principal
from ..types.labels import Label
from ..types.marked_texts import mark_text
from ..web.memory_views import (
    ContradictionView,
    FactDetail,
    FactView,
    MemoriesView,
    MemoryQuery,
    MemoryReader,
)
from ..web.names import format_session_name

COMPARED = 2_000
"""Contradictions are looked for among so many facts of a reader, the latest."""
SIMILAR = 4
SIMILAR_RELEVANCE = 0.4
_SCOPES: dict[str, Scope] = {"own": "user"}


class MemoryApi:
    """Each person sees their own facts and those that everybody is told. Only owners change the
    latter."""

    def __init__(self, ground: Host, memory: Memory) -> None:
        self._ground = ground
        self._memory = memory

    # Reading

    async def list_facts(self, reader: MemoryReader, query: MemoryQuery) -> MemoriesView:
        viewer = _make_viewer(reader)
        if query.which == "forgotten":
            page = await self._memory.list_closed(viewer, query.q, query.limit, query.before)
        elif query.q.strip():
            found = await self._memory.search(
                query.q, viewer, MOST_FOUND, _SCOPES.get(query.which, "")
            )
            page = FactsPage([hit.fact for hit in found], None)
        else:
            only = Only(
                pinned=query.which == "pinned",
                held=query.which == "held",
                before=query.before or queries.MAX_ID,
            )
            scope = _SCOPES.get(query.which, "")
            if query.which == "shared":
                viewer = make_person_viewer(reader.principal, reader.agents, private=False)
            page = self._memory.list_page(viewer, scope, query.limit, only)

        shown = [
            self._make_view(fact, reader.principal)
            for fact in page.facts
            if may_list(fact, reader.principal) and _is_chosen(fact, query.which)
        ]
        enabled = self._ground.settings().config.memory.enabled
        return MemoriesView(enabled, shown, page.next)

    async def list_contradictions(self, reader: MemoryReader) -> list[ContradictionView]:
        facts = self._memory.list_page(_make_viewer(reader), "", COMPARED, Only()).facts
        found = await anyio.to_thread.run_sync(find_contradictions, facts)
        settled = await queries.processed_subjects(self._ground.store, corrections.BOTH_HOLD)
        return [
            self._make_contradiction_view(each, reader.principal)
            for each in found
            if corrections.format_pair(each.older, each.newer) not in settled
        ]

    async def require(self, reader: MemoryReader, id_: int) -> int:
        return (await self._find(reader, id_)).id

    async def get_fact(self, reader: MemoryReader, id_: int) -> FactDetail:
        who = reader.principal
        viewer = _make_viewer(reader)
        fact = await self._find(reader, id_)
        store = self._ground.store
        to_view = partial(self._make_view, who=who)

        visible = bool(fact.session) and await store.may_see(who, fact.session)
        first_agent = self._ground.settings().agents[0]
        source = queries.find_source(store, fact) if visible or fact.scope == "user" else None
        history = await self._memory.history(fact.id, viewer)
        return FactDetail(
            fact=to_view(fact),
            conversation=format_session_name(fact.session, who, first_agent) if visible else "",
            n=fact.n,
            said=escape_invisible(self._ground.redact(source.text)) if source else "",
            said_by=source.person if source else "",
            said_at=source.at if source else None,
            said_n=source.n if source else 0,
            file=_file_of(fact),
            readers=list(fact.label.readers or ()),
            uses=fact.uses,
            used_at=fact.used_at,
            history=[to_view(each) for each in history if may_list(each, who)],
            similar=[to_view(each) for each in await self._find_similar(fact, viewer)],
        )

    async def _find_similar(self, fact: Fact, viewer: Viewer) -> list[Fact]:
        """The facts of the same owner that may say the same."""
        if fact.valid_to is not None or fact.held:
            return []
        hits = await self._memory.search(fact.text, viewer, MOST_FOUND, fact.scope)
        found = [
            hit.fact
            for hit in hits
            if hit.relevance >= SIMILAR_RELEVANCE
            and hit.fact.id != fact.id
            and hit.fact.owner == fact.owner
            and not hit.fact.held
        ]
        return found[:SIMILAR]

    # Changing

    async def correct(self, reader: MemoryReader, id_: int, text: str) -> FactDetail:
        fact = await self._find_open(reader, id_)
        text = self._fit_text(text)
        if text == fact.text and not fact.held:
            raise Refused(mark_text("that is what it says already"))
        await self._check_repeated(text, [fact])
        edit = await self._begin_edit(reader.principal, [fact])
        return await self._write(reader, edit, corrections.correct_fact(fact, text, edit))

    async def merge(self, reader: MemoryReader, id_: int, other: int, text: str) -> FactDetail:
        facts = await self._find_pair(reader, id_, other)
        text = self._fit_text(text or facts[0].text)
        await self._check_repeated(text, facts)
        edit = await self._begin_edit(reader.principal, facts)
        return await self._write(reader, edit, corrections.merge_facts(facts, text, edit))

    async def share(self, reader: MemoryReader, id_: int, shared: bool) -> FactDetail:
        fact = await self._find_open(reader, id_)
        who = reader.principal
        scope: Scope = "global" if shared else "user"
        owner = "" if shared else who.id
        if (fact.scope == "user") != shared:
            raise Refused(mark_text("that is so already"))
        if fact.held:
            raise Refused(
                mark_text("#{number} waits for approval: approve it first").format(number=fact.id)
            )
        if fact.label.readers is not None:
            readers = ", ".join(fact.label.readers)
            raise Refused(
                mark_text("it comes from something that only {readers} may read").format(
                    readers=readers
                )
            )
        if await self._memory.find_exact(fact.text, [(scope, owner)]):
            raise Refused(mark_text("a memory that says this is there already"))
        keeping = self._ground.settings().config.memory.keeping
        if self._memory.count_owned(scope, owner) >= keeping.most:
            raise Refused(
                mark_text(
                    "there are {count_number} memories there already: forget some first"
                ).format(count_number=f"{keeping.most:,}")
            )

        held = shared and "owner" not in who.roles
        edit = await self._begin_edit(who, [fact])
        changes = corrections.move_fact(fact, scope, owner, edit, held=held)
        if held:
            await self._ground.store.change(changes)
            return await self.get_fact(reader, fact.id)
        return await self._write(reader, edit, changes)

    async def pin(self, reader: MemoryReader, id_: int, pinned: bool) -> FactDetail:
        fact = await self._find_open(reader, id_)
        return await self._change(reader, fact, [pin_fact(fact.id, pinned)])

    async def decide(self, reader: MemoryReader, id_: int, other: int, *, both: bool) -> FactDetail:
        fact, wrong = await self._find_pair(reader, id_, other)
        now = self._ground.clock.now()
        if both:
            return await self._change(reader, fact, corrections.keep_both(fact, wrong, now))
        return await self._change(reader, fact, corrections.prefer_fact(fact, wrong, now))

    async def approve(self, reader: MemoryReader, id_: int) -> FactDetail:
        fact = await self._find_open(reader, id_)
        return await self._change(reader, fact, promote_fact(fact, self._ground.clock.now()))

    async def forget(self, reader: MemoryReader, id_: int) -> FactDetail:
        fact = await self._find_open(reader, id_)
        change = close_fact(fact.id, self._ground.clock.now(), "forgotten")
        return await self._change(reader, fact, [change])

    async def undo(self, reader: MemoryReader, id_: int) -> FactDetail:
        who = reader.principal
        fact = await self._find(reader, id_)
        successor = queries.find_successor(self._ground.store, fact)
        replaced = successor is not None and fact.id in successor.replaces
        if not may_change(fact, who) or (replaced and successor and not may_change(successor, who)):
            raise Refused(_ONLY_OWNERS)
        changes = undo_last_change(fact, self._ground.clock.now(), successor=successor)
        return await self._change(reader, fact, changes)

    # Used by all changes

    async def _find(self, reader: MemoryReader, id_: int) -> Fact:
        fact = await self._memory.get(id_, _make_viewer(reader))
        if fact is None or not may_list(fact, reader.principal):
            raise NoSuchFact
        return fact

    async def _find_open(self, reader: MemoryReader, id_: int) -> Fact:
        """A fact that holds and that this reader may change. Raises NoSuchFact, Refused."""
        fact = await self._find(reader, id_)
        if not may_change(fact, reader.principal):
            raise Refused(_ONLY_OWNERS)
        if obstacle := corrections.find_obstacle([fact]):
            raise Refused(obstacle)
        return fact

    async def _find_pair(self, reader: MemoryReader, id_: int, other: int) -> list[Fact]:
        """Two facts of one owner that this reader may change. Raises NoSuchFact, Refused."""
        facts = [await self._find_open(reader, id_), await self._find_open(reader, other)]
        if obstacle := corrections.find_obstacle(facts):
            raise Refused(obstacle)
        return facts

    def _fit_text(self, text: str) -> str:
        """The text as it is stored, without secrets. Raises Refused for one without words."""
        text = self._ground.redact(fit_fact_text(text))
        if not text:
            raise Refused(mark_text("a memory needs words"))
        return text

    async def _check_repeated(self, text: str, replaced: Sequence[Fact]) -> None:
        if repeated := await corrections.find_repeated(self._memory, text, replaced):
            raise Refused(repeated)

    async def _begin_edit(self, who: Principal, facts: Sequence[Fact]) -> FactEdit:
        return await corrections.begin_edit(
            self._ground.store,
            facts,
            who=who,
            at=self._ground.clock.now(),
            unique=self._ground.ids.new("fact"),
            keeping=self._ground.settings().config.memory.keeping,
        )

    async def _write(
        self, reader: MemoryReader, edit: FactEdit, changes: Sequence[Change]
    ) -> FactDetail:
        """Commit the changes and return the fact that they wrote."""
        store = self._ground.store
        await store.change(changes)
        written = await queries.facts_by_key(store, [edit.key])
        if not written:
            raise Refused(
                mark_text("it could not be saved: what it comes from was erased meanwhile")
            )
        return await self.get_fact(reader, written[0].id)

    async def _change(
        self, reader: MemoryReader, fact: Fact, changes: Sequence[Change]
    ) -> FactDetail:
        await self._ground.store.change(changes)
        return await self.get_fact(reader, fact.id)

    # Views

    def _make_view(self, fact: Fact, who: Principal) -> FactView:
        text = self._ground.redact(fact.text)
        outside = _outside_of(fact.label)
        return FactView(
            id=fact.id,
            text=escape_invisible(text) if outside else text,
            scope=fact.scope,
            owner=fact.owner,
            writer=fact.writer,
            at=fact.at,
            outside=outside,
            pinned=fact.pinned,
            held=fact.held,
            forgotten_at=fact.expires_at,
            closed_at=fact.valid_to,
            closed_why=fact.closed_why,
            replaces=list(fact.replaces),
            replaced_by=fact.superseded_by,
            may_change=may_change(fact, who),
        )

    def _make_contradiction_view(self, found: Contradiction, who: Principal) -> ContradictionView:
        return ContradictionView(
            about=found.about,
            older=self._make_view(found.older, who),
            newer=self._make_view(found.newer, who),
        )


_ONLY_OWNERS = "only an owner can change it: it is told to others too"


def _make_viewer(reader: MemoryReader) -> Viewer:
    return make_person_viewer(reader.principal, reader.agents)


def _is_chosen(fact: Fact, which: str) -> bool:
    match which:
        case "shared":
            return fact.scope != "user"
        case "pinned":
            return fact.pinned
        case "held":
            return fact.held
        case _:
            return True


def _outside_of(label: Label) -> str:
    """What had been read from outside before this was noted, '' for nothing."""
    if label.integrity != "untrusted":
        return ""
    return ", ".join(label.sources) or "something from outside"


def _file_of(fact: Fact) -> str:
    """The file that a fact was read from, '' for none."""
    source = fact.label.source
    return source.removeprefix("file ") if fact.writer == "file" else ""
