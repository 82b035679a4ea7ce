"""Connections to PostgreSQL with our settings, and clear words for what the server may answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import psycopg
from psycopg import RawCursor
from psycopg.conninfo import conninfo_to_dict

from ..types.errors import StoreBusy, StoreCorrupt, StoreError, StoreFull, StoreUnavailable
from .base import Row
from .connection import TransactionLost
from .postgres_types import adapt_types

SETTINGS = {
    "application_name": "deskhand",
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
SESSION = """
SET synchronous_commit = on;
SET idle_in_transaction_session_timeout = '5s';
SET statement_timeout = '30s';
SET default_transaction_isolation = 'read committed';
"""
"""A process that stops in the middle of a transaction loses it, and with it the lock."""
WRITE_LOCK = "hashtext('deskhand'), hashtext(current_schema())"
"""Whoever writes holds this advisory lock until it commits."""
LOST = (
    psycopg.errors.AdminShutdown,
    psycopg.errors.CrashShutdown,
    psycopg.errors.CannotConnectNow,
    psycopg.errors.ConnectionException,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.IdleInTransactionSessionTimeout,
    psycopg.errors.SerializationFailure,
)
"""Through no fault of the statement: the transaction may be run again."""


def connect(url: str) -> psycopg.Connection[Row]:
    """A connection with our settings, which commits each statement that stands alone.

    Raises StoreUnavailable with what to check.
    """
    try:
        db: psycopg.Connection[Row] = psycopg.connect(
            url, autocommit=True, cursor_factory=RawCursor, prepare_threshold=0, **_settings(url)
        )
    except psycopg.Error as error:
        raise StoreUnavailable(
            f"cannot connect to {describe(url)}: {first_line(error)}. Check that the server runs "
            "and `store` in the configuration"
        ) from error
    adapt_types(db)
    with translate_errors(url):
        db.execute(SESSION, prepare=False)
    return db


def _settings(url: str) -> dict[str, Any]:
    """Ours, but for what the address sets itself."""
    given = conninfo_to_dict(url)
    return {name: value for name, value in SETTINGS.items() if name not in given}


def describe(url: str) -> str:
    """The database without the password, for messages."""
    given = conninfo_to_dict(url)
    place = given.get("host") or given.get("hostaddr") or "this machine"
    return f"PostgreSQL database {str(given.get('dbname') or 'postgres')!r} on {place}"


def first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


@contextmanager
def translate_errors(url: str) -> Iterator[None]:
    """Turn what the database raises into our tree, with the next step."""
    try:
        yield
    except LOST as error:
        raise TransactionLost(first_line(error)) from error
    except (psycopg.errors.DiskFull, psycopg.errors.OutOfMemory) as error:
        raise StoreFull(f"{describe(url)} has no space left: {first_line(error)}") from error
    except (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled) as error:
        raise StoreBusy(f"{describe(url)} is busy: {first_line(error)}") from error
    except (psycopg.errors.DataCorrupted, psycopg.errors.IndexCorrupted) as error:
        raise StoreCorrupt(f"{describe(url)} is damaged: {first_line(error)}") from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        if isinstance(error, psycopg.InterfaceError) or error.sqlstate is None:
            raise TransactionLost(first_line(error)) from error  # the connection broke
        raise StoreError(f"{describe(url)}: {first_line(error)}") from error
    except psycopg.Error as error:
        raise StoreError(f"{describe(url)}: {first_line(error)}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StoreCorrupt(f"{describe(url)} is damaged ({error}): restore a backup") from error
