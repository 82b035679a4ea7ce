"""What surfaces look up: words, use and activity, of what somebody may see, whatever they type."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deskhand.store.read_queries import BATCH, make_excerpt, split_query
from deskhand.store.schema import connect
from deskhand.store.sql import load_sql
from deskhand.store.sqlite import SqliteStore
from deskhand.types.commit import Commit
from deskhand.types.events import (
    AnyEvent,
    CallClosed,
    HistoryMessage,
    MessageReceived,
    ModelReplied,
    QuestionAnswered,
    ToolFinished,
    TurnEnded,
)
from deskhand.types.identity import Address, Principal
from deskhand.types.messages import Message, Text, ToolCall, ToolResult, Usage

from ..examples import examples

ANN = Principal("ann", ("owner",))
BOB = Principal("bob")
EVE = Principal("eve")
ROOM = "main/web:bob:room"
DESK = "main/terminal:desk"
DAY = 86_400.0
USED = Usage(10, 5, 2, 1)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "deskhand.db")
    yield opened
    await opened.close()


def text(said: str) -> Message:
    return Message("user", (Text(said),))


def received(said: str, who: Principal = BOB) -> MessageReceived:
    return MessageReceived(1, who, Address("web"), text(said))


def replied(said: str, *calls: ToolCall, model: str = "p/m", usage: Usage = USED) -> ModelReplied:
    return ModelReplied(Message("assistant", (Text(said), *calls)), model, usage=usage)


async def write(store: SqliteStore, session: str, *events: AnyEvent, at: float = 10 * DAY) -> None:
    n = len(await store.events(session)) + 1
    await store.commit(Commit(session, n, at, events, close=True))


async def test_words_are_found_in_what_both_said(store: SqliteStore) -> None:
    await write(
        store,
        ROOM,
        received("Where is the Zürich invoice?"),
        replied("In taxes/2025."),
        TurnEnded("done"),
    )
    await write(store, ROOM, QuestionAnswered(2, "q", BOB, text("the blue one")))
    (first,) = await store.search(BOB, "zurich INVOI")
    assert (first.session, first.n, first.role, first.title) == (
        ROOM,
        1,
        "user",
        "Where is the Zürich invoice?",
    )
    assert [first.excerpt[a:b] for a, b in first.marks] == ["Zürich", "invoice"]
    (second,) = await store.search(BOB, "taxes")
    assert (second.n, second.role) == (2, "assistant")
    assert [hit.n for hit in await store.search(BOB, "blue")] == [4]
    assert not await store.search(BOB, "zurich taxes"), "all of the words, in one place"
    await write(store, ROOM, received("another invoice"))
    assert [hit.n for hit in await store.search(BOB, "invoice", limit=1)] == [5], (
        "what is new is found at once"
    )


async def test_nobody_finds_what_they_may_not_see(store: SqliteStore) -> None:
    await write(store, ROOM, received("secret of bob"), replied("a secret"))
    await write(store, DESK, received("secret of ann", ANN))
    assert {hit.session for hit in await store.search(ANN, "secret")} == {ROOM, DESK}
    assert {hit.session for hit in await store.search(BOB, "secret")} == {ROOM}
    assert (
        not await store.search(EVE, "secret")
        and not await store.usage(EVE)
        and not await store.activity(EVE)
    )
    assert [hit.n for hit in await store.search(ANN, "secret", session=DESK)] == [1]
    assert not await store.search(EVE, "secret", session=DESK)
    assert len(await store.search(ANN, "secret", limit=2)) == 2


HOSTILE = [
    "", " ",
    '"', "'", '"""', "*", "a*", "(", ")", "NEAR(a b)", "a AND", "NOT a", "words:a", "^a", "a -b", "{a b}:c", "--",  # noqa: E501
    "; DROP TABLE event", "\0", "\ud800", "a\0b", "😀", "💥" * 500, "%", "_", "\\", "a" * 1_000_000,
    '" ' * 500_000, "x " * 500_000, "a OR b", "+a", "col : a", "\u202e", "日本語", "ß", "İ", "a" + "\u0301" * 1000,  # noqa: E501
]  # fmt: skip


@pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
async def test_whatever_is_typed_is_words(store: SqliteStore, query: str) -> None:
    await write(store, ROOM, received("a b c words 日本語 straße"))
    hits = await store.search(BOB, query)
    assert len(hits) <= 1


@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.text(), st.text(max_size=300))
async def test_any_text_and_any_query(store: SqliteStore, said: str, query: str) -> None:
    await write(store, ROOM, received(said.encode("utf-8", "replace").decode()))
    for hit in await store.search(BOB, query):
        assert all(0 <= a < b <= len(hit.excerpt) for a, b in hit.marks)


@given(
    st.text(alphabet="abcé ß\n._-", max_size=400), st.text(alphabet="abcé", min_size=1, max_size=3)
)
def test_marks_lie_in_the_excerpt(said: str, word: str) -> None:
    piece, marks = make_excerpt(said, [word])
    assert len(piece) <= 242 and "\n" not in piece
    assert all(piece[a:b].strip("…") == piece[a:b] for a, b in marks)


def test_a_query_is_bounded() -> None:
    assert len(split_query("word " * 1000)) == 12 and split_query("foo_bar-baz") == [
        "foo",
        "bar",
        "baz",
    ]


async def test_what_is_erased_is_found_no_more(store: SqliteStore) -> None:
    word = "xylophonist"
    await write(store, ROOM, received(f"the {word}"), replied(f"which {word}?"))
    await write(store, DESK, received("kept", ANN))
    assert len(await store.search(ANN, word)) == 2
    await store.erase(ANN, ROOM, 11 * DAY)
    assert not await store.search(ANN, word) and [
        h.session for h in await store.search(ANN, "kept")
    ] == [DESK]
    db = apsw.Connection(str(store.path))
    db.execute("CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, said, row)")
    assert db.execute("SELECT term FROM temp.terms").fetchall() == [("kept",)], (
        "the index has forgotten the words too"
    )
    db.close()
    await store.close()
    assert word.encode() not in store.path.read_bytes()
    await SqliteStore(store.path).close()


async def test_what_is_looked_up_can_be_made_anew(store: SqliteStore) -> None:
    await write(store, ROOM, received("one"), replied("two"))
    await write(store, DESK, received("one", ANN), replied("three"))
    before = await store.search(ANN, "one"), await store.usage(ANN), await store.activity(ANN)
    await store.rebuild_projections()
    assert before == (
        await store.search(ANN, "one"),
        await store.usage(ANN),
        await store.activity(ANN),
    )


async def test_a_long_log_is_looked_up_in_parts(store: SqliteStore) -> None:
    await write(store, ROOM, *(received(f"number {i}") for i in range(2 * BATCH + 3)))
    assert len(await store.search(BOB, "number", limit=5000)) == 2 * BATCH + 3
    assert len(await store.search(BOB, f'"{2 * BATCH + 2}"')) == 1


async def test_a_plain_turn_does_no_looking_up(store: SqliteStore) -> None:
    """Its price would be some pages for each message."""
    await write(store, ROOM, received("one"), replied("two"))
    db = apsw.Connection(str(store.path), flags=apsw.SQLITE_OPEN_READONLY)
    assert db.execute("SELECT seq FROM looked_up").fetchall() == [(0,)]
    await store.search(BOB, "one")
    assert db.execute("SELECT seq FROM looked_up").fetchall() == [(2,)]
    db.close()


async def test_usage_by_session_model_and_day(store: SqliteStore) -> None:
    await write(store, ROOM, received("hi"), replied("a"), replied("b"), at=10 * DAY + 5)
    await write(store, ROOM, replied("c", model="p/big", usage=Usage(100, 50)), at=11 * DAY)
    await write(store, DESK, received("hi", ANN), replied("d"), at=12 * DAY - 1)
    rows = [
        (r.session, r.model, r.day // int(DAY), r.calls, r.input_tokens)
        for r in await store.usage(ANN)
    ]
    assert rows == [(DESK, "p/m", 11, 1, 10), (ROOM, "p/big", 11, 1, 100), (ROOM, "p/m", 10, 2, 20)]
    (first, second) = await store.usage(BOB)
    assert (
        second.output_tokens,
        second.cached_tokens,
        second.cache_write_tokens,
        second.title,
    ) == (10, 4, 2, "hi")
    assert [row.model for row in await store.usage(BOB, 11 * DAY + 3600)] == [
        "p/big"
    ] and first.model == "p/big"


async def test_the_last_calls_and_results(store: SqliteStore) -> None:
    shell = ToolCall("c1", "shell", msgspec.Raw(b'{"command":"ls"}'))
    look = ToolCall("c2", "look", msgspec.Raw(b"{}"))
    await write(store, ROOM, received("go"), replied("", shell, look))
    await write(
        store,
        ROOM,
        ToolFinished(ToolResult("c1", (Text("a.txt"),))),
        CallClosed("c2", "denied", "no"),
    )
    await write(store, ROOM, replied("words, no call"), TurnEnded("done"))
    found = [(a.kind, a.name, a.detail, a.status) for a in await store.activity(BOB)]
    assert found == [
        ("tool_result", "look", "no", "denied"),
        ("tool_result", "shell", "a.txt", "ok"),
        ("tool_call", "look", "{}", "ok"),
        ("tool_call", "shell", '{"command":"ls"}', "ok"),
    ]
    assert [a.name for a in await store.activity(BOB, 1)] == ["look"]


async def test_what_a_program_says_was_said_before_is_found_too(store: SqliteStore) -> None:
    asked = HistoryMessage(1, BOB, text("Where is the compass?"))
    answered = HistoryMessage(1, BOB, Message("assistant", (Text("In the drawer."),)))
    await write(store, ROOM, asked, answered, received("And the map?"), TurnEnded("done"))

    (question,) = await store.search(BOB, "compass")
    assert (question.n, question.role) == (1, "user")
    (answer,) = await store.search(BOB, "drawer")
    assert (answer.n, answer.role) == (2, "assistant")


async def test_a_page_is_read_from_an_index(tmp_path: Path) -> None:
    """The pages in the midst of many do not cost more than the first: nothing is sorted, and
    nothing read through."""
    store = SqliteStore(tmp_path / "s.db")
    sql = load_sql("deskhand.store", "queries.sql")
    asked = {
        "session_of": (1, "", 1.0, "", False, "", False, 9),
        "session_titled": (1, "", 1.0, "", "%a%", 9),
        "event_latest": ('["undone"]', 1, "", 9, 9),
        "event_amends": ("s", 1, 9),
        "event_read": ("s", 1, 9),
    }
    read = connect(tmp_path / "s.db", write=False)
    plans = {
        name: " ".join(str(row[3]) for row in read.execute(f"EXPLAIN QUERY PLAN {sql[name]}", args))
        for name, args in asked.items()
    }
    read.close()
    await store.close()
    assert not any("TEMP B-TREE" in plan for plan in plans.values()), plans
    assert "session_latest" in plans["session_of"] and "session_latest" in plans["session_titled"]
    assert "PRIMARY KEY (rowid<?)" in plans["event_latest"]
    assert "event_amends (session=? AND n>?)" in plans["event_amends"]
