"""Which field of a request does not fit."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import pytest

from deskhand.web.errors import FieldError
from deskhand.web.faults import json_fault, parse_fault


class Inner(msgspec.Struct):
    size: int = 0


class Body(msgspec.Struct):
    name: str
    on: bool = False
    mode: Literal["a", "b"] = "a"
    inner: tuple[Inner, ...] = ()


FAULTS: dict[str, tuple[Any, str, tuple[str | int, ...], Any]] = {
    "missing": ({}, "missing", ("body", "name"), {}),
    "no object": ([1], "model_attributes_type", ("body",), [1]),
    "a number for a text": ({"name": 5}, "string_type", ("body", "name"), 5),
    "a word for a flag": ({"name": "x", "on": "yes"}, "bool_parsing", ("body", "on"), "yes"),
    "null for a flag": ({"name": "x", "on": None}, "bool_type", ("body", "on"), None),
    "no such choice": ({"name": "x", "mode": "c"}, "value_error", ("body", "mode"), "c"),
    "no array": ({"name": "x", "inner": {}}, "list_type", ("body", "inner"), {}),
}


@pytest.mark.parametrize("case", FAULTS)
def test_the_field_is_named(case: str) -> None:
    given, kind, loc, found = FAULTS[case]
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.json.decode(msgspec.json.encode(given), type=Body)
    fault = parse_fault(raised.value, "body", given)
    assert (fault.type, fault.loc, fault.input) == (kind, loc, found)
    assert fault.msg.endswith(".") and " - at " not in fault.msg


def test_what_lies_deeper_is_named_as_far_as_it_is_known() -> None:
    given = {"name": "x", "inner": [{"size": 1}, {"size": "big"}]}
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.convert(given, Body)
    fault = parse_fault(raised.value, "body", given)
    assert fault.loc[:2] == ("body", "inner") and fault.loc[-1] == "size"


def test_a_body_that_is_no_json() -> None:
    with pytest.raises(msgspec.DecodeError) as raised:
        msgspec.json.decode(b"{no json")
    fault = json_fault(raised.value)
    assert (fault.type, fault.loc, fault.input) == ("json_invalid", ("body", 1), {})
    assert fault.ctx == {"error": str(raised.value)}
    assert "ctx" not in msgspec.to_builtins(
        FieldError("missing", ("body",), "This field is required.")
    )
