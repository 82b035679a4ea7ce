"""The SQLite store passes the suite; and what only a store in one file must do."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskhand.store.schema import connect
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.store_suite import (
    ANN,
    BOB,
    CASES,
    OWNER,
    PLACE,
    T0,
    Case,
    S,
    commit,
    inbound,
    received,
)
from deskhand.types.commit import Commit, Outgoing
from deskhand.types.errors import StoreCorrupt
from deskhand.types.events import AnyEvent, Hinted, MessageReceived, TurnEnded
from deskhand.types.messages import Image, Message, Text, clean_text

from ..examples import examples


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
async def test_conformance(case: Case, tmp_path: Path) -> None:
    await case(lambda: SqliteStore(tmp_path / "deskhand.db"))
    store = SqliteStore(tmp_path / "deskhand.db")
    assert not (await store.audit())[1] and not store.check_integrity()
    await store.close()


async def test_erased_words_leave_the_files(tmp_path: Path) -> None:
    """Long ones on pages of their own, short ones between others, and the copies in inbox, outbox,
    list and log."""
    path = tmp_path / "deskhand.db"
    secret = "Xyzzy-1729"
    store = SqliteStore(path)
    for i in range(40):
        text = f"{secret} {i} " * (400 if i % 5 == 0 else 1)
        for session, words in ((S, text), ("agent/kept", f"kept {i}")):
            row = await store.accept(inbound(f"{session}{i}", words), ANN, session)
            said = Outgoing(f"{session}{i}", PLACE, (Text(words),))
            await store.commit(
                Commit(
                    session,
                    i + 1,
                    T0,
                    (received(row.inbox_id, words),),
                    (row.inbox_id,),
                    (said,),
                    close=True,
                )
            )
    await store.accept(inbound("waits", secret), ANN, S)
    assert any(secret.encode() in file.read_bytes() for file in tmp_path.iterdir())
    assert await store.erase(ANN, S, T0) == 40
    for file in tmp_path.iterdir():
        assert secret.encode() not in file.read_bytes(), file.name
    assert not (await store.audit())[1] and not store.check_integrity()
    assert len(await store.events("agent/kept")) == 40
    await store.close()


blob = st.sampled_from(["ab", "cd"]).map(lambda byte: Image("sha256:" + byte * 32, "image/png"))
sessions = st.sampled_from(["agent/a", "agent/b", "other/c"])
step = st.tuples(
    sessions,
    st.sampled_from(["received", "ended", "hinted", "erase"]),
    st.sampled_from([ANN, BOB]),
    st.text(max_size=100),
    st.lists(blob, max_size=2),
)


@settings(max_examples=examples(15), deadline=None)
@given(st.lists(step, max_size=25))
def test_rebuilt_projections_equal_the_live_ones(steps: list[Any]) -> None:
    async def live() -> None:
        with TemporaryDirectory() as folder:
            store = SqliteStore(Path(folder) / "deskhand.db")
            for i, (session, what, who, text, blobs) in enumerate(steps):
                n = len(await store.events(session)) + 1
                message = Message("user", (Text(clean_text(text)), *blobs))
                if what == "erase":
                    await store.erase(OWNER, session, T0 + i)
                    continue
                events: dict[str, AnyEvent] = {
                    "received": MessageReceived(i, who, PLACE, message),
                    "ended": TurnEnded("done", (), clean_text(text)),
                    "hinted": Hinted("loop", clean_text(text)),
                }
                await store.commit(Commit(session, n, T0 + i, (events[what],)))
            before = projections(store)
            await store.rebuild_projections()
            assert projections(store) == before
            assert not (await store.audit())[1]
            await store.close()

    anyio.run(live)


def projections(store: SqliteStore) -> list[list[Any]]:
    return [
        store._fetch_all(f"SELECT * FROM {name} ORDER BY 1, 2")
        for name in ("session", "session_member", "blob_use")
    ]


async def test_heads_anchor_the_log(tmp_path: Path) -> None:
    """Somebody with a database tool changes, deletes, swaps or cuts; the audit names the first bad
    row."""
    path = tmp_path / "deskhand.db"
    store = SqliteStore(path)
    for session in ("a", "b"):
        for n in range(1, 6):
            await store.commit(commit(n, received(n, f"text {n}"), session=session))
    anchors = {session: {n: head} for session, (n, head) in (await store.heads()).items()}
    assert {session: list(noted) for session, noted in anchors.items()} == {"a": [5], "b": [5]}
    assert await store.audit(anchors) == (10, [])
    await store.close()
    move = "UPDATE event SET n = {} WHERE session = 'b' AND n = {};".format
    forged = "replace(CAST(body AS TEXT), 'text 3', 'text 4')"
    attacks = {
        f"UPDATE event SET body = CAST({forged} AS BLOB) WHERE session = 'a' AND n = 3": ("a", 3),
        "UPDATE event SET at = at + 1 WHERE session = 'b' AND n = 1": ("b", 1),
        "DELETE FROM event WHERE session = 'a' AND n = 4": ("a", 4),
        move(-2, 2) + move(2, 3) + move(3, -2): ("b", 2),
        "DELETE FROM event WHERE session = 'b' AND n > 3": ("b", 5),
        "DELETE FROM event WHERE session = 'a'": ("a", 5),
        "UPDATE event SET body = NULL, salt = NULL WHERE session = 'a' AND n = 2": ("a", 2),
    }
    whole = path.read_bytes()
    for attack, bad in attacks.items():
        path.write_bytes(whole)
        db = connect(path, write=True)
        db.execute(attack).fetchall()
        db.close()
        store = SqliteStore(path)
        assert [(found.session, found.n) for found in (await store.audit(anchors))[1]] == [bad], (
            attack
        )
        await store.close()


async def test_one_unreadable_row_harms_only_its_session(tmp_path: Path) -> None:
    path = tmp_path / "deskhand.db"
    store = SqliteStore(path)
    for session in ("a", "b"):
        await store.commit(commit(1, received(1), session=session))
    await store.close()
    db = connect(path, write=True)
    db.execute("UPDATE event SET body = substr(body, 1, 40) WHERE session = 'a'").fetchall()
    db.close()
    store = SqliteStore(path)
    with pytest.raises(StoreCorrupt, match="damaged"):
        await store.history("a")
    assert len(await store.history("b")) == 1
    await store.close()
