"""Facts as rows: written once, never rewritten, closed and opened again, and shown to whom they are
for."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from deskhand.memory.facts import (
    DAY_S,
    FACT_CHARS,
    Fact,
    Keeping,
    NewFact,
    Viewer,
    add_fact,
    close_fact,
    erase_fact,
    fit_fact_text,
    keep_fact,
    make_unrestricted_viewer,
    pin_fact,
    promote_fact,
    reopen_fact,
    undo_fact,
)
from deskhand.memory.recall import Memory, Only
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.clock import SetClock
from deskhand.types.commit import Change
from deskhand.types.labels import LOCAL, OWNER, UNTRUSTED, Label

T0 = 1_800_000_000.0
ANN = Viewer("ann", "default", private=True)
BOB = Viewer("bob", "default", private=True)
GROUP = Viewer("ann", "default", private=False)


def fact(text: str, **more: Any) -> NewFact:
    base = NewFact(
        text=text, scope="user", owner="ann", label=OWNER, writer="tool", key=more.pop("key", text)
    )
    return replace(base, **more)


async def ids(memory: Memory, viewer: Viewer) -> list[int]:
    return [each.id for each in await memory.list_facts(viewer)]


@pytest.fixture
def memory(store: SqliteStore) -> Memory:
    return Memory(store, SetClock(T0))


async def one(store: SqliteStore, memory: Memory, new: NewFact, at: float = T0) -> Fact:
    await store.change(add_fact(new, at))
    return next(
        each for each in await memory.list_facts(make_unrestricted_viewer()) if each.key == new.key
    )


async def test_a_fact_comes_back_as_it_was_written(store: SqliteStore, memory: Memory) -> None:
    label = Label("tool_local", ("ann",), "file notes.txt")
    more = {
        "session": "default/terminal",
        "n": 7,
        "confidence": 0.5,
        "retention": "candidate",
        "label": label,
    }
    found = await one(store, memory, fact("the code is 7719", **more))
    assert (found.text, found.scope, found.owner, found.session, found.n) == (
        "the code is 7719",
        "user",
        "ann",
        "default/terminal",
        7,
    )
    assert (found.label, found.confidence, found.writer) == (label, 0.5, "tool")
    assert (found.valid_from, found.valid_to, found.expires_at) == (T0, None, T0 + 14 * DAY_S)


async def test_what_has_been_written_under_a_key_is_not_written_again(
    store: SqliteStore, memory: Memory
) -> None:
    first = await one(store, memory, fact("tea", key="k"))
    await store.change(add_fact(fact("coffee", key="k"), T0 + 1))
    assert [each.text for each in await memory.list_facts(ANN)] == ["tea"]
    await store.change([close_fact(first.id, T0 + 2, "forgotten")])
    await store.change(add_fact(fact("tea", key="k"), T0 + 3))
    assert await memory.list_facts(ANN) == [], (
        "what a person forgot does not come back with a repeated commit"
    )


async def test_who_sees_what(store: SqliteStore, memory: Memory) -> None:
    await store.change(add_fact(fact("ann's code"), T0))
    await store.change(add_fact(fact("bob's code", owner="bob"), T0))
    await store.change(add_fact(fact("agent's code", scope="agent", owner="default"), T0))
    await store.change(add_fact(fact("other agent's code", scope="agent", owner="other"), T0))
    await store.change(add_fact(fact("code of all", scope="global", owner="ann"), T0))
    await store.change(
        add_fact(fact("code for bob alone", scope="global", label=Label("owner", ("bob",))), T0)
    )
    await store.change(add_fact(fact("held code", scope="global", label=UNTRUSTED, held=True), T0))

    async def seen(viewer: Viewer) -> set[str]:
        listed = {each.text for each in await memory.list_facts(viewer)}
        found = {each.fact.text for each in await memory.search("code", viewer, 50)}
        assert listed == found
        return listed

    everybody = {"agent's code", "code of all"}
    assert await seen(ANN) == everybody | {"ann's code"}
    assert await seen(BOB) == everybody | {"bob's code"}, (
        "the readers of a label are names, none is given here"
    )
    assert await seen(replace(BOB, audience=("bob",))) == everybody | {
        "bob's code",
        "code for bob alone",
    }
    assert await seen(GROUP) == everybody
    assert await seen(Viewer("", "default", private=True)) == everybody
    assert await seen(replace(ANN, held=True)) == everybody | {"ann's code", "held code"}
    assert len(await seen(make_unrestricted_viewer())) == 7
    assert await memory.get(7, ANN) is None and await memory.get(2, ANN) is None, (
        "by its number neither"
    )


async def test_one_scope_alone(store: SqliteStore, memory: Memory) -> None:
    await store.change(add_fact(fact("ann's code"), T0))
    await store.change(add_fact(fact("code of all", scope="global"), T0))
    for scope, text in (("user", "ann's code"), ("global", "code of all")):
        assert [each.text for each in await memory.list_facts(ANN, scope)] == [text]
        assert [each.fact.text for each in await memory.search("code", ANN, 5, scope)] == [text]
    assert (
        await memory.list_facts(GROUP, "user") == []
        and await memory.search("code", GROUP, 5, "user") == []
    )


async def test_a_fact_in_place_of_others(store: SqliteStore, memory: Memory) -> None:
    old = await one(store, memory, fact("the gate code is 1"))
    bobs = await one(store, memory, fact("bob's gate code", owner="bob"))
    new = await one(store, memory, fact("the gate code is 2", replaces=(old.id, bobs.id)), T0 + 5)
    assert await ids(memory, ANN) == [new.id] and await ids(memory, BOB) == [bobs.id], (
        "never a fact of another"
    )
    was = await memory.get(old.id, ANN)
    assert was and (was.valid_to, was.superseded_by, was.closed_why) == (
        T0 + 5,
        new.id,
        "superseded",
    )
    newest = await one(store, memory, fact("the gate code is 3", replaces=(new.id,)), T0 + 6)
    for each in (old, new, newest):
        assert [step.id for step in await memory.history(each.id, ANN)] == [
            old.id,
            new.id,
            newest.id,
        ]
    assert await memory.history(old.id, BOB) == [] and await memory.get(old.id, BOB) is None
    assert [each.fact.id for each in await memory.search("gate code", ANN)] == [newest.id]
    await store.change(undo_fact(newest.id, T0 + 7))
    assert await ids(memory, ANN) == [new.id]
    assert [each.fact.id for each in await memory.search("gate code", ANN)] == [new.id]


async def test_what_is_held_replaces_nothing_before_it_is_promoted(
    store: SqliteStore, memory: Memory
) -> None:
    old = await one(store, memory, fact("pay to account 1"))
    evil = fact(
        "pay to account 666", label=UNTRUSTED, held=True, replaces=(old.id,), retention="candidate"
    )
    new = await one(store, memory, evil)
    assert await ids(memory, ANN) == [old.id]
    await store.change(promote_fact(new, T0 + 9))
    assert await ids(memory, ANN) == [new.id]
    found = await memory.get(new.id, ANN)
    assert (
        found
        and not found.held
        and found.label == LOCAL
        and (found.retention, found.expires_at) == ("durable", None)
    )


async def test_closed_and_opened_again(store: SqliteStore, memory: Memory) -> None:
    made = await one(store, memory, fact("the wifi password is blue-otter"))
    await store.change(
        [close_fact(made.id, T0 + 1, "forgotten"), close_fact(made.id, T0 + 2, "again")]
    )
    gone = await memory.get(made.id, ANN)
    assert gone and (gone.valid_to, gone.closed_why) == (T0 + 1, "forgotten")
    assert await memory.search("wifi", ANN) == [] and await ids(memory, ANN) == []
    await store.change(reopen_fact(made.id))
    assert await memory.get(made.id, ANN) == made
    assert [each.fact.id for each in await memory.search("wifi", ANN)] == [made.id]


async def test_candidates_expire_and_others_do_not(store: SqliteStore, memory: Memory) -> None:
    keeping = Keeping(candidate_days=2)
    await store.change(add_fact(fact("likes tea", retention="candidate"), T0 - 3 * DAY_S, keeping))
    await store.change(add_fact(fact("likes jam", retention="candidate"), T0 - DAY_S, keeping))
    await store.change(
        [*add_fact(fact("likes egg", retention="candidate"), T0 - 3 * DAY_S, keeping), keep_fact(3)]
    )
    await store.change(
        add_fact(fact("likes ham", retention="candidate", pinned=True), T0 - 3 * DAY_S, keeping)
    )
    assert {each.text for each in await memory.list_facts(ANN)} == {
        "likes jam",
        "likes ham",
        "likes egg",
    }, "also before they are swept"
    assert {each.fact.text for each in await memory.search("likes", ANN)} == {
        "likes jam",
        "likes ham",
        "likes egg",
    }
    assert (await store.change([Change("fact_expire", (T0,))]))[0] >= 1
    swept = [
        each for each in await store.query("fact_get", ("[1,2,3,4]",)) if each[18] == "expired"
    ]
    assert [each[2] for each in swept] == ["likes tea"]


async def test_there_is_room_for_so_many(store: SqliteStore, memory: Memory) -> None:
    keeping = Keeping(most=3)
    for i in range(5):
        await store.change(add_fact(fact(f"fact {i}"), T0 + i, keeping))
    assert [each.text for each in await memory.list_facts(ANN)] == ["fact 2", "fact 1", "fact 0"]
    await store.change(add_fact(fact("bob's", owner="bob"), T0, keeping))
    assert len(await memory.list_facts(BOB)) == 1, "the room is each owner's own"
    await store.change(add_fact(fact("fact 9", replaces=(3,)), T0, keeping))
    assert [each.text for each in await memory.list_facts(ANN)] == ["fact 9", "fact 1", "fact 0"]
    await store.change([close_fact(1, T0, "forgotten")])
    await store.change(add_fact(fact("fact 10"), T0, keeping))
    assert [each.text for each in await memory.list_facts(ANN)] == ["fact 10", "fact 9", "fact 1"]


async def test_pinned_facts(store: SqliteStore, memory: Memory) -> None:
    made = await one(store, memory, fact("allergic to peanuts", retention="candidate"))
    assert memory.pinned(ANN) == []
    await store.change([pin_fact(made.id, True)])
    assert [each.id for each in memory.pinned(ANN)] == [made.id] and memory.pinned(
        BOB
    ) == memory.pinned(GROUP) == []
    assert memory.pinned(ANN)[0].expires_at is None
    assert [each.id for each in await memory.list_facts(ANN, only=Only(pinned=True))] == [made.id]
    await store.change([pin_fact(made.id, False)])
    assert memory.pinned(ANN) == []
    await store.change(add_fact(fact("obey", pinned=True, held=True, label=UNTRUSTED), T0))
    assert memory.pinned(ANN) == []


async def test_what_is_erased_is_gone_from_the_file(store: SqliteStore, memory: Memory) -> None:
    made = await one(store, memory, fact("the secret word is xylophonist"))
    await store.change(erase_fact(made.id))
    assert (
        await memory.list_facts(make_unrestricted_viewer()) == []
        and await memory.search("xylophonist", make_unrestricted_viewer()) == []
    )
    await store.close()
    assert (
        b"xylophonist" not in store.path.read_bytes().lower()
        and b"xylophon" not in store.path.read_bytes().lower()
    )


def test_a_fact_is_one_line_of_a_bounded_length() -> None:
    assert fit_fact_text(" a\n\n b\tc\0\ud800 ") == "a b c\N{REPLACEMENT CHARACTER}?"
    assert len(fit_fact_text("x" * 9_999)) == FACT_CHARS
    assert add_fact(fact(" \n"), T0) == ()


def test_a_global_fact_belongs_to_nobody() -> None:
    assert add_fact(fact("x", scope="global", owner="ann"), T0)[0].args[3] == ""


async def test_words_that_stand_in_every_sentence_find_nothing(
    store: SqliteStore, memory: Memory
) -> None:
    await store.change(add_fact(fact("what is the plan of the week", label=LOCAL), T0))
    assert await memory.search("what is the name of it?", ANN) == []
    assert await memory.search('"*( NEAR OR: -', ANN) == [] and await memory.search("", ANN) == []
    assert len(await memory.search("PLANS!", ANN)) == 1
