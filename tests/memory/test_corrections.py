"""What people change by hand: nothing is rewritten, each change can be undone, and what was said in
an erased conversation does not live on in its corrections."""

from __future__ import annotations

from typing import Any

import pytest

from deskhand.memory import queries
from deskhand.memory.corrections import (
    BOTH_HOLD,
    FactEdit,
    correct_fact,
    format_pair,
    keep_both,
    make_edit_key,
    merge_facts,
    move_fact,
    prefer_fact,
)
from deskhand.memory.facts import (
    Fact,
    NewFact,
    Viewer,
    add_fact,
    forget_session,
    make_unrestricted_viewer,
    pin_fact,
    undo_last_change,
)
from deskhand.memory.recall import Memory, Only
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.clock import SetClock
from deskhand.types.identity import Principal
from deskhand.types.labels import LOCAL, OWNER, UNTRUSTED, Label

T0 = 1_800_000_000.0
ALL = make_unrestricted_viewer()
ANN = Viewer("ann", "default", private=True, held=True)
OWNER_ANN = Principal("ann", ("owner",))
MEMBER = Principal("ann", ("member",))


class Notes:
    """The facts of one store, and a person who changes them."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.memory = Memory(store, SetClock(T0))
        self.count = 0

    async def add(self, text: str, **more: Any) -> Fact:
        self.count += 1
        given: dict[str, Any] = {
            "scope": "user",
            "owner": "ann",
            "label": OWNER,
            "writer": "harvester",
            "key": f"k{self.count}",
            "session": "default/web:ann:work",
            "n": self.count,
        }
        new = NewFact(text=text, **{**given, **more})
        await self.store.change(add_fact(new, T0))
        return await self.by_key(new.key)

    async def by_key(self, key: str) -> Fact:
        (found,) = await queries.facts_by_key(self.store, [key])
        return await self.get(found.id)

    async def get(self, id_: int) -> Fact:
        fact = await self.memory.get(id_, ALL)
        assert fact is not None
        return fact

    def edit(self, *facts: Fact, who: Principal = OWNER_ANN) -> FactEdit:
        self.count += 1
        return FactEdit(
            who=who,
            at=T0 + self.count,
            key=make_edit_key(facts, f"edit{self.count}"),
            session=facts[-1].session,
            n=facts[-1].n,
        )

    async def open(self, viewer: Viewer = ANN) -> list[str]:
        return [fact.text for fact in await self.memory.list_facts(viewer)]

    async def undo(self, fact: Fact) -> None:
        fact = await self.get(fact.id)
        successor = queries.find_successor(self.store, fact)
        await self.store.change(undo_last_change(fact, T0 + 99, successor=successor))


@pytest.fixture
def notes(store: SqliteStore) -> Notes:
    return Notes(store)


async def test_a_correction_replaces_and_can_be_undone(notes: Notes) -> None:
    old = await notes.add("The garage code is 7719", label=UNTRUSTED, held=True, pinned=True)
    edit = notes.edit(old, who=MEMBER)
    await notes.store.change(correct_fact(old, "The garage code is 8820", edit))
    new = await notes.by_key(edit.key)
    assert (new.text, new.writer, new.held, new.pinned, new.replaces) == (
        "The garage code is 8820",
        "person",
        False,
        True,
        (old.id,),
    )
    assert new.label == Label("member", source="ann", by=("ann",)), "it is this person's word"
    assert (new.session, new.n) == (old.session, old.n)
    assert await notes.open() == [new.text]
    assert [each.id for each in await notes.memory.history(new.id, ANN)] == [old.id, new.id]

    await notes.undo(new)
    assert await notes.open() == [old.text]
    assert (await notes.get(new.id)).closed_why == "undone"


async def test_a_correction_stays_in_the_files_of_notes(notes: Notes) -> None:
    old = await notes.add("Bread needs an hour", key="knowledge:x:1")
    await notes.store.change(correct_fact(old, "Bread needs two hours", notes.edit(old)))
    shown = await queries.facts_of_kind(notes.store, [("user", "ann")], "knowledge")
    assert [fact.text for fact in shown] == ["Bread needs two hours"]


async def test_two_facts_become_one_and_two_again(notes: Notes) -> None:
    one = await notes.add("Likes tea", label=Label("untrusted", source="https://a.example"))
    two = await notes.add("Ann likes tea", pinned=True)
    edit = notes.edit(one, two)
    await notes.store.change(merge_facts([one, two], "Ann likes tea", edit))
    new = await notes.by_key(edit.key)
    assert await notes.open() == ["Ann likes tea"]
    assert new.pinned and new.replaces == (one.id, two.id)
    assert new.label.integrity == "tool_local", "seen by a person, and not their own words"
    for each in (one, two, new):
        found = await notes.memory.history(each.id, ANN)
        assert [fact.id for fact in found if fact.valid_to is None] == [new.id]

    await notes.undo(one)
    assert await notes.open() == ["Ann likes tea", "Likes tea"]


async def test_what_is_told_to_others_and_no_longer(notes: Notes) -> None:
    own = await notes.add("The fair is at nine")
    edit = notes.edit(own)
    await notes.store.change(move_fact(own, "global", "", edit))
    shared = await notes.by_key(edit.key)
    assert (shared.scope, shared.owner, shared.held) == ("global", "", False)
    closed = await notes.get(own.id)
    assert (closed.closed_why, closed.superseded_by) == ("shared", shared.id)
    bob = Viewer("bob", "default", private=True)
    assert await notes.open(bob) == ["The fair is at nine"]
    assert [each.id for each in await notes.memory.history(shared.id, bob)] == [shared.id], (
        "what was one person's own is not shown to others"
    )

    await notes.undo(shared)
    assert await notes.open(bob) == [] and await notes.open() == ["The fair is at nine"]


async def test_what_waits_for_an_owner_moves_nothing(notes: Notes) -> None:
    own = await notes.add("The fair is at nine", pinned=True)
    edit = notes.edit(own, who=MEMBER)
    await notes.store.change(move_fact(own, "global", "", edit, held=True))
    waiting = await notes.by_key(edit.key)
    assert waiting.held and not waiting.pinned
    assert (await notes.get(own.id)).valid_to is None


async def test_a_preferred_fact_stays_when_that_is_undone(notes: Notes) -> None:
    rex = await notes.add("The dog is Rex")
    max_ = await notes.add("The dog is Max")
    await notes.store.change(prefer_fact(max_, rex, T0 + 1))
    assert await notes.open() == ["The dog is Max"]
    forgotten = await queries.forgotten_facts(notes.store, "user", "ann")
    assert [each.text for each in forgotten] == ["The dog is Rex"], "not gathered again"

    await notes.undo(rex)
    assert await notes.open() == ["The dog is Max", "The dog is Rex"]


async def test_a_pair_that_both_hold_is_remembered(notes: Notes) -> None:
    rex = await notes.add("The dog is Rex")
    max_ = await notes.add("The dog is Max")
    for pair in ((rex, max_), (max_, rex)):
        await notes.store.change(keep_both(*pair, T0))
        assert await queries.processed_subjects(notes.store, BOTH_HOLD) == [format_pair(*pair)]


async def test_an_erased_conversation_takes_its_corrections_along(notes: Notes) -> None:
    work = await notes.add("The garage code is 7719")
    home = await notes.add("Likes tea", session="default/web:ann:home")
    also = await notes.add("Ann likes tea")
    corrected = notes.edit(work)
    await notes.store.change(correct_fact(work, "The garage code is 8820", corrected))
    merged = notes.edit(home, also)
    await notes.store.change(merge_facts([home, also], "Ann likes tea", merged))

    await notes.store.change(forget_session("default/web:ann:work"))
    assert await notes.open() == ["Ann likes tea"], "this was said elsewhere, too"
    assert (await notes.by_key(merged.key)).session == "default/web:ann:home"
    assert await queries.facts_by_key(notes.store, [corrected.key]) == []


async def test_what_was_forgotten_is_listed_in_pages(notes: Notes) -> None:
    for n in range(5):
        fact = await notes.add(f"Code {n}")
        await notes.store.change([*undo_last_change(fact, T0 + n % 2, successor=None)])
    corrected = await notes.add("Likes tea")
    await notes.store.change(correct_fact(corrected, "Likes coffee", notes.edit(corrected)))
    texts: list[str] = []
    before = 0
    for _ in range(3):
        page = await notes.memory.list_closed(ANN, "", 2, before)
        texts += [fact.text for fact in page.facts]
        before = page.next or 0
    assert texts == ["Code 3", "Code 1", "Code 4", "Code 2", "Code 0"] and not before
    found = await notes.memory.list_closed(ANN, "CODE 4", 9)
    assert [fact.text for fact in found.facts] == ["Code 4"]
    bob = Viewer("bob", "default", private=True, held=True)
    assert (await notes.memory.list_closed(bob, "", 9)).facts == []


async def test_open_facts_are_listed_in_pages(notes: Notes) -> None:
    for n in range(5):
        fact = await notes.add(f"Code {n}", label=LOCAL)
        await notes.store.change([pin_fact(fact.id, n % 2 == 0)])
    first = notes.memory.list_page(ANN, "", 2, Only())
    assert [fact.text for fact in first.facts] == ["Code 4", "Code 3"] and first.next
    second = notes.memory.list_page(ANN, "", 3, Only(before=first.next))
    assert [fact.text for fact in second.facts] == ["Code 2", "Code 1", "Code 0"]
    assert second.next is None
    pinned = notes.memory.list_page(ANN, "", 9, Only(pinned=True))
    assert [fact.text for fact in pinned.facts] == ["Code 4", "Code 2", "Code 0"]
