"""Whoever changes the log is found out, and the first changed row is named."""

from __future__ import annotations

import copy
from hashlib import sha256
from typing import Any

import pytest

from deskhand.store.chain import INITIAL_HASH, Break, Link, content_digest, next_hash, verify_chain


def link(head: bytes, session: str, n: int) -> Link:
    body = f'{{"text":"{session} {n}"}}'.encode()
    salt = bytes([n]) * 16
    at = 1_700_000_000.5 + n
    return Link(
        session,
        n,
        at,
        "hinted",
        body,
        salt,
        None,
        next_hash(head, (session, n, at, "hinted"), content_digest(salt, body)),
    )


def log() -> list[Link]:
    """Two sessions of six events."""
    links: list[Link] = []
    for session in ("a", "b"):
        head = INITIAL_HASH
        for n in range(1, 7):
            links.append(link(head, session, n))
            head = links[-1].hash
    return links


def test_hash_is_what_the_design_says() -> None:
    first = log()[0]
    assert first.body is not None and first.salt is not None
    inner = sha256(first.salt + first.body).digest()
    assert (
        first.hash == sha256(bytes(32) + b"a\x001\x001700000001.5\x00hinted\x00" + inner).digest()
    )
    assert next_hash(INITIAL_HASH, ("a", 1, 3, "k"), b"") == next_hash(
        INITIAL_HASH, ("a", 1, 3.0, "k"), b""
    ), "SQLite gives floats back"


def test_true_log_holds() -> None:
    links = log()
    heads = {
        "a": {6: links[5].hash},
        "b": {4: links[9].hash},
    }  # an anchor may be older than the log
    assert verify_chain(links) == [] == verify_chain(links, heads)
    assert verify_chain([]) == []


@pytest.mark.parametrize(
    "field",
    [
        {"body": b"{}"},
        {"salt": b"x"},
        {"at": 5.0},
        {"kind": "masked"},
        {"hash": b"x" * 32},
        {"n": 9},
    ],
    ids=str,
)
def test_one_changed_field_is_found(field: dict[str, Any]) -> None:
    for i in range(12):
        links = log()
        links[i] = links[i]._replace(**field)
        (found,) = verify_chain(links)
        assert (found.session, found.n) == ("ab"[i // 6], i % 6 + 1)


def test_every_byte_counts() -> None:
    body = log()[2].body
    assert body is not None
    for position in range(len(body)):
        links = log()
        links[2] = links[2]._replace(
            body=body[:position] + bytes([body[position] ^ 1]) + body[position + 1 :]
        )
        assert [(found.session, found.n) for found in verify_chain(links)] == [("a", 3)]


def test_missing_swapped_and_moved_rows_are_found() -> None:
    gone = log()
    del gone[3]
    assert verify_chain(gone) == [Break("a", 4, "event 4 is missing")]
    swapped = log()
    one = swapped[1]
    two = swapped[2]
    swapped[1], swapped[2] = two._replace(n=2), one._replace(n=3)
    assert [(found.session, found.n) for found in verify_chain(swapped)] == [("a", 2)]
    moved = log()
    moved[7] = moved[1]._replace(session="b")
    assert [(found.session, found.n) for found in verify_chain(moved)] == [("b", 2)]


def test_cut_tail_is_found_with_the_anchor() -> None:
    links = log()
    heads = {"a": {6: links[5].hash}, "b": {4: links[9].hash, 6: links[11].hash}}
    assert verify_chain(links[:10]) == [], "without an anchor nobody can know"
    assert [(found.session, found.n) for found in verify_chain(links[:10], heads)] == [("b", 6)]
    assert [(found.session, found.n) for found in verify_chain(links[:6], heads)] == [("b", 4)]
    assert [(found.session, found.n) for found in verify_chain([], heads)] == [("a", 6), ("b", 4)]


def test_rewritten_log_is_found_with_the_anchor() -> None:
    links = log()
    anchors = {"a": {4: links[3].hash}}
    forged = copy.copy(links[:1])
    head = links[0].hash
    for old in links[1:6]:
        body = b'{"text":"forged"}'
        salt = bytes(16)
        digest = content_digest(salt, body)
        head = next_hash(head, ("a", old.n, old.at, old.kind), digest)
        forged.append(old._replace(body=body, salt=salt, hash=head))
    assert verify_chain(forged) == []
    assert [(found.session, found.n) for found in verify_chain(forged, anchors)] == [("a", 4)]


def test_erased_rows_hold_but_not_what_was_torn_out() -> None:
    links = log()
    for i in (0, 3, 5):
        body = links[i].body
        salt = links[i].salt
        assert body is not None and salt is not None
        links[i] = links[i]._replace(body=None, salt=None, digest=content_digest(salt, body))
    assert verify_chain(links) == []
    assert verify_chain([links[0]._replace(digest=bytes(32)), *links[1:]])[0].n == 1
    torn = verify_chain([*links[:4], links[4]._replace(body=None), *links[5:]])
    assert torn == [Break("a", 5, "its content is gone, and not by erasing")]
