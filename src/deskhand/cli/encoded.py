"""What commands print for programs: JSON in which a terminal finds nothing to obey, and a person
nothing hidden."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from .plain import UNSAFE_CHARS


def to_json(value: Any, indent: int = 0) -> str:
    """The value as JSON, with every character that nobody sees, or that a terminal obeys, as an
    escape: it is the same value, for programs and for eyes."""
    data = msgspec.json.encode(value)
    text: str = (msgspec.json.format(data, indent=indent) if indent else data).decode()
    return text if text.isascii() and "\x7f" not in text else UNSAFE_CHARS.sub(_escape_char, text)


def _escape_char(found: re.Match[str]) -> str:
    """As JSON writes a character: by its one or two code units of UTF-16."""
    units = found[0].encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
