"""The statements that rooms register with the store."""

from __future__ import annotations

from collections.abc import Mapping

from ..store.sql import load_sql


def statements() -> Mapping[str, str]:
    """All of them by name."""
    own = ("letters.sql", "health.sql", "people.sql", "drafts.sql", "places.sql")
    found = load_sql("deskhand.tools", "kv.sql") | load_sql("deskhand.tools", "marks.sql")
    for name in own:
        found |= load_sql("deskhand.runtime", name)
    return found
