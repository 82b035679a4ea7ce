"""How values go to PostgreSQL and come back: as they do with SQLite."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.adapt import Dumper
from psycopg.types.numeric import NumericBinaryLoader
from psycopg.types.string import StrDumperUnknown


class _IntDumper(Dumper):
    """Without a type, so that the statement decides: our flags are numbers, and booleans there."""

    oid = 0

    def dump(self, obj: int) -> bytes:
        return str(int(obj)).encode()


class _StrDumper(StrDumperUnknown):
    """PostgreSQL stores no NUL characters in text."""

    def dump(self, obj: str) -> Any:
        return super().dump(obj.replace("\0", "\ufffd") if "\0" in obj else obj)


class _NumericLoader(NumericBinaryLoader):
    """Sums of whole numbers are whole numbers."""

    def load(self, data: Any) -> Any:
        value = super().load(data)
        return int(value) if value == value.to_integral_value() else float(value)


def adapt_types(db: psycopg.Connection[Any]) -> None:
    """Register this for one connection."""
    for kind in (int, bool):
        db.adapters.register_dumper(kind, _IntDumper)
    db.adapters.register_dumper(str, _StrDumper)
    db.adapters.register_loader("numeric", _NumericLoader)
