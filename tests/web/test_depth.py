"""How deep JSON may be, and what it costs to find that out."""

from __future__ import annotations

import json
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest

from deskhand.testing.effort import least_cpu_s
from deskhand.web.errors import HttpProblem
from deskhand.web.routing import MAX_DEPTH, check_depth

MARKS = ("[[", "]]}", '"', "\\", '\\"', '"[', "é{", "", "\\\\")
"""Texts whose brackets are none."""
BIG = 2_000_000
BODIES = {
    "letters": b'["' + b"a" * BIG + b'"' + b",[]" * MAX_DEPTH + b"]",
    "backslashes": b'["' + b"\\\\" * (BIG // 2) + b'"' + b",[]" * MAX_DEPTH + b"]",
    "quotes": b'["' + b'\\"' * (BIG // 2) + b'"' + b",[]" * MAX_DEPTH + b"]",
    "an open string": b"[" + b"[]," * MAX_DEPTH + b'"' + b"a" * BIG,
    "strings": b'["[",' * (BIG // 5),
    "lists": b"[" + b"[]," * (BIG // 3) + b"1]",
}


def nested(depth: int, mark: str) -> bytes:
    value: Any = mark
    for i in range(depth):
        value = {mark: value} if i % 3 == 0 else [mark, value, mark]
    return json.dumps(value, ensure_ascii=False).encode()


@pytest.mark.parametrize("mark", MARKS)
def test_brackets_count_and_those_in_strings_do_not(mark: str) -> None:
    check_depth(nested(MAX_DEPTH, mark))
    check_depth(json.dumps([[mark] * 3] * 100).encode())
    for depth in (MAX_DEPTH + 1, MAX_DEPTH + 2, 3 * MAX_DEPTH):
        with pytest.raises(HttpProblem):
            check_depth(nested(depth, mark))


@pytest.mark.parametrize(
    "data", [b"[" * 100_000, b'{"a":' * 100_000, b"[1,{" * 100_000, b"[]," + b"[" * 40]
)
def test_what_never_closes_is_too_deep(data: bytes) -> None:
    with pytest.raises(HttpProblem):
        check_depth(data)


def checked(data: bytes) -> None:
    with suppress(HttpProblem):
        check_depth(data)


@pytest.mark.parametrize("name", list(BODIES))
def test_a_large_body_takes_little_memory(name: str) -> None:
    tracemalloc.start()
    try:
        checked(BODIES[name])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * BIG


@pytest.mark.parametrize("name", list(BODIES))
def test_its_time_grows_with_the_body(name: str) -> None:
    data = BODIES[name]
    small = least_cpu_s(lambda: checked(data[: BIG // 8]), enough_s=0.0)
    assert least_cpu_s(lambda: checked(data), enough_s=0.0) < 40 * small + 0.05
