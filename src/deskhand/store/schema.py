"""Opens the database: pragmas, migrations and the version of its tables."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

import apsw

from ..types.errors import StoreError, StoreNewer
from .sqlite_errors import SqliteErrors

PRAGMAS = """
PRAGMA synchronous = FULL;
PRAGMA foreign_keys = ON;
PRAGMA trusted_schema = OFF;
PRAGMA secure_delete = ON;
PRAGMA journal_size_limit = 67108864;
"""
BUSY_MS = 5_000


def connect(path: Path, *, write: bool) -> apsw.Connection:
    """A connection with our pragmas. Raises StoreError's kin in plain words."""
    flags = (
        apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE if write else apsw.SQLITE_OPEN_READONLY
    )
    with SqliteErrors(path):
        if write:
            _make_private(path)
        db = apsw.Connection(str(path), flags=flags, statementcachesize=200)
        db.set_busy_timeout(BUSY_MS)
        db.execute("PRAGMA journal_mode = WAL").fetchall() if write else None
        db.execute(PRAGMAS).fetchall()
        return db


def _make_private(path: Path) -> None:
    """The file is its owner's alone, and so are those that SQLite puts beside it: it gives them the
    mode of this one. Where others could read an older one, that ends. What the disk has against it,
    SQLite will say."""
    with suppress(OSError):
        # One that is there is not opened: to close it would end the locks that this process holds
        # on it. https://www.sqlite.org/howtocorrupt.html, "Posix advisory locks canceled by a
        # separate thread"
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    for each in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
        with suppress(OSError):
            if stat.S_IMODE(each.stat().st_mode) & 0o077:
                each.chmod(0o600)


def load_migrations() -> list[tuple[int, str]]:
    """(number, SQL) of every migration that this version knows, in order."""
    folder = files(__package__).joinpath("migrations")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(int(name.split("_")[0]), folder.joinpath(name).read_text()) for name in names]


def migrate(db: apsw.Connection, path: Path, known: Sequence[tuple[int, str]]) -> int:
    """Bring the schema up to date, each step in a transaction of its own, so that a kill in between
    is harmless.

    `known` are `migrations()`. Returns the version. Raises StoreNewer when
    the file is ahead of us.
    """
    with SqliteErrors(path):
        db.execute(
            "CREATE TABLE IF NOT EXISTS schema_version(version INTEGER PRIMARY KEY) STRICT"
        ).fetchall()
        version = _version(db)
        newest = known[-1][0]
        if version > newest:
            raise StoreNewer(
                f"{str(path)!r} has schema {version}, this Deskhand knows {newest}: "
                "update Deskhand, or use another DESKHAND_HOME"
            )
        for number, script in known[version:]:
            db.execute("BEGIN IMMEDIATE").fetchall()
            try:
                if number > _version(db):
                    db.execute(script).fetchall()
                    db.execute("INSERT INTO schema_version VALUES(?)", (number,)).fetchall()
                db.execute("COMMIT").fetchall()
            except BaseException:
                if db.in_transaction:  # a full disk has taken it back by itself
                    db.execute("ROLLBACK").fetchall()
                raise
        return newest


def read_schema_version(path: Path) -> int:
    """Which version changed this file last; 0 where there is none. Raises StoreError."""
    if not path.exists():
        return 0
    db = connect(path, write=False)
    try:
        with SqliteErrors(path):
            return _version(db)
    finally:
        db.close()


def copy_database(path: Path, target: Path) -> None:
    """Copy what is committed into another file, while others write. Raises StoreError."""
    source = connect(path, write=False)
    copy = apsw.Connection(str(target))
    try:
        with copy.backup("main", source, "main") as backup:
            backup.step(-1)
        copy.execute("PRAGMA journal_mode = DELETE")
    except apsw.Error as error:
        raise StoreError(f"{path} cannot be copied: {error}") from error
    finally:
        copy.close()
        source.close()


def _version(db: apsw.Connection) -> int:
    row = db.execute("SELECT coalesce(max(version), 0) FROM schema_version").fetchone()
    if row is None or not isinstance(row[0], int):
        raise StoreError("the table schema_version cannot be read")
    return row[0]
