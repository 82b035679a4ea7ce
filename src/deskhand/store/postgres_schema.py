"""Creates and migrates the tables in PostgreSQL."""

from __future__ import annotations

from importlib.resources import files

import psycopg

from ..types.errors import StoreNewer
from .base import Row

LOCK = "hashtext('deskhand migrations'), hashtext(current_schema())"


def load_migrations() -> list[tuple[int, str]]:
    """(number, SQL) of every migration for PostgreSQL, in order. The first makes all tables, and
    has the number of the last one for SQLite that it takes the place of."""
    folder = files(__package__).joinpath("migrations", "postgresql")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(int(name.split("_")[0]), folder.joinpath(name).read_text()) for name in names]


def migrate(db: psycopg.Connection[Row], name: str) -> int:
    """Bring the tables up to date, one process at a time and each step in a transaction of its own.
    Returns the version.

    Raises StoreNewer when the database is ahead of us.
    """
    known = load_migrations()
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
                db.execute(script, prepare=False)
                db.execute("INSERT INTO schema_version VALUES($1)", (number,))
    return newest
