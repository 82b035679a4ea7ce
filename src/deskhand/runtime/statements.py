"""The statements that rooms register with the store."""

from __future__ import annotations

from collections.abc import Mapping

from ..store.sql import load_sql


def statements() -> Mapping[str, str]:
    """All of them by name."""
    ours = load_sql(__package__, "letters.sql") | load_sql(__package__, "people.sql")
    return load_sql("deskhand.tools", "kv.sql") | ours
