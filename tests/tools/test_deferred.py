"""Deferred tools as data: what is offered when, how they are listed, and how they are found."""

from __future__ import annotations

import msgspec
import pytest

from deskhand.tools.base import Context, Outcome, Spec
from deskhand.tools.deferred import (
    MAX_FOUND,
    MAX_LIST_CHARS,
    TOOL_SEARCH,
    defer_tools,
    list_offered_specs,
    make_schemas,
    render_tool_list,
    restrict_tools,
    search_specs,
)
from deskhand.tools.define import tool
from deskhand.types.labels import LOCAL
from deskhand.types.options import SessionOptions


@tool(reads=LOCAL)
async def look(path: str) -> str:
    """Look at a file. And more about that."""
    return path


@tool(reads=LOCAL)
async def tides(harbour: str) -> str:
    """When the water is high: for sailors."""
    return harbour


@tool(effect="local_write", replay="never", reads=LOCAL)
async def post(letter: str, context: Context) -> str:
    """Send a letter by post, which takes three days at the very least and cannot be taken back by
    anybody."""
    return letter


@tool(reads=LOCAL)
async def plan_trip() -> str:
    """The steps of a trip."""
    return ""


ALL = {each.spec.name: each for each in (look, tides, post, plan_trip.with_mode("deep_work"))}
TOOLS = defer_tools(ALL, frozenset({"tides", "post", "plan_trip"}))


def names(**options: object) -> list[str]:
    return [spec.name for spec in list_offered_specs(TOOLS, SessionOptions(**options))]  # type: ignore[arg-type]


def test_what_is_loaded_comes_last_in_the_order_in_which_it_was_loaded() -> None:
    assert names() == ["look", TOOL_SEARCH]
    assert names(loaded_tools=("post",)) == ["look", TOOL_SEARCH, "post"]
    assert names(loaded_tools=("post", "tides")) == ["look", TOOL_SEARCH, "post", "tides"]
    assert names(loaded_tools=("gone", "look", TOOL_SEARCH)) == ["look", TOOL_SEARCH], (
        "no tool twice, and none that there is not"
    )


def test_plan_mode_and_modes_hold_for_what_is_loaded() -> None:
    assert names(loaded_tools=("post", "tides"), plan_mode=True) == ["look", TOOL_SEARCH, "tides"]
    assert (
        names(mode="deep_work")
        == names(mode="deep_work", loaded_tools=("plan_trip",))
        == ["look", "plan_trip", TOOL_SEARCH]
    )
    assert names(loaded_tools=("plan_trip",)) == ["look", TOOL_SEARCH, "plan_trip"], (
        "also outside of its mode"
    )
    without = [spec.name for spec in list_offered_specs(ALL, SessionOptions())]
    assert without == ["look", "tides", "post", "plan_trip"], (
        "where nothing is deferred all are offered"
    )


def test_only_more_is_loaded() -> None:
    first = SessionOptions(loaded_tools=("a", "b"))
    second = SessionOptions(loaded_tools=("c", "a"))
    assert first.merge(second).loaded_tools == ("a", "b", "c")
    assert first.merge(SessionOptions(title="x")).loaded_tools == ("a", "b")
    assert first.merge(SessionOptions(loaded_tools=())).loaded_tools == ("a", "b")


def test_who_names_tools_has_all_of_them() -> None:
    assert set(restrict_tools(TOOLS, ["look", "tides", TOOL_SEARCH])) == {"look", "tides"}
    assert [
        spec.name for spec in list_offered_specs(restrict_tools(TOOLS, ["tides"]), SessionOptions())
    ] == ["tides"]
    assert restrict_tools(TOOLS, list(TOOLS)) == TOOLS
    assert defer_tools(ALL, frozenset({"elsewhere"})) == ALL


def test_each_is_named_in_a_line() -> None:
    assert TOOLS[TOOL_SEARCH].spec.description.partition("\n")[2] == (
        "- tides: When the water is high\n"
        "- post: Send a letter by post, which takes three days at the very least and …\n"
        "- plan_trip: The steps of a trip"
    )
    many = [Spec(f"tool_{n}", "What it does. " * 9, {}) for n in range(5_000)]
    assert render_tool_list(many[:150]).startswith("tool_0, tool_1, ")
    cut = render_tool_list(many)
    assert len(cut) < MAX_LIST_CHARS + 60
    shown = cut.partition(", and ")[0].split(", ")
    assert shown == [spec.name for spec in many[: len(shown)]]
    assert cut.endswith(f", and {5_000 - len(shown)} more: search for them by words")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("tides", ["tides"]),
        ("post, tides", ["tides", "post"]),
        ("select:post", ["post"]),
        ("high water", ["tides"]),
        ("I want to send some letters: a letter", ["post"]),
        ("harbour tables", []),
        ("what can you do for the", []),
        ("", []),
    ],
)
def test_found_by_name_or_by_words(query: str, found: list[str]) -> None:
    specs = [each.spec for each in (tides, post, plan_trip)]
    assert [spec.name for spec in search_specs(query, specs)] == found


def test_few_are_found_at_once() -> None:
    specs = [Spec(f"ship_{n}", "Ships.", {}) for n in range(50)]
    assert [spec.name for spec in search_specs("ship", specs)] == [
        f"ship_{n}" for n in range(MAX_FOUND)
    ]


def test_what_nobody_sees_in_what_tools_say_is_written_out() -> None:
    """What a program must be given by its exact name stays as it is."""
    hidden = "\u202eback\U000e0041"

    class Odd:
        spec: Spec

        async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
            raise NotImplementedError

    odd = Odd()
    of = {"type": "string", "description": hidden, "enum": [hidden]}
    odd.spec = spec = Spec("odd", f"Look {hidden}.", {"type": "object", "properties": {"path": of}})
    (schema,) = make_schemas({"odd": odd})
    assert schema.description == "Look \\u202eback\\U000e0041."
    (path,) = schema.parameters["properties"].values()
    assert path == {"type": "string", "description": "\\u202eback\\U000e0041", "enum": [hidden]}
    assert render_tool_list([spec]) == "- odd: Look \\u202eback\\U000e0041"
