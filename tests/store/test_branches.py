"""The family of a session: who sees which of it, in SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest

from deskhand.store.branches import READ_CHARS, BranchRow, family_of
from deskhand.store.postgres import PostgresStore
from deskhand.store.postgres_connection import connect
from deskhand.store.postgres_schema import load_migrations, migrate
from deskhand.store.sql_store import SqlStore
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.store_suite import ANN, BOB, OWNER, T0, received
from deskhand.types.commit import Commit
from deskhand.types.events import (
    AnyEvent,
    Branched,
    Compacted,
    Ledger,
    OptionsSet,
    TurnEnded,
    Undone,
    encode_event,
    event_kind,
)
from deskhand.types.identity import Principal
from deskhand.types.options import SessionOptions

ROOT = "agent/root"


@pytest.fixture(params=["sqlite", "postgresql"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SqlStore]:
    opened: SqlStore = (
        SqliteStore(tmp_path / "deskhand.db")
        if request.param == "sqlite"
        else PostgresStore(request.getfixturevalue("url"))
    )
    yield opened
    await opened.close()


async def write(store: SqlStore, session: str, *events: AnyEvent, at: float = T0) -> None:
    n = len(await store.events(session)) + 1
    await store.commit(Commit(session, n, at, events, close=True))


async def say(store: SqlStore, session: str, text: str, who: Principal = ANN) -> None:
    """A turn: two events."""
    await write(store, session, received(1, text, who), TurnEnded("done"))


async def branch(
    store: SqlStore, of: str, at_n: int, session: str, who: Principal = ANN, at: float = T0
) -> None:
    begun = Branched(of, at_n, who, f"title of {session}")
    await write(store, session, begun, Compacted((), "", 0, Ledger()), at=at)


async def names(store: SqlStore, who: Principal, session: str, limit: int = 99) -> list[str]:
    """`session < origin @ event` of each."""
    found = await family_of(store, who, session, limit)
    return [f"{each.session} < {each.origin} @ {each.from_n}" for each in found]


async def test_each_stands_below_where_it_came_from(store: SqlStore) -> None:
    for words in ("first", "second", "third"):
        await say(store, ROOT, words)
    await branch(store, ROOT, 4, "agent/b", at=T0 + 5)
    long = "and  now\nthis " + "x" * 3_000
    await say(store, "agent/b", long)
    await branch(store, "agent/b", 4, "agent/c", at=T0 + 6)
    await branch(store, ROOT, 2, "agent/a", at=T0 + 7)
    await branch(store, ROOT, 0, "agent/0", at=T0 + 8)
    await say(store, "agent/other", "of no family")
    await write(store, "agent/c", OptionsSet(1, ANN, SessionOptions(archived=True)))
    family = await family_of(store, ANN, ROOT, 99)
    assert [each.session for each in family] == [ROOT, "agent/0", "agent/a", "agent/b", "agent/c"]
    assert family[-2:] == [
        BranchRow(
            session="agent/b",
            title="title of agent/b",
            origin=ROOT,
            from_n=4,
            turn=2,
            after="second",
            words=long[:READ_CHARS],
            last_at=T0,
            archived=False,
        ),
        BranchRow(
            session="agent/c",
            title="title of agent/c",
            origin="agent/b",
            from_n=4,
            turn=3,
            after=long[:READ_CHARS],
            words="",
            last_at=T0 + 6,
            archived=True,
        ),
    ]
    assert (family[0].origin, family[0].from_n, family[0].after) == ("", 0, "")
    assert (family[1].turn, family[1].after) == (0, "")
    for each in family:
        same = await family_of(store, ANN, each.session, 99)
        assert sorted(same, key=repr) == sorted(family, key=repr)
    assert await names(store, ANN, "agent/other") == ["agent/other <  @ 0"]
    assert await names(store, ANN, "agent/nobody") == []


async def test_what_was_taken_back_is_not_told(store: SqlStore) -> None:
    await say(store, ROOT, "first")
    await say(store, ROOT, "taken back")
    await write(store, ROOT, Undone(1, ANN, 2), Compacted((), "", 0, Ledger()))
    await branch(store, ROOT, 6, "agent/b")
    await branch(store, ROOT, 4, "agent/a")
    await say(store, "agent/b", "wrong")
    await write(store, "agent/b", Undone(1, ANN, 2), Compacted((), "", 0, Ledger()))
    await say(store, "agent/b", "right")
    told = {each.session: (each.after, each.words) for each in await family_of(store, ANN, ROOT, 9)}
    assert told == {
        ROOT: ("", "first"),
        "agent/a": ("taken back", ""),
        "agent/b": ("first", "right"),
    }


async def test_nobody_is_told_of_anothers(store: SqlStore) -> None:
    """Bob branches from what he and Ann wrote, Ann from what he did, and so on."""
    await say(store, ROOT, "ours")
    await say(store, ROOT, "ours too", BOB)
    await branch(store, ROOT, 4, "agent/bobs", BOB)
    await say(store, "agent/bobs", "Bob's own", BOB)
    await branch(store, "agent/bobs", 4, "agent/joined", BOB)
    await say(store, "agent/joined", "Ann is in this", ANN)
    await branch(store, "agent/joined", 4, "agent/anns", ANN)
    assert await names(store, ANN, "agent/anns") == [
        f"{ROOT} <  @ 0",
        f"agent/joined < {ROOT} @ 4",
        "agent/anns < agent/joined @ 4",
    ]
    shown = (await family_of(store, ANN, ROOT, 9))[1]
    assert (shown.after, shown.turn) == ("ours too", 2), "and not what Bob said in between"
    assert await names(store, BOB, ROOT) == [
        f"{ROOT} <  @ 0",
        f"agent/bobs < {ROOT} @ 4",
        "agent/joined < agent/bobs @ 4",
    ]
    assert len(await names(store, OWNER, ROOT)) == 4
    assert await names(store, Principal("eve"), ROOT) == []


async def test_branches_of_what_is_not_theirs_are_roots(store: SqlStore) -> None:
    await say(store, ROOT, "Bob's", BOB)
    for name in ("agent/a", "agent/b"):
        await branch(store, ROOT, 2, name, BOB)
        await say(store, name, "Ann's", ANN)
    assert await names(store, ANN, "agent/b") == ["agent/b <  @ 0", "agent/a <  @ 0"]
    found = await family_of(store, ANN, "agent/a", 9)
    assert [(each.turn, each.after, each.words) for each in found] == [(0, "", "Ann's")] * 2


async def test_what_is_erased_is_gone_from_its_family(store: SqlStore) -> None:
    await say(store, ROOT, "first")
    await branch(store, ROOT, 2, "agent/a")
    await branch(store, "agent/a", 2, "agent/b")
    await branch(store, ROOT, 2, "agent/c")
    await store.erase(OWNER, "agent/a", T0)
    assert await names(store, ANN, ROOT) == [f"{ROOT} <  @ 0", f"agent/c < {ROOT} @ 2"]
    assert await names(store, ANN, "agent/b") == ["agent/b <  @ 0"]
    await store.erase(OWNER, ROOT, T0)
    assert await names(store, ANN, "agent/c") == ["agent/c <  @ 0"]
    await store.rebuild_projections()
    assert await names(store, ANN, "agent/b") == ["agent/b <  @ 0"]
    assert await names(store, ANN, "agent/c") == ["agent/c <  @ 0"]


async def test_a_limit_leaves_in_what_leads_to_the_session(store: SqlStore) -> None:
    await say(store, ROOT, "first")
    for i in range(20):
        await branch(store, ROOT, 2, f"agent/{i:02}")
    await branch(store, "agent/15", 2, "agent/deep")
    assert await names(store, ANN, "agent/deep", 4) == [
        f"{ROOT} <  @ 0",
        f"agent/15 < {ROOT} @ 2",
        "agent/deep < agent/15 @ 2",
        f"agent/00 < {ROOT} @ 2",
    ]


async def test_the_log_alone_tells_it_again(store: SqlStore) -> None:
    await say(store, ROOT, "first")
    await branch(store, ROOT, 2, "agent/a")
    await branch(store, "agent/a", 2, "agent/b")
    before = await family_of(store, ANN, ROOT, 9)
    await store.rebuild_projections()
    assert await family_of(store, ANN, ROOT, 9) == before and len(before) == 3


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
async def test_it_is_found_among_ten_thousand(store: SqlStore) -> None:
    """By indexes alone, whatever else there is."""

    def fill(db: apsw.Connection) -> None:
        db.execute(
            """
            WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i WHERE i < 10000)
            INSERT INTO session(session, agent, channel, chat, title, opened_at, last_at)
            SELECT 'agent/x' || i, 'agent', 'web', 'x', 't', 1.0, 1.0 FROM i
            """
        ).fetchall()
        db.execute(
            "INSERT INTO branch SELECT session, 'agent/of' || session, 1, 1 FROM session "
            "WHERE session > 'agent/x5'"
        ).fetchall()

    await store._writer.run(fill)  # type: ignore[arg-type]
    await say(store, ROOT, "first")
    await branch(store, ROOT, 2, "agent/a")
    assert len(await family_of(store, ANN, "agent/a", 200)) == 2
    plan = store._fetch_all(
        f"EXPLAIN QUERY PLAN {store._sql['branch_family']}", ("agent/a", 0, "ann", 200)
    )
    steps = [str(detail) for *_, detail in plan]
    scanned = [step for step in steps if step.startswith("SCAN")]
    assert {step.split()[1] for step in scanned} <= {"above", "below", "family", "CONSTANT"}, steps
    assert not [step for step in steps if "AUTOMATIC" in step], steps


async def test_old_branches_are_read_from_the_log(tmp_path: Path) -> None:
    """Those that began before the table was there; what was erased says nothing any more."""
    path = tmp_path / "deskhand.db"
    golden = Path(__file__).parent / "golden" / "schema_23.sql"
    origin = "default/terminal:golden"
    db = apsw.Connection(str(path))
    db.execute(golden.read_text()).fetchall()
    insert = (
        "INSERT INTO event(session, n, at, kind, body, hash) VALUES(?, 1, 1.0, 'branched', ?, x'')"
    )
    db.execute(insert, ("default/web:ann:b", encode_event(Branched(origin, 9, ANN)))).fetchall()
    db.execute(insert, ("default/web:ann:gone", None)).fetchall()
    ((turns,),) = db.execute(
        "SELECT count(*) FROM event WHERE session = ? AND n <= 9 AND kind = 'turn_ended'", (origin,)
    ).fetchall()
    db.close()
    store = SqliteStore(path)
    rows = store._fetch_all("SELECT * FROM branch")
    await store.close()
    assert rows == [("default/web:ann:b", origin, 9, turns)] and turns == 1


async def test_old_branches_are_read_from_the_log_of_postgresql(url: str) -> None:
    insert = (
        "INSERT INTO event(session, n, at, kind, body, hash) VALUES($1, $2, 1.0, $3, $4, '\\x00')"
    )
    with connect(url) as db:
        migrate(db, url, [known for known in load_migrations() if known[0] < 24])
        for n, event in enumerate((received(1), TurnEnded("done"), TurnEnded("done")), 1):
            db.execute(insert, (ROOT, n, event_kind(event), encode_event(event)))
        db.execute(insert, ("agent/b", 1, "branched", encode_event(Branched(ROOT, 2, ANN))))
        db.execute(insert, ("agent/gone", 1, "branched", None))
    store = PostgresStore(url)
    rows = store._fetch_all("SELECT * FROM branch")
    await store.close()
    assert rows == [("agent/b", ROOT, 2, 1)]
