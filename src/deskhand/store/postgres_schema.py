"""Creates and migrates the tables in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

import psycopg

from ..types.errors import StoreNewer
from .base import Row
from .postgres_connection import WRITE_LOCK

LOCK = "hashtext('deskhand migrations'), hashtext(current_schema())"


def load_migrations() -> list[tuple[int, str]]:
    """(number, SQL) of every migration for PostgreSQL, in order. The first makes all tables, and
    has the number of the last one for SQLite that it takes the place of."""
    folder = files(__package__).joinpath("migrations", "postgresql")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(int(name.split("_")[0]), folder.joinpath(name).read_text()) for name in names]


def migrate(db: psycopg.Connection[Row], name: str, known: Sequence[tuple[int, str]]) -> int:
    """Bring the tables up to date, one process at a time and each step in a transaction of its own.
    While it goes on nobody writes, and whoever knows the tables as they were writes nothing after
    it: each transaction looks at the version. Returns it.

    `known` are `load_migrations()`. Raises StoreNewer when the database is ahead of us.
    """
    newest = known[-1][0]
    for number, script in known:
        with db.transaction():
            db.execute(f"SELECT pg_advisory_xact_lock({LOCK})", prepare=False)
            db.execute("CREATE TABLE IF NOT EXISTS schema_version(version BIGINT PRIMARY KEY)")
            row = db.execute("SELECT coalesce(max(version), 0) FROM schema_version").fetchone()
            version = int(row[0]) if row is not None else 0
            if version > newest:
                raise StoreNewer(
                    f"{name} has schema {version}, this Deskhand knows {newest}: update Deskhand, "
                    "or use another database"
                )
            if number > version:
                _apply(db, number, script)
    return newest


def _apply(db: psycopg.Connection[Row], number: int, script: str) -> None:
    db.execute("SET LOCAL statement_timeout = 0")
    db.execute(f"SELECT pg_advisory_xact_lock({WRITE_LOCK})", prepare=False)
    db.execute(script, prepare=False)
    db.execute("INSERT INTO schema_version VALUES($1)", (number,))
