"""What the store needs of a database: SQLite and PostgreSQL each bring it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from ..types.errors import StoreUnavailable
from .base import Args, Row


class Cursor(Protocol):
    """The rows of a statement that was executed."""

    def fetchone(self) -> Row | None: ...

    def fetchall(self) -> list[Row]: ...


class StatementRunner(Protocol):
    """Runs statements in the transaction that the writer has begun."""

    def execute(self, statement: str, args: Args = ...) -> Cursor: ...

    def changes(self) -> int:
        """How many rows the last statement that writes has changed."""
        ...

    def total_changes(self) -> int:
        """As `changes`, of all statements since the connection was opened."""
        ...

    def last_insert_rowid(self) -> int:
        """The number that the database gave to the row inserted last."""
        ...


class TransactionLost(StoreUnavailable):
    """The transaction was not committed, through no fault of its statements: the server ended it.
    It may be run again."""


class WriteConnection(Protocol):
    """The connection of the one thread that writes, with its transactions.

    What the methods raise is translated by `errors`: StoreError for what the caller may be told,
    TransactionLost where the whole transaction is to be run again.
    """

    @property
    def connection(self) -> StatementRunner:
        """What jobs get. Another one after a connection was lost."""
        ...

    def begin(self) -> None:
        """Begin a transaction that no other process can write beside. Waits for those before."""
        ...

    def commit(self) -> None:
        """When this returns, the transaction is on disk."""
        ...

    def rollback(self) -> None:
        """Take the transaction back, if one is open."""
        ...

    def savepoint(self) -> None: ...

    def roll_back_to_savepoint(self) -> None: ...

    def release_savepoint(self) -> None: ...

    def is_job_error(self, error: Exception) -> bool:
        """Whether a statement or its arguments are at fault. Then only their job fails."""
        ...

    def is_database_error(self, error: Exception) -> bool:
        """Whether the database raised it."""
        ...

    def errors(self) -> AbstractContextManager[None]:
        """Translates what the database raises."""
        ...

    def close(self) -> None: ...
