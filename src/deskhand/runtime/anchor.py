"""The anchor file: heads of the sessions' hash chains, noted outside the database, so that a cut-off tail is found."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

EVERY_S = 600.0
"""How often a running Deskhand notes the heads."""
Heads = Mapping[str, tuple[int, bytes]]


class _Line(msgspec.Struct):
    at: float
    heads: dict[str, tuple[int, str]]


def read_anchors(path: Path) -> dict[str, tuple[int, bytes]]:
    """The last head noted of each session: its number and its hash. A line that a crash cut short is left out."""
    anchors: dict[str, tuple[int, bytes]] = {}
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return {}
    for line in lines:
        try:
            noted = msgspec.json.decode(line, type=_Line)
            anchors |= {session: (n, bytes.fromhex(head)) for session, (n, head) in noted.heads.items()}
        except (msgspec.MsgspecError, ValueError):
            continue
    return anchors


def note_anchors(path: Path, heads: Heads, at: float) -> int:
    """Append the heads that have changed since they were noted; on disk when it returns. Returns how many.

    Raises OSError when it cannot be written.
    """
    known = read_anchors(path)
    changed = {session: (n, head.hex()) for session, (n, head) in heads.items() if known.get(session) != (n, head)}
    if changed:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(fd, msgspec.json.encode(_Line(at, changed)) + b"\n")
            os.fsync(fd)
        finally:
            os.close(fd)
    return len(changed)
