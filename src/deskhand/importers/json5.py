"""JSON with comments, bare names and commas at the end (JSON5, https://spec.json5.org), as people
write it by hand."""

from __future__ import annotations

import json
import re
from typing import Any

_TOKEN = re.compile(
    r"""
      (?P<string>"(?:[^"\\]|\\.)*+(?:"|\Z)|'(?:[^'\\]|\\.)*+(?:'|\Z))
    | (?P<comment>//[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z))
    | (?P<hex>0[xX][0-9a-fA-F]+)
    | (?P<number>\d[\w.+-]*)
    | (?P<name>[A-Za-z_$][\w$]*)
    """,
    re.VERBOSE | re.DOTALL,
)
_LAST_COMMA = re.compile(r'("(?:[^"\\]|\\.)*+")|,(?=\s*+[}\]])', re.DOTALL)
_PART = re.compile(r'\\(.)|"|\n', re.DOTALL)
_WORDS = ("true", "false", "null")


def parse_json5(text: str) -> Any:
    """What it says. Raises ValueError, RecursionError."""
    strict = _TOKEN.sub(_to_json, text)
    strict = _LAST_COMMA.sub(lambda match: match[1] or "", strict)
    return json.loads(strict, parse_constant=lambda name: None)


def _to_json(match: re.Match[str]) -> str:
    match match.lastgroup:
        case "comment":
            return " "
        case "hex":
            return str(int(match[0], 16))
        case "number":
            return match[0]
        case "name":
            word = match[0]
            return word if word in _WORDS else json.dumps(word)
        case _:
            mark = match[0][0]
            closed = len(match[0]) > 1 and match[0].endswith(mark)
            inner = match[0][1:-1] if closed else match[0][1:]
            return f'"{_PART.sub(_escape, inner)}"'


def _escape(match: re.Match[str]) -> str:
    """An escape, a quote or the end of a line in a string, as JSON has it."""
    char = match[1]
    if char is None:
        return '\\"' if match[0] == '"' else "\\n"
    if char == "\n":  # a line that goes on
        return ""
    return match[0] if char in '"\\/bfnrtu' else char
