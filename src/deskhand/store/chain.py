"""The hash chain that shows whether a session's log was tampered with.

For event n, h(n) = SHA256(h(n-1), envelope, SHA256(salt, body)), where the envelope is session, n,
time and kind. Erasing a row removes body and salt and keeps the inner digest: nothing can be read
or guessed, and the chain holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import NamedTuple

INITIAL_HASH = bytes(32)


class Link(NamedTuple):
    """One row of the log as the chain sees it. `digest` stands in for body and salt where they were
    erased."""

    session: str
    n: int
    at: float
    kind: str
    body: bytes | None
    salt: bytes | None
    digest: bytes | None
    hash: bytes


class Break(NamedTuple):
    """The first place of a session where the chain does not hold."""

    session: str
    n: int
    why: str


def content_digest(salt: bytes, body: bytes) -> bytes:
    return sha256(salt + body).digest()


def next_hash(before: bytes, envelope: tuple[str, int, float, str], digest: bytes) -> bytes:
    session, n, at, kind = envelope
    return sha256(before + f"{session}\0{n}\0{float(at)!r}\0{kind}\0".encode() + digest).digest()


def verify_chain(
    links: Iterable[Link], anchors: Mapping[str, Mapping[int, bytes]] | None = None
) -> list[Break]:
    """Check rows that come session by session in order of n. `anchors` are heads noted earlier, by
    session and n: they find a tail that was cut off, also where another one has grown since.
    Returns the first break of each broken session; none means that all holds."""
    breaks: dict[str, Break] = {}
    missing = {session: dict(noted) for session, noted in (anchors or {}).items()}
    session = ""
    n = 0
    head = INITIAL_HASH
    for link in links:
        if link.session != session:
            session = link.session
            n = 0
            head = INITIAL_HASH
        if session in breaks:
            continue
        n += 1
        why = _find_fault(link, n, head)
        if not why and missing.get(session, {}).pop(n, link.hash) != link.hash:
            why = "it is not the event that was noted in the anchor file"
        if why:
            breaks[session] = Break(session, n, why)
            missing.pop(session, None)
        head = link.hash
    for cut, noted in missing.items():
        if noted:
            gone = Break(
                cut, min(noted), "it is gone: the log of this session has been cut off before it"
            )
            breaks.setdefault(cut, gone)
    return list(breaks.values())


def _find_fault(link: Link, n: int, head: bytes) -> str:
    if link.n != n:
        return f"event {n} is missing"
    if link.body is not None and link.salt is not None:
        digest = content_digest(link.salt, link.body)
    elif link.digest is not None:
        digest = link.digest
    else:
        return "its content is gone, and not by erasing"
    if next_hash(head, (link.session, link.n, link.at, link.kind), digest) != link.hash:
        return "its content, time or place was changed"
    return ""
