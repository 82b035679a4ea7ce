"""Opens the database that the settings name: a SQLite file in the home, or PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping

from ..store.dialect import to_postgres
from ..store.sql_store import SqlStore
from ..store.sqlite import SqliteStore
from ..types.errors import ConfigError
from .config import Settings
from .statements import load_statements


def has_database(settings: Settings) -> bool:
    """Whether there is a database that can be opened without making one."""
    return bool(settings.config.store) or settings.home.database.exists()


def database_name(settings: Settings) -> str:
    """Where it is, for messages: without a password."""
    if not settings.config.store:
        return str(settings.home.database)
    from ..store.postgres_connection import describe  # noqa: PLC0415 -- its driver is an extra

    return describe(settings.config.store)


def open_store(settings: Settings, statements: Mapping[str, str] | None = None) -> SqlStore:
    """Open it, and create or migrate its tables. `statements` are further ones, as SQLite has them,
    beside those of all rooms.

    Raises StoreError, and ConfigError where PostgreSQL is named and its driver is not installed.
    """
    more = statements or {}
    url = settings.config.store
    if not url:
        return SqliteStore(settings.home.database, {**load_statements(), **more})
    try:
        from ..store.postgres import PostgresStore  # noqa: PLC0415 -- its driver is an extra
    except ImportError as error:
        raise ConfigError(
            "`store` names a PostgreSQL database, and its driver is not installed: "
            "pip install 'deskhand[postgres]'"
        ) from error
    translated = {name: to_postgres(statement) for name, statement in more.items()}
    return PostgresStore(url, {**load_statements("postgresql"), **translated})
