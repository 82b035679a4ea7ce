"""Which field of a request does not fit, read from what msgspec says of it."""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec

from .errors import FieldError

_PLACE = " - at `$"
_STEP = re.compile(r"\.(?P<key>[^.\[]+)|\[(?P<index>\d+)\]")
_MISSING = re.compile(r"Object missing required field `(?P<field>[^`]*)`")
_WANTED = re.compile(r"Expected `(?P<type>\w+)")
_TYPES = {
    "bool": "bool_type",
    "str": "string_type",
    "int": "int_type",
    "float": "float_type",
    "array": "list_type",
    "object": "model_attributes_type",
}
"""The names that pydantic has for them:
https://docs.pydantic.dev/latest/errors/validation_errors/"""


def parse_fault(
    error: msgspec.ValidationError, root: Literal["body", "query"], given: Any
) -> FieldError:
    """What is wrong with `given`, and where in it."""
    said = str(error)
    reason, place, path = said.partition(_PLACE)
    steps = _parse_path(path.removesuffix("`")) if place else ()
    found = _lookup(given, steps)
    missing = _MISSING.search(reason)
    if missing is not None:
        return FieldError(
            "missing", (root, *steps, missing["field"]), "This field is required.", found
        )
    wanted = _WANTED.match(reason)
    kind = _TYPES.get(wanted["type"], "value_error") if wanted is not None else "value_error"
    if isinstance(found, str) and kind in ("bool_type", "int_type", "float_type"):
        kind = kind.replace("_type", "_parsing")
    return FieldError(kind, (root, *steps), f"{reason}.", found)


def json_fault(error: Exception) -> FieldError:
    """The whole body is no JSON."""
    at = re.search(r"byte (\d+)", str(error))
    position = int(at[1]) if at is not None else 0
    return FieldError(
        "json_invalid", ("body", position), "The body is no JSON.", {}, {"error": str(error)}
    )


def _parse_path(path: str) -> tuple[str | int, ...]:
    """The way that `.a[0].b` describes, as far as it names each step."""
    return tuple(match["key"] or int(match["index"]) for match in _STEP.finditer(path))


def _lookup(given: Any, steps: tuple[str | int, ...]) -> Any:
    """What stands there; the whole of it where the way leads nowhere."""
    found = given
    for step in steps:
        try:
            found = found[step]
        except (KeyError, IndexError, TypeError):
            return given
    return found
