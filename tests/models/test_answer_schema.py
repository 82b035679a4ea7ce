"""An answer is held to a schema that anybody may have written."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from deskhand.models import answer_schema
from deskhand.models.answer_schema import (
    CHECK_S,
    MAX_CHECKS,
    find_answer_problem,
    find_schema_problem,
    make_check_limiter,
    strip_fence,
)

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {"age": {"type": "integer"}},
    "required": ["age"],
}


@pytest.mark.parametrize(
    ("text", "schema", "problem"),
    [
        ('{"age": 7}', PERSON, ""),
        ('```json\n{"age": 7}\n```', PERSON, ""),
        ('```\n{"age": 7}\n```', PERSON, ""),
        ("{}", PERSON, "required"),
        ('{"age": "x"}', PERSON, "['age']"),
        ("I am seven", PERSON, "not JSON"),
        ("[" * 5000, PERSON, "not JSON"),
        ("[]", {"type": "object"}, "not a JSON object"),
        ("1", {"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}, ""),
        ("1", {"$ref": "http://127.0.0.1:1/x.json"}, "the schema is not valid"),
        ("1", {"$ref": "file:///etc/hostname"}, "the schema is not valid"),
        ("1", {"type": "strin"}, "the schema is not valid"),
    ],
)
async def test_what_does_not_fit_is_said(text: str, schema: dict[str, Any], problem: str) -> None:
    found = await find_answer_problem(text, schema, make_check_limiter())
    assert problem in found if problem else found == ""


async def test_a_schema_that_grows_without_end_is_given_up() -> None:
    doubled = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(40)}
    schema = {"$defs": {**doubled, "d40": {"type": "integer"}}, "$ref": "#/$defs/d0"}
    with anyio.fail_after(CHECK_S + 10):
        assert "simpler schema" in await find_answer_problem("1", schema, make_check_limiter())


async def test_patterns_take_time_that_grows_with_the_text() -> None:
    schema = {"type": "string", "pattern": "^(a+)+$"}
    with anyio.fail_after(CHECK_S):
        assert "simpler" not in await find_answer_problem(
            f'"{"a" * 50_000}b"', schema, make_check_limiter()
        )


async def test_without_the_library_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_schema, "find_spec", lambda name: None)
    assert "deskhand[schema]" in await find_schema_problem(PERSON, make_check_limiter())
    assert await find_answer_problem("{}", {"type": "object"}, make_check_limiter()) == "", (
        "any object needs no library"
    )


def test_only_a_whole_fence_is_taken_off() -> None:
    assert strip_fence("```json\n{}\n``` and more") == "```json\n{}\n``` and more"
    assert strip_fence("  {} ") == "{}"


async def test_only_so_many_processes_check_at_one_time() -> None:
    places = make_check_limiter()
    async with anyio.create_task_group() as tasks:
        for _ in range(3 * MAX_CHECKS):
            tasks.start_soon(find_schema_problem, PERSON, places)
        with anyio.fail_after(CHECK_S):
            while places.statistics().tasks_waiting != 2 * MAX_CHECKS:
                await anyio.sleep(0.001)
        assert places.borrowed_tokens == MAX_CHECKS
