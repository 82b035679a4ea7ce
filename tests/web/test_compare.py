"""How two answers are compared: by status, keys, types and the order of events."""

from __future__ import annotations

from typing import Any

import pytest

from .recorded.compare import (
    Difference,
    Found,
    compare,
    compare_cases,
    compare_events,
    documented_rows,
    shape_of,
    table_rows,
    unexplained,
    unused,
)

LITERALS = ("type", "role", "status", "iteration")


def shape(value: Any) -> Any:
    return shape_of(value, LITERALS)


def differences(ours: Any, theirs: Any) -> list[tuple[str, str, str]]:
    return [found[1:] for found in compare("case", "body", shape(ours), shape(theirs))]


def test_a_shape_has_types_and_no_words() -> None:
    value = {
        "status": "ok",
        "name": "Ann",
        "n": 3,
        "iteration": 2,
        "at": 1.5,
        "on": True,
        "none": None,
        "list": [],
    }
    assert shape(value) == {
        "status": "=ok",
        "name": "string",
        "n": "integer",
        "iteration": "=2",
        "at": "number",
        "on": "boolean",
        "none": "null",
        "list": [],
    }


def test_a_sentence_is_never_kept() -> None:
    assert shape({"status": "Something went wrong."}) == {"status": "string"}


def test_elements_of_one_kind_share_a_shape() -> None:
    messages = [
        {"role": "user", "content": "a"},
        {"role": "tool", "id": "1"},
        {"role": "user", "content": None, "n": 1},
    ]
    assert shape(messages) == [
        {"role": "=user", "content": "null|string", "n?": "integer"},
        {"role": "=tool", "id": "string"},
    ]


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ({"a": 1}, {"a": 2}, []),
        ({"a": 1}, {"a": "x"}, [("body.a", "integer", "string")]),
        ({"a": None}, {"a": "x"}, [("body.a", "null", "string")]),
        ({"a": 1, "b": 1}, {"a": 1}, [("body.b", "integer", "absent")]),
        ({"a": 1}, {"a": 1, "b": {}}, [("body.b", "absent", "object")]),
        ({"status": "gone"}, {"status": "ok"}, [("body.status", "=gone", "=ok")]),
        ([], {"a": 1}, [("body", "array", "object")]),
        ([], [{"a": 1}], [("body[]", "absent", "object")]),
        ([{"a": 1}], [{"a": 1, "b": 2}], [("body[].b", "absent", "integer")]),
        ([{"role": "user", "n": 1}], [{"role": "user"}], [("body[user].n", "integer", "absent")]),
        ([{"a": 1}, {"a": 1, "x": 1}], [{"a": 1}], [("body[].x", "integer", "absent")]),
        ([{"a": 1}], [{"a": 1}, {"a": 1, "x": 1}], [("body[].x", "absent", "integer")]),
        (
            [{"a": 1}, {"a": 1, "x": 1}],
            [{"a": 1, "x": 1}],
            [],
        ),  # what is not always there may be there
        (
            [{"x": "a"}, {"x": {"b": 1}}],
            [{"x": {"b": 1, "c": 2}}],
            [("body[].x", "object|string", "object"), ("body[].x.c", "absent", "integer")],
        ),
    ],
)
def test_two_answers(ours: Any, theirs: Any, expected: list[tuple[str, str, str]]) -> None:
    assert differences(ours, theirs) == expected


def test_the_order_of_events() -> None:
    theirs = [shape({"type": kind}) for kind in ("thinking", "text", "done")]
    ours = [shape({"type": kind}) for kind in ("thinking", "status", "done")]
    assert compare_events("case", ours, theirs) == [
        Found("case", "events", "absent", "text"),
        Found("case", "events", "status", "absent"),
    ]
    assert compare_events("case", theirs[::-1], theirs) != []
    more = [shape({"type": "text", "text": "a"})]
    assert compare_events("case", [shape({"type": "text"})], more) == [
        Found("case", "events[text].text", "absent", "string")
    ]


def test_a_status_that_differs() -> None:
    ours = {"case": [{"status": 200}]}
    theirs = {"case": [{"status": 404}]}
    assert compare_cases(theirs, ours) == [Found("case", "status", "200", "404")]


def test_the_table_explains_and_is_needed() -> None:
    found = [
        Found("chat", "body.messages[user].n", "integer", "absent"),
        Found("chat", "status", "401", "200"),
    ]
    row = Difference(
        "*", "body.messages[*].n", "integer", "absent", "the number of the event | more"
    )
    stale = Difference("*", "body.gone", "*", "*", "old")
    assert unexplained(found, [row]) == found[1:]
    assert unused(found, [row, stale]) == [stale]


def test_the_table_is_shown_as_markdown() -> None:
    rows = table_rows("other", [Difference("*", "body.x", "integer|null", "absent", "why")])
    assert rows == [r"| other | * | `body.x` | `integer\|null` | `absent` | why |"]
    assert documented_rows("text\n" + rows[0] + "\n| another | x |", "other") == rows
