"""Named SQL: every statement stands in a .sql file, under its name, where it can be read without
Python."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Literal

from .dialect import to_postgres

Dialect = Literal["sqlite", "postgresql"]
_HEADING = re.compile(
    r"^-- (?P<name>\w+)(?P<postgres> on postgresql)?(?::[^\n]*)? --$", re.MULTILINE
)


def load_sql(package: str, resource: str, dialect: Dialect = "sqlite") -> dict[str, str]:
    """The statements of `resource` in `package` by name. A heading is `-- name --` or `-- name: why
    --`. For PostgreSQL each is translated, or replaced by what stands under `-- name on postgresql
    --`."""
    pieces = _HEADING.split(files(package).joinpath(resource).read_text())[1:]
    statements = dict[str, str]()
    replaced = dict[str, str]()
    for name, postgres, body in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        (replaced if postgres else statements)[name] = body.strip()
    if dialect == "sqlite":
        return statements
    return {name: to_postgres(statement) for name, statement in statements.items()} | replaced
