"""Names of files as people see them: nothing in one hides, and of those that look alike each says
so."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from unicodedata import normalize

from ..policy.visible import escape_invisible
from .documents.invisible_characters import strip_invisible

_ESCAPE = re.compile(r"\\(?=[uU][0-9a-fA-F]{4})")


def display_name(name: str) -> str:
    """A name in one line in which all is seen. Two names never become the same: a backslash that
    would read as the begin of an escape is written out too."""
    if name.isascii() and name.isprintable() and "\\" not in name:
        return name
    return escape_invisible(_ESCAPE.sub(r"\\u005c", name))


def describe_lookalikes(names: Iterable[str]) -> dict[str, str]:
    """What to say beside each of these names that looks like another one of them: the two differ by
    case, by normal form or by what is not seen."""
    groups = dict[str, list[str]]()
    for name in dict.fromkeys(names):
        groups.setdefault(lookalike_key(name), []).append(name)
    return {
        name: _lookalike_note(name, group)
        for group in groups.values()
        if len(group) > 1
        for name in group
    }


def lookalike_key(name: str) -> str:
    """The same for all names that look alike, by the compatibility caseless matching of Unicode
    (section 3.13, D146), without what is not seen."""
    if name.isascii() and name.isprintable():
        return name.casefold()
    # What is not seen may stand between the two that are one end of a line together.
    ends = name.replace("\r", "\n")
    folded = normalize("NFKC", normalize("NFKD", _strip_hidden(ends)).casefold())
    return _strip_hidden(folded)


def _strip_hidden(name: str) -> str:
    """Without what is not seen."""
    return "".join(
        char for char in strip_invisible(name)[0] if char.isascii() or not _is_hidden(char)
    )


@lru_cache(4096)
def _is_hidden(char: str) -> bool:
    """Whether it is written out though it stands for no other character."""
    return escape_invisible(char) != char and normalize("NFKC", char) == char


def _lookalike_note(name: str, group: list[str]) -> str:
    other = next(each for each in group if each != name)
    more = f" and {len(group) - 2} more" if len(group) > 2 else ""
    return f"(another name differs only by {_describe_difference(name, other)}: '{display_name(other)}'{more})"  # noqa: E501


def _describe_difference(one: str, other: str) -> str:
    one = normalize("NFKC", one)
    other = normalize("NFKC", other)
    if one == other:
        return "its normal form"
    if one.casefold() == other.casefold():
        return "case"
    return "invisible characters"
