"""SQL for PostgreSQL from SQL for SQLite.

The rooms write their statements once. What the two say differently is small and regular, so it is
translated here; where a statement has to be another one, it stands beside the first in the same
file (see `sql.load_sql`). The migrations define functions that PostgreSQL lacks.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""
      (?P<comment>--[^\n]*)
    | (?P<blob>\b[xX]'(?P<hex>[0-9a-fA-F]*)')
    | (?P<quoted>'(?:[^']|'')*'|"[^"]*")
    | \?(?P<number>\d*)
    | (?P<cast>\bCAST\(\s*(?P<what>[\w.]+)\s+AS\s+(?P<type>TEXT|BLOB)\s*\))
    | (?P<user>(?<!\w)user(?!\w))
    | (?P<hint>\sINDEXED\ BY\ \w+)
    """,
    re.VERBOSE,
)
_CASTS = {"TEXT": "from_utf8", "BLOB": "to_utf8"}


def to_postgres(statement: str) -> str:
    """The statement with numbered parameters, bytes, casts and quotes as PostgreSQL has them.

    - `?` and `?2` become `$1`, `$2`; `x'00'` becomes `'\\x00'::bytea`.
    - `CAST(body AS TEXT)` reads UTF-8 in SQLite; in PostgreSQL a function does.
    - `INDEXED BY` is left out.
    - `user` is a table and a column of ours, but a function in PostgreSQL unless it is quoted.
    """
    count = 0

    def translate(match: re.Match[str]) -> str:
        nonlocal count
        if match["comment"] is not None or match["quoted"] is not None:
            return match[0]
        if match["blob"] is not None:
            return f"'\\x{match['hex']}'::bytea"
        if match["cast"] is not None:
            return f"{_CASTS[match['type']]}({match['what']})"
        if match["user"] is not None:
            return '"user"'
        if match["hint"] is not None:
            return ""
        count = int(match["number"]) if match["number"] else count + 1
        return f"${count}"

    return _TOKEN.sub(translate, statement)
