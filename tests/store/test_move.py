"""A home is carried to PostgreSQL and back, and is the same afterwards."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import apsw
import psycopg
import pytest

from deskhand.config.statements import load_statements
from deskhand.memory import queries
from deskhand.runtime.app import OWNER
from deskhand.store.base import Row
from deskhand.store.move import WHOLE, MoveSide, move, verify
from deskhand.store.move_sides import PostgresSide, SqliteSide
from deskhand.store.postgres import PostgresStore
from deskhand.testing.store_suite import ANN, commit, inbound, received
from deskhand.types.commit import Change
from deskhand.types.errors import StoreError

HOME = Path(__file__).parent / "golden" / "schema_26.sql"
MORE = Path(__file__).parent / "every_table.sql"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A database with rows in every table."""
    path = tmp_path / "deskhand.db"
    db = apsw.Connection(str(path))
    for script in (HOME.read_text(), MORE.read_text()):
        db.execute(script).fetchall()
    db.close()
    return path


def rows_of(side: MoveSide, table: str) -> list[Row]:
    columns = [name for name in side.columns(table) if (table, name) != ("job_boot", "id")]
    names = ", ".join(f'"{name}"' for name in sorted(columns))
    rows = side.read(f'SELECT {names} FROM "{table}"')
    return sorted((tuple(map(_plain, row)) for row in rows), key=repr)


def _plain(value: object) -> object:
    """Flags are booleans in PostgreSQL, where text has no NUL characters."""
    if isinstance(value, bool):
        return int(value)
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value


def contents(side: MoveSide) -> dict[str, list[Row]]:
    return {table: rows_of(side, table) for table in ("event", *WHOLE)}


async def test_there_and_back_again(home: Path, url: str, tmp_path: Path) -> None:
    """Every row of every table, and the numbers that are given next; words are found."""
    before = SqliteSide(home)
    there = PostgresSide(url)
    back = SqliteSide(tmp_path / "back.db")
    original = contents(before)
    assert [table for table, rows in original.items() if not rows] == []
    events = move(before, there)
    assert await verify(before.store, there.store) == events == 12
    assert contents(there) == original
    assert move(there, back) == events
    assert await verify(there.store, back.store) == events
    assert contents(back) == original
    assert before.numbers() == back.numbers()
    for side in (there, back):
        hits = await side.store.search(OWNER, "picture")
        assert [(hit.session, hit.n) for hit in hits] == [("default/terminal:golden", 4)]
    for each in (before, there, back):
        await each.close()

    found = PostgresStore(url, load_statements("postgresql"))
    facts = queries.search_words(found, '"drink"', owners=None, now=2.0, held=False, limit=9)
    assert [fact.text for fact in facts] == ["Ann drinks tea"]
    await found.close()


async def test_a_move_that_stopped_goes_on(home: Path, url: str) -> None:
    """Stopped after each table in turn; the old database is as it was."""
    first = SqliteSide(home)
    original = contents(first)
    await first.close()

    class Stop(Exception):
        pass

    for last in ("event", *WHOLE):

        def stop(table: str, rows: int, last: str = last) -> None:
            if table == last:
                raise Stop

        source = SqliteSide(home)
        target = PostgresSide(url)
        with suppress(Stop):
            move(source, target, stop)
        await source.close()
        await target.close()
    source = SqliteSide(home)
    target = PostgresSide(url)
    assert move(source, target) == 12
    assert contents(target) == contents(source) == original
    await source.close()
    await target.close()


async def test_what_has_changed_since_is_carried_too(home: Path, url: str) -> None:
    """An old copy is taken up again: what was sent meanwhile is not sent once more, and what was
    erased is erased there."""
    source = SqliteSide(home)
    target = PostgresSide(url)
    move(source, target)
    store = source.store
    await store.accept(inbound("new"), ANN, "default/terminal:golden")
    await store.erase(OWNER, "default/terminal:golden", 9.0)
    await store._writer.run(lambda db: db.execute("UPDATE outbox SET state = 'sent'").fetchall())
    await store._writer.run(lambda db: db.execute("UPDATE inbox SET n = 1").fetchall())
    changed = contents(source)
    assert changed != contents(target)
    move(source, target)
    assert await verify(store, target.store) == 13
    assert contents(target) == changed
    await source.close()
    await target.close()


@pytest.mark.parametrize("rows", ["conversation", "value"])
async def test_what_another_home_uses_is_left_alone(home: Path, url: str, rows: str) -> None:
    used = PostgresStore(url, load_statements("postgresql"))
    if rows == "conversation":
        await used.commit(commit(1, received(1)))
    else:
        await used.change([Change("value_set", ("a", "n", "k", "v", None, None))])
    await used.close()
    source = SqliteSide(home)
    target = PostgresSide(url)
    before = contents(target)
    with pytest.raises(StoreError, match="already holds something else"):
        move(source, target)
    assert contents(target) == before
    await source.close()
    await target.close()


async def test_a_change_on_the_way_is_found(home: Path, url: str) -> None:
    source = SqliteSide(home)
    target = PostgresSide(url)
    move(source, target)
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("UPDATE event SET body = 'x' WHERE seq = 5")
    with pytest.raises(StoreError):
        await verify(source.store, target.store)
    await source.close()
    await target.close()
