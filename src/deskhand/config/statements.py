"""The statements that rooms register with the store."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType

from ..store.sql import Dialect, load_sql

PACKAGES = [
    "assembly",
    "budgets",
    "deepwork",
    "gateway",
    "importers",
    "jobs",
    "learning",
    "mcp",
    "memory",
    "secrets",
    "subagents",
    "teams",
    "supervision",
    "tools",
    "users",
    "webpush",
    "workspace",
]


@cache
def load_statements(dialect: Dialect = "sqlite") -> Mapping[str, str]:
    """All of them by name: of every `.sql` file in these rooms and their folders."""
    found = dict[str, str]()
    for room in (f"deskhand.{name}" for name in PACKAGES):
        for package in (room, *(f"{room}.{each.name}" for each in _subpackages(files(room)))):
            for name in sorted(
                each.name for each in files(package).iterdir() if each.name.endswith(".sql")
            ):
                found |= load_sql(package, name, dialect)
    return MappingProxyType(found)


def _subpackages(room: Traversable) -> list[Traversable]:
    return sorted(
        (each for each in room.iterdir() if each.joinpath("__init__.py").is_file()),
        key=lambda it: it.name,
    )
