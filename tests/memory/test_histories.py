"""Whatever people, pages and agents do in whatever order: what is one person's own stays with them,
what was looked up is not saved as new, what is held is told nobody, and what is told has an end."""

from __future__ import annotations

import tempfile
from pathlib import Path

import anyio
import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from deskhand.config.statements import load_statements
from deskhand.memory.facts import (
    close_fact,
    make_unrestricted_viewer,
    promote_fact,
    undo_last_change,
)
from deskhand.memory.recall import Only
from deskhand.memory.rendering import PINNED_CHARS, RECALLED_CHARS
from deskhand.memory.words import normalize_text
from deskhand.store.sqlite import SqliteStore
from deskhand.types.labels import OWNER, Label

from ..examples import examples
from .talking import House, Talk

PAGE = Label("untrusted", source="https://evil.test/")
PLACES = [("ann",), ("bob",), ("bob", "ann"), ("ann", "bob"), ("ann", "group"), ("bob", "group")]
WORDS = "garage dentist falcon printer"
MOST = 6

Step = tuple[str, int, int, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "save",
                "save",
                "save",
                "tainted",
                "echo",
                "widen",
                "forget",
                "promote",
                "undo",
                "replace",
            ]
        ),
        st.integers(0, len(PLACES) - 1),
        st.integers(0, 7),
        st.integers(0, 3),
    ),
    max_size=25,
)


class History:
    """What was done, and to whom each secret belongs: every text has a word that stands in no
    other."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.count = 0
        self.owner = dict[str, str]()
        self.planted = set[str]()

    def talk(self, place: int) -> Talk:
        people = PLACES[place]
        if "group" in people:
            return Talk(self.house, people[0], group=True)
        return Talk(self.house, *people)

    async def do(self, step: Step) -> None:
        what, place, number, choice = step
        talk = self.talk(place)
        facts = await self.house.memory.list_facts(make_unrestricted_viewer(), limit=1_000)
        fact = facts[number % len(facts)] if facts else None
        scope = ("user", "user", "agent", "global")[choice]
        if what in ("save", "tainted"):
            self.count += 1
            mark = f"secret{self.count}x{place}"
            talk.label = PAGE if what == "tainted" else OWNER
            said = await talk(
                "save_memory", content=f"{WORDS} {mark}", scope=scope, pinned=number % 2 == 0
            )
            if "remembered" in said or "kept for review" in said:
                self.owner[mark] = talk.principal.id if scope == "user" else "*"
                self.planted |= (
                    {mark} if what == "tainted" or (scope != "user" and place % 2) else set()
                )
        elif what in ("echo", "widen"):
            _, text, _ = await talk.recall(WORDS)
            lines = [
                line.partition(") ")[2] for line in text.splitlines() if line.startswith("- #")
            ]
            for line in lines:
                words = line.upper() if number % 2 else f"{line}."
                await talk(
                    "save_memory", content=words, scope=scope if what == "echo" else "global"
                )
        elif fact is None:
            return
        elif what == "forget":
            await talk("forget_memory", memory_id=fact.id)
        elif what == "replace":
            self.count += 1
            mark = f"secret{self.count}x{place}"
            said = await talk(
                "save_memory", content=f"{WORDS} {mark}", scope=fact.scope, replaces=fact.id
            )
            if "remembered" in said or "kept for review" in said:
                self.owner[mark] = fact.owner if fact.scope == "user" else "*"
        else:  # the owner, at the command line
            now = self.house.clock.now()
            rows = promote_fact(fact, now)
            if what == "undo":
                rows = undo_last_change(fact, now, successor=None)
            if number % 3 == 0 and what == "promote":
                self.planted.discard(fact.text.rpartition(" ")[2])
            await self.house.store.change(
                rows if number % 3 == 0 else [close_fact(fact.id, now, "forgotten")]
            )

    async def check(self) -> None:
        facts = await self.house.memory.list_facts(make_unrestricted_viewer(), limit=1_000)
        held = await self.house.memory.list_facts(
            make_unrestricted_viewer(), limit=1_000, only=Only(held=True)
        )
        for place in range(len(PLACES)):
            talk = self.talk(place)
            ids, text, label = await talk.recall(WORDS, 50)
            told = f"{talk.pinned()}\n{text}\n{await talk('list_memories')}\n{await talk('search_memories', query=WORDS)}"  # noqa: E501
            mine = PLACES[place][0] if len(PLACES[place]) == 1 else ""
            for mark, owner in self.owner.items():
                assert owner in ("*", mine) or f"{mark}\n" not in f"{told}\n".lower(), (
                    mark,
                    owner,
                    place,
                )
            assert not {*ids} & {fact.id for fact in held}
            for fact in held:
                assert not any(f"#{fact.id} " in line for line in told.splitlines())
            assert label is None or label.integrity != "owner"
            assert len(text) <= RECALLED_CHARS + 300 and len(talk.pinned()) <= PINNED_CHARS + 100
        active = [fact for fact in facts if not fact.held]
        assert not self.planted & {fact.text.rpartition(" ")[2] for fact in active}, (
            "a person said yes to none of these"
        )
        said = [(fact.scope, fact.owner, normalize_text(fact.text)) for fact in active]
        assert len(said) == len({*said}), "nobody has the same twice"
        words = [normalize_text(fact.text) for fact in active]
        assert len(words) == len({*words}), "what was looked up is not saved as new elsewhere"
        for each in {(fact.scope, fact.owner) for fact in facts}:
            assert sum((fact.scope, fact.owner) == each for fact in facts) <= MOST + 4, (
                "put back by hand, at most"
            )


async def run(steps: list[Step], folder: Path) -> None:
    store = SqliteStore(folder / "deskhand.db", load_statements())
    try:
        history = History(House(store, most=MOST))
        for step in steps:
            await history.do(step)
        await history.check()
    finally:
        await store.close()


@settings(max_examples=examples(60), deadline=None)
@given(STEPS)
def test_random_histories(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(run, steps, Path(folder))


CITIES = ("Oslo", "Rome", "Porto")
MOVES = st.lists(
    st.tuples(
        st.sampled_from(["ann", "bob"]),
        st.sampled_from(["move", "move", "like", "undo", "forget"]),
        st.integers(0, 9),
    ),
    max_size=20,
)


async def moves(steps: list[tuple[str, str, int]], folder: Path) -> None:
    store = SqliteStore(folder / "deskhand.db", load_statements())
    try:
        house = House(store)
        lives = dict[str, list[str]](ann=[], bob=[])
        likes = dict[str, set[str]](ann=set(), bob=set())
        for who, what, number in steps:
            talk = Talk(house, who)
            city = CITIES[number % len(CITIES)]
            mine = [
                fact
                for fact in await house.memory.list_facts(talk.viewer, "user", 100)
                if fact.owner == who
            ]
            home = next((fact for fact in mine if fact.text.startswith("lives in")), None)
            if what == "move":
                await talk("save_memory", content=f"lives in {city}")
                if lives[who][-1:] != [city]:
                    lives[who].append(city)
            elif what == "like":
                await talk("save_memory", content=f"likes {city}")
                likes[who].add(f"likes {city}")
            elif home is not None and what == "undo":
                await store.change(undo_last_change(home, house.clock.now(), successor=None))
                lives[who].pop()
            elif home is not None and what == "forget":
                await talk("forget_memory", memory_id=home.id)
                lives[who].clear()
            known = {
                person: {
                    fact.text
                    for fact in await house.memory.list_facts(
                        make_unrestricted_viewer(), limit=1_000
                    )
                    if fact.owner == person
                }
                for person in lives
            }
            for person, homes in lives.items():
                assert known[person] == likes[person] | {
                    f"lives in {home}" for home in homes[-1:]
                }, (person, steps)
    finally:
        await store.close()


@settings(max_examples=examples(60), deadline=None)
@given(MOVES)
def test_of_what_there_is_one_of_only_the_last_holds(steps: list[tuple[str, str, int]]) -> None:
    """And an undo brings back the one before."""
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(moves, steps, Path(folder))


async def test_the_property_can_fail(store: SqliteStore) -> None:
    """A fact whose owner is written down wrongly is seen by the check."""
    history = History(House(store))
    await history.do(("save", 0, 0, 0))
    (mark,) = history.owner
    history.owner[mark] = "bob"
    try:
        await history.check()
    except AssertionError as error:
        assert mark in msgspec.json.encode(str(error)).decode()
    else:
        raise AssertionError("the check sees nothing")
