"""Strings that make a regular expression work hard, derived from the expression itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from re import _constants as sre
from re import _parser
from typing import Any

PLAIN = "a1 \n-Aé_."
MANY = 12
"""A repetition with at most this many rounds is not worth a pump."""
_REPEATS = {sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT}
_CATEGORIES = {
    sre.CATEGORY_DIGIT: "1",
    sre.CATEGORY_NOT_DIGIT: "a ",
    sre.CATEGORY_SPACE: " \n",
    sre.CATEGORY_NOT_SPACE: "a-",
    sre.CATEGORY_WORD: "a1_",
    sre.CATEGORY_NOT_WORD: " -",
}


def pumps(pattern: re.Pattern[Any]) -> list[tuple[str, str]]:
    """Pairs of a head and of what is then repeated, each once."""
    source = pattern.pattern
    text: str = source.decode("latin-1") if isinstance(source, bytes) else source
    tree = _parser.parse(
        text, pattern.flags & ~re.UNICODE if isinstance(source, bytes) else pattern.flags
    )
    literals = sorted({*_literals(tree)})
    finder = _Finder(literals)
    finder.walk(tree, [""])
    found = dict.fromkeys(finder.found)
    for literal in literals[:40]:
        found[("", literal)] = None
    return list(islice(found, 400))


def _literals(tree: Iterable[Any]) -> Iterator[str]:
    for op, value in tree:
        if op in (sre.LITERAL, sre.NOT_LITERAL):
            yield chr(value)
        elif op is sre.IN:
            yield from (
                chr(each if kind is sre.LITERAL else each[0])
                for kind, each in value
                if kind in _CHARS
            )
        else:
            for inner in _inner(op, value):
                yield from _literals(inner)


_CHARS = {sre.LITERAL, sre.RANGE}


def _inner(op: Any, value: Any) -> Iterable[Any]:
    """The expressions inside of one."""
    if op in _REPEATS:
        return (value[2],)
    if op is sre.SUBPATTERN:
        return (value[3],)
    if op is sre.BRANCH:
        return tuple(value[1])
    if op in (sre.ASSERT, sre.ASSERT_NOT):
        return (value[1],)
    return (value,) if op is sre.ATOMIC_GROUP else ()


class _Finder:
    def __init__(self, literals: list[str]) -> None:
        self._chars = [*dict.fromkeys([*PLAIN, *literals])]
        self.found: list[tuple[str, str]] = []
        self._groups: dict[int, str] = {}

    def walk(self, tree: Iterable[Any], heads: list[str]) -> list[str]:
        """A few strings that this matches, each behind one of the heads; what is repeated inside is
        noted."""
        samples = [""]
        for op, value in tree:
            before = [head + sample for head in heads[:2] for sample in samples[:2]]
            pieces = self._pieces(op, value, before)
            samples = [
                *dict.fromkeys(sample + piece for piece in pieces[:6] for sample in samples[:3])
            ][:8]
        return samples

    def _pieces(self, op: Any, value: Any, heads: list[str]) -> list[str]:
        if op in (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN):
            return self._one_char(op, value)
        if op in _REPEATS:
            return self._repeated(value, heads)
        if op is sre.BRANCH:
            each = [self.walk(branch, heads) for branch in value[1]]
            return [made for branch in each for made in branch[:2]][:40]
        if op is sre.GROUPREF:
            return [self._groups.get(value, "")]
        if op is sre.GROUPREF_EXISTS:
            return self.walk(value[1], heads)
        made = [sample for inner in _inner(op, value) for sample in self.walk(inner, heads)]
        if op is sre.SUBPATTERN and value[0] is not None:
            self._groups[value[0]] = made[0]
        return made if op in (sre.SUBPATTERN, sre.ATOMIC_GROUP) else [""]

    def _one_char(self, op: Any, value: Any) -> list[str]:
        if op is sre.LITERAL:
            return [chr(value)]
        if op is sre.IN:
            return self._of_class(value)
        return [char for char in self._chars if char != ("\n" if op is sre.ANY else chr(value))][:6]

    def _repeated(self, value: Any, heads: list[str]) -> list[str]:
        low, high, body = value
        made = self.walk(body, heads)
        if high is sre.MAXREPEAT or high > MANY:
            pieces = [piece for piece in made if piece]
            for head in dict.fromkeys(["", *heads[:2]]):
                for piece in pieces[:8]:
                    self.found.append((head, piece))
                    if head:
                        self.found.append(("", head + piece))
                if len(pieces) > 1:
                    self.found.append((head, "".join(pieces[:4])))
                if head:
                    self.found.append(("", head))
        times = max(int(low), 1)
        return (
            [piece * min(times, 50) for piece in made]
            if int(low)
            else [*[piece * times for piece in made[:5]], ""]
        )

    def _of_class(self, value: Any) -> list[str]:
        negated = value[0][0] is sre.NEGATE
        if negated:
            refused = re.compile("".join(["[", *map(_written, value[1:]), "]"]))
            return [char for char in self._chars if not refused.match(char)][:6]
        chosen: list[str] = []
        for kind, inner in value:
            if kind is sre.LITERAL:
                chosen.append(chr(inner))
            elif kind is sre.RANGE:
                chosen.append(chr(inner[0]))
            elif kind is sre.CATEGORY:
                chosen.extend(_CATEGORIES[inner])
        return [*dict.fromkeys(chosen)][:6]


def _written(item: tuple[Any, Any]) -> str:
    kind, inner = item
    if kind is sre.LITERAL:
        return re.escape(chr(inner))
    if kind is sre.RANGE:
        return f"{re.escape(chr(inner[0]))}-{re.escape(chr(inner[1]))}"
    names = {
        sre.CATEGORY_DIGIT: r"\d",
        sre.CATEGORY_NOT_DIGIT: r"\D",
        sre.CATEGORY_SPACE: r"\s",
        sre.CATEGORY_NOT_SPACE: r"\S",
        sre.CATEGORY_WORD: r"\w",
        sre.CATEGORY_NOT_WORD: r"\W",
    }
    return names[inner]
