"""Named SQL: every statement stands in a .sql file, under its name, where it can be read without
Python."""

from __future__ import annotations

import re
from importlib.resources import files

_HEADING = re.compile(r"^-- (?P<name>\w+)(?::[^\n]*)? --$", re.MULTILINE)


def load_sql(package: str, resource: str) -> dict[str, str]:
    """The statements of `resource` in `package` by name. A heading is `-- name --` or `-- name: why
    --`."""
    pieces = _HEADING.split(files(package).joinpath(resource).read_text())
    return {name: body.strip() for name, body in zip(pieces[1::2], pieces[2::2], strict=True)}
