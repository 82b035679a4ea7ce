"""The statements that rooms register with the store."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

from ..store.sql import load_sql

ROOMS = ("deskhand.tools", "deskhand.memory", "deskhand.runtime")


def statements() -> Mapping[str, str]:
    """All of them by name: of every `.sql` file in these rooms."""
    found = dict[str, str]()
    for room in ROOMS:
        for name in sorted(each.name for each in files(room).iterdir() if each.name.endswith(".sql")):
            found |= load_sql(room, name)
    return found
