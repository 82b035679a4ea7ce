"""The statements that rooms register with the store."""

from __future__ import annotations

from collections.abc import Mapping

from ..store.sql import load_sql


def statements() -> Mapping[str, str]:
    """All of them by name."""
    own = ("letters.sql", "health.sql", "people.sql", "drafts.sql", "places.sql", "egress.sql", "background.sql")
    found = dict[str, str]()
    for name in ("kv.sql", "marks.sql", "effects.sql", "tasks.sql"):
        found |= load_sql("deskhand.tools", name)
    for name in own:
        found |= load_sql("deskhand.runtime", name)
    return found
