"""Memories that nobody needs, many at once."""

from __future__ import annotations

from pathlib import Path

import apsw
import msgspec

from deskhand.types.labels import OWNER

MANY = """
WITH RECURSIVE number(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM number WHERE i < ?1)
INSERT INTO fact(key, text, scope, owner, session, n, writer, label, confidence, retention, pinned, held, replaces, at,
  valid_from)
SELECT 'junk:' || i, 'lorem' || i || ' ipsum ' || (i * 7919 % 10007) || ' dolor code' || (i % 97), 'user', ?2, '', 0,
  'harvester', ?3, 1.0, 'durable', ?5 AND i % 2, 0, '[]', ?4, ?4
FROM number
"""  # noqa: E501


def junk(
    database: Path, owner: str, number: int = 10_000, at: float = 1.0, *, pinned: bool = False
) -> None:
    """So many, in one statement; `pinned`: every other one is always told."""
    db = apsw.Connection(str(database))
    with db:
        db.execute(MANY, (number, owner, msgspec.json.encode(OWNER), at, int(pinned)))
    db.close()
