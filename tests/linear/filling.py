"""Makes arguments of any type in which everything that may be text is one text."""

from __future__ import annotations

import inspect
import types
import typing
from collections import abc
from collections.abc import Callable, Collection
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

DEEPEST = 6
PATTERNS = frozenset(("pattern", "patterns"))
"""Parameters that hold what the owner looks for, and not what it is looked for in."""


class Cannot(Exception):
    """There is no value of this type without knowing more of it."""


class Filling:
    """Values that hold `text`. Structs called as one of `ours` hold a letter: no outside text gets
    into them."""

    def __init__(self, text: str, data: bytes, ours: Collection[str] = ()) -> None:
        self._text = text
        self._data = data
        self._ours = ours

    def value(self, kind: Any, depth: int = 0) -> Any:
        """A value of this type. Raises Cannot."""
        if depth > DEEPEST:
            raise Cannot(kind)
        if kind in _PLAIN:
            return _PLAIN[kind]
        if kind in (str, Any, object):
            return self._text
        if kind in (bytes, bytearray, memoryview):
            return self._data
        origin = typing.get_origin(kind)
        inner = typing.get_args(kind)
        if origin is None:
            return self._struct(kind, depth)
        if origin is typing.Literal:
            return inner[0]
        if origin is typing.Annotated:
            return self.value(inner[0], depth + 1)
        if origin in (typing.Union, types.UnionType):
            return self._one_of(inner, depth)
        return self._many(origin, inner, depth)

    def _one_of(self, inner: tuple[Any, ...], depth: int) -> Any:
        for kind in inner:
            if kind is types.NoneType:
                continue
            try:
                return self.value(kind, depth + 1)
            except Cannot:
                continue
        if types.NoneType in inner:
            return None
        raise Cannot(inner)

    def _many(self, origin: Any, inner: tuple[Any, ...], depth: int) -> Any:
        if origin is tuple and (len(inner) != 2 or inner[1] is not Ellipsis):
            return tuple(self.value(kind, depth + 1) for kind in inner)
        if origin is abc.Callable:
            return lambda *given, **named: self.value(inner[1], depth + 1)
        if origin in (dict, abc.Mapping, abc.MutableMapping):
            return {self.value(inner[0], depth + 1): self.value(inner[1], depth + 1)}
        each = self.value(inner[0], depth + 1) if inner else self._text
        made: dict[Any, Callable[[list[Any]], Any]] = {
            **dict.fromkeys(
                (list, abc.Sequence, abc.Iterable, abc.Collection, abc.MutableSequence), list
            ),
            **dict.fromkeys((set, abc.Set), set),
            frozenset: frozenset,
            tuple: tuple,
            abc.Iterator: iter,
        }
        if origin not in made:
            raise Cannot(origin)
        return made[origin]([each])

    def _struct(self, kind: Any, depth: int) -> Any:
        if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
            raise Cannot(kind)
        filling = Filling("a", b"a") if f"{kind.__module__}.{kind.__name__}" in self._ours else self
        hints = hints_of(kind)
        given = {}
        for field in msgspec.structs.fields(kind):
            try:
                given[field.name] = filling.value(hints[field.name], depth + 1)
            except Cannot:
                if field.required:
                    raise
        try:
            return kind(**given)
        except (TypeError, ValueError) as error:
            raise Cannot(kind) from error


_PLAIN: dict[Any, Any] = {
    bool: False,
    int: 1,
    float: 1.0,
    types.NoneType: None,
    None: None,
    Path: Path("a"),
    datetime: datetime(2026, 1, 1, tzinfo=UTC),
    date: date(2026, 1, 1),
    ZoneInfo: ZoneInfo("UTC"),
}


@cache
def hints_of(what: Any) -> dict[str, Any]:
    return typing.get_type_hints(what, include_extras=True)


@cache
def parameters_of(function: Callable[..., Any]) -> tuple[inspect.Parameter, ...]:
    return tuple(inspect.signature(function).parameters.values())


def call(function: Callable[..., Any], filling: Filling, most: int = 100_000) -> None:
    """Call it with such arguments; of an iterator so many items are taken. Raises Cannot, and
    whatever it raises."""
    hints = hints_of(function)
    given = list[Any]()
    named = dict[str, Any]()
    letter = Filling("a", b"a")
    for parameter in parameters_of(function):
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        own = parameter.name in PATTERNS
        value = (letter if own else filling).value(hints.get(parameter.name, Any))
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            named[parameter.name] = value
        else:
            given.append(value)
    made = function(*given, **named)
    if isinstance(made, abc.Iterator):
        for number, _ in enumerate(made):
            if number == most:
                break
