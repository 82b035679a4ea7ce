"""The anchor file: heads of the sessions' hash chains, written outside the database, so that a log
that was cut off is detected."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

ANCHOR_INTERVAL_S = 600.0
"""How often a running Deskhand writes the heads."""
Heads = Mapping[str, tuple[int, bytes]]
Anchors = dict[str, dict[int, bytes]]
"""session -> number of an event -> its hash, in the order in which they were written"""


class _Line(msgspec.Struct):
    at: float
    heads: dict[str, tuple[int, str]]


def read_anchors(path: Path) -> Anchors:
    """All heads in the file, by session. For one number the first counts: a later one would be
    another history. A line that a crash cut short is left out."""
    anchors: Anchors = {}
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return {}
    for line in lines:
        try:
            noted = msgspec.json.decode(line, type=_Line)
            for session, (n, head) in noted.heads.items():
                anchors.setdefault(session, {}).setdefault(n, bytes.fromhex(head))
        except (msgspec.MsgspecError, ValueError, RecursionError):
            continue
    return anchors


def append_anchors(path: Path, heads: Heads, at: float) -> int:
    """Append the heads that have changed. They are on disk when this returns. Returns how many.

    Raises OSError when the file cannot be written.
    """
    known = read_anchors(path)
    changed = {
        session: (n, head.hex())
        for session, (n, head) in heads.items()
        if n not in known.get(session, {})
    }
    if changed:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            size = os.fstat(fd).st_size
            torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
            os.write(fd, b"\n" * torn + msgspec.json.encode(_Line(at, changed)) + b"\n")
            os.fsync(fd)
        finally:
            os.close(fd)
    return len(changed)
