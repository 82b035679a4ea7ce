"""Deferred tools as data: what is offered when, how they are listed, and how they are found."""

from __future__ import annotations

import msgspec
import pytest

from deskhand.tools.base import Context, Outcome, Spec
from deskhand.tools.deferred import (
    MAX_FOUND,
    MAX_LINE_CHARS,
    MAX_LIST_CHARS,
    TOOL_SEARCH,
    ToolSchemas,
    defer_tools,
    list_offered_specs,
    make_schemas,
    render_tool_line,
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


@tool(effect="local_write", replay="never", reads=LOCAL, hint="letters, parcels")
async def post(letter: str, context: Context) -> str:
    """Send a letter by post, which takes three days at the very least and cannot be taken back by
    anybody."""
    return letter


@tool(reads=LOCAL)
async def plan_trip() -> str:
    """The steps of a trip."""
    return ""


@tool(reads=LOCAL)
async def end_planning() -> str:
    """Show the plan."""
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


def test_a_tool_of_plan_mode_is_offered_in_it_unloaded() -> None:
    ending = {"end_planning": end_planning.with_mode("plan")}
    tools = defer_tools(ALL | ending, frozenset({"post", "plan_trip", "end_planning"}))

    def offered(options: SessionOptions) -> list[str]:
        return [spec.name for spec in list_offered_specs(tools, options)]

    usual = ["look", "tides", TOOL_SEARCH]
    assert offered(SessionOptions()) == offered(SessionOptions(plan_mode=False)) == usual
    assert offered(SessionOptions(mode="normal")) == usual
    planning = ["look", "tides", "end_planning", TOOL_SEARCH]
    assert offered(SessionOptions(plan_mode=True)) == planning
    both = offered(SessionOptions(plan_mode=True, mode="deep_work"))
    assert both == ["look", "tides", "plan_trip", "end_planning", TOOL_SEARCH]
    schemas = ToolSchemas(tools)
    for options in (SessionOptions(), SessionOptions(plan_mode=True), SessionOptions()):
        assert [schema.name for schema in schemas.offered(options)] == offered(options)


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


def test_each_is_named_with_its_hint() -> None:
    said = TOOLS[TOOL_SEARCH].spec.description
    assert said.endswith(" There are: tides, post (letters, parcels), plan_trip")
    many = [Spec(f"tool_{n}", "What it does.", {}, hint="a hint " * 2) for n in range(5_000)]
    assert render_tool_list(many[:2]) == "tool_0 (a hint a hint ), tool_1 (a hint a hint )"
    assert render_tool_list(many[:150]).startswith("tool_0, tool_1, "), "too long with all hints"
    cut = render_tool_list(many)
    assert len(cut) < MAX_LIST_CHARS + 60
    shown = cut.partition(", and ")[0].split(", ")
    assert shown == [spec.name for spec in many[: len(shown)]]
    assert cut.endswith(f", and {5_000 - len(shown)} more: search for them by words")


def test_a_tool_that_was_found_is_described_in_a_line() -> None:
    assert render_tool_line(tides.spec) == "tides: When the water is high"
    line = render_tool_line(post.spec)
    assert line == "post: Send a letter by post, which takes three days at the very least and …"
    assert len(line) <= len("post: ") + MAX_LINE_CHARS + len(" …")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("tides", ["tides"]),
        ("post, tides", ["tides", "post"]),
        ("select:post", ["post"]),
        ("high water", ["tides"]),
        ("a parcel", ["post"]),
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
    parameters = {"type": "object", "properties": {"path": of}}
    odd.spec = spec = Spec("odd", f"Look {hidden}.", parameters, hint=hidden)
    (schema,) = make_schemas({"odd": odd})
    assert schema.description == "Look \\u202eback\\U000e0041."
    (path,) = schema.parameters["properties"].values()
    assert path == {"type": "string", "description": "\\u202eback\\U000e0041", "enum": [hidden]}
    assert render_tool_list([spec]) == "odd (\\u202eback\\U000e0041)"
    assert render_tool_line(spec) == "odd: Look \\u202eback\\U000e0041"
