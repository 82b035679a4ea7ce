"""What a function's signature and docstring become, and which arguments are taken."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest

from deskhand.testing.effort import least_cpu_s
from deskhand.tools.base import Context
from deskhand.tools.conversation_tools import OutgoingMessage, SendMessage, ask_user, think
from deskhand.tools.define import FunctionTool, decode_arguments, make_schema, tool
from deskhand.tools.files import edit_file, read_file, write_file
from deskhand.tools.folders import list_files, search_files
from deskhand.tools.shell import shell
from deskhand.types.errors import ToolError

from .conftest import Hands


class Point(msgspec.Struct):
    """A place."""

    x: int
    y: int = 0


@tool
async def everything(  # noqa: PLR0913 -- one of each kind
    text: str,
    context: Context,
    count: int = 3,
    ratio: float = 0.5,
    sure: bool = False,
    kind: Literal["a", "b"] = "a",
    either: int | str = 1,
    maybe: str | None = None,
    names: list[str] = [],  # noqa: B006
    place: Point | None = None,
    places: list[Point] = [],  # noqa: B006
) -> str:
    """Do everything.

    A second paragraph, about the details.

    text: what to do: with a colon
    kind: which way
    """
    values = {
        "text": text,
        "count": count,
        "ratio": ratio,
        "sure": sure,
        "kind": kind,
        "either": either,
    }
    return msgspec.json.encode(
        values | {"maybe": maybe, "names": names, "place": place, "places": places}
    ).decode()


def test_made_once_more_it_is_the_same_and_its_own() -> None:
    def made(default: Any) -> FunctionTool:
        @tool
        async def one(sure: bool | int = default) -> str:
            """Do it."""
            return repr(sure)

        return one

    first = made(1)
    second = made(True)
    defaults = [each.spec.parameters["properties"]["sure"]["default"] for each in (first, second)]
    assert repr(defaults) == "[1, True]"
    first.spec.parameters.clear()
    assert made(1).spec.parameters["properties"]["sure"]["default"] == 1


def test_the_schema() -> None:
    place = {"$ref": "#/$defs/Point"}
    assert everything.spec.name == "everything"
    assert everything.spec.description == "Do everything.\n\nA second paragraph, about the details."
    assert everything.spec.parameters == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "what to do: with a colon"},
            "count": {"type": "integer", "default": 3},
            "ratio": {"type": "number", "default": 0.5},
            "sure": {"type": "boolean"},
            "kind": {"enum": ["a", "b"], "default": "a", "description": "which way"},
            "either": {"anyOf": [{"type": "integer"}, {"type": "string"}], "default": 1},
            "maybe": {"type": "string"},
            "names": {"type": "array", "items": {"type": "string"}},
            "place": place,
            "places": {"type": "array", "items": place},
        },
        "required": ["text"],
        "$defs": {
            "Point": {
                "description": "A place.",
                "type": "object",
                "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
                "required": ["x"],
            }
        },
    }


class Leaf(msgspec.Struct):
    """What is said
    over two lines."""

    title: str


class Tree(msgspec.Struct):
    children: list[Tree] = []


class Sea(msgspec.Struct, tag=True):
    depth: int


class Land(msgspec.Struct, tag=True):
    height: int


class Nested(msgspec.Struct):
    leaf: Leaf
    named: Annotated[Tree | None, msgspec.Meta(description="of a forest")] = None
    told: Annotated[Point | None, msgspec.Meta(description="here, not there")] = None
    where: Sea | Land | None = None
    seconds: float = 30.0


def test_what_is_used_once_stands_where_it_is_used() -> None:
    """What refers to itself, and what is told apart by a tag, is still found by its name."""
    schema = make_schema(Nested)
    assert schema["properties"] == {
        "leaf": {
            "description": "What is said over two lines.",
            "type": "object",
            "properties": {"title": {"type": "string"}},
            "required": ["title"],
        },
        "named": {"description": "of a forest", "$ref": "#/$defs/Tree"},
        "told": {
            "description": "here, not there",
            "type": "object",
            "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
            "required": ["x"],
        },
        "where": {
            "anyOf": [{"$ref": "#/$defs/Sea"}, {"$ref": "#/$defs/Land"}],
            "discriminator": {
                "propertyName": "type",
                "mapping": {"Sea": "#/$defs/Sea", "Land": "#/$defs/Land"},
            },
        },
        "seconds": {"type": "number", "default": 30},
    }
    assert schema["$defs"].keys() == {"Tree", "Sea", "Land"}
    assert b"30.0" not in msgspec.json.encode(schema)


def test_every_schema_has_an_object_at_its_top() -> None:
    send = SendMessage(frozenset())
    for each in (
        read_file,
        write_file,
        edit_file,
        list_files,
        search_files,
        shell,
        think,
        ask_user,
        send,
    ):
        assert each.spec.parameters["type"] == "object" and "$ref" not in each.spec.parameters, (
            each.spec.name
        )
        assert (
            each.spec.parameters.keys() <= {"type", "properties", "required", "$defs"}
            and len(each.spec.description) > 20
        )
        assert "context" not in each.spec.parameters["properties"]
        short = msgspec.json.encode(each.spec.parameters)
        assert b'"default":""' not in short and b'"null"' not in short and b'"title":"' not in short
    modes = write_file.spec.parameters["properties"]["mode"]["enum"]
    assert sorted(modes) == ["append", "create", "overwrite"]


ARGUMENTS: list[tuple[str, dict[str, Any]]] = [
    ('{"text": "x"}', {"count": 3, "sure": False, "kind": "a", "names": [], "place": None}),
    (
        '{"text": "x", "count": "7", "ratio": "1.25", "sure": "true"}',
        {"count": 7, "ratio": 1.25, "sure": True},
    ),
    ('{"text": "x", "count": 7.0, "sure": 1}', {"count": 7, "sure": True}),
    (
        '{"text": "x", "count": null, "names": null, "maybe": null}',
        {"count": 3, "names": [], "maybe": None},
    ),
    ('{"text": "x", "names": "[\\"a\\", \\"b\\"]"}', {"names": ["a", "b"]}),
    ('{"text": "x", "places": "[{\\"x\\": \\"1\\"}]"}', {"places": [{"x": 1, "y": 0}]}),
    ('{"text": "x", "place": {"x": 2}}', {"place": {"x": 2, "y": 0}}),
    ('"{\\"text\\": \\"quoted\\"}"', {"text": "quoted"}),
    ('{"text": "half \\ud800 pair"}', {"text": "half ? pair"}),
    ('{"text": "nul \\u0000"}', {"text": "nul \0"}),
    ('{"text": "a\\n\\u202eb"}', {"text": "a\n\u202eb"}),
]


@pytest.mark.parametrize(("arguments", "expected"), ARGUMENTS)
async def test_arguments_that_are_taken(
    hands: Hands, arguments: str, expected: dict[str, Any]
) -> None:
    outcome = await hands.outcome(everything, arguments.encode())
    text = outcome.parts[0].text  # type: ignore[union-attr]
    if "\0" not in str(expected):
        found = msgspec.json.decode(text)
        assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            "{}",
            (
                r"missing required field `text`\. Expected an object with: text, count\?, "
                r"ratio\?, sure\?, kind\?"
            ),
        ),
        (
            '{"text": "x", "cuont": 1}',
            r"unknown field `cuont`\. Expected an object with: text, count\?",
        ),
        ('{"text": "x", "text": "y"}', "the name 'text' occurs twice"),
        ('{"text": "x", "place": {"x": 1, "x": 2}}', "the name 'x' occurs twice"),
        ('{"text": 5}', r"Expected `str`, got `int` - at `\$.text`"),
        ('{"text": "x", "count": "many"}', r"Expected `int`, got `str` - at `\$.count`"),
        ('{"text": "x", "count": 1.5}', r"Expected `int`, got `float`"),
        ('{"text": "x", "kind": "c"}', r"Invalid enum value 'c' - at `\$.kind`"),
        ('{"text": "x", "ratio": "nan"}', "not a usable number"),
        ('{"text": "x", "ratio": NaN}', "not a usable number"),
        ('{"text": "x", "ratio": 1e400}', "not a usable number"),
        ('{"text": "x", "ratio": "1e400"}', "out of range"),
        ('{"text": "x", "names": "a, b"}', r"Expected `array`, got `str` - at `\$.names`"),
        ("[1]", "Expected `object`, got `array`"),
        ("5", "Expected `object`, got `int`"),
        ('"just words"', "Expected `object`, got `str`"),
        ('"{\\"text\\": \\"cut o"', "Expected `object`, got `str`"),
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
        ('{"text": "x", "count": ' + "1" * 1_000_000 + "}", "invalid arguments"),
    ],
)
async def test_arguments_that_are_refused(hands: Hands, arguments: str, sentence: str) -> None:
    with pytest.raises(ToolError, match=sentence):
        await hands.outcome(everything, arguments.encode())


@pytest.mark.parametrize("filler", ["a", "\\n", '\\"', "[", "{", "\\\\", " ", "\\ud800", "é"])
def test_a_megabyte_of_arguments_takes_no_time(filler: str) -> None:
    raw = msgspec.Raw(
        ('{"path": "f", "content": "' + filler * (1_000_000 // len(filler)) + '"}').encode()
    )
    arguments = write_file._arguments
    assert least_cpu_s(lambda: decode_arguments(raw, arguments, "write_file")) < 0.25


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("", "[no output]"),
        (None, "[no output]"),
        ({"a": [1, "é"]}, '{"a":[1,"é"]}'),
        ([], "[]"),
        (0, "0"),
        (1.5, "1.5"),
    ],
)
async def test_whatever_a_function_returns_is_a_result(
    hands: Hands, value: object, text: str
) -> None:
    @tool
    async def look() -> object:
        """Look."""
        return value

    assert await hands(look) == text


async def test_text_that_is_too_long_becomes_a_handle(hands: Hands) -> None:
    @tool
    async def long() -> str:
        """Say much."""
        return "ü" * 40_000

    said = await hands(long)
    assert (
        "of 80,000 bytes are not shown; read_output(handle='sha256:" in said
        and "\ufffd" not in said
    )
    assert len(said.encode()) < 25_000


ALIASES: list[tuple[FunctionTool, str, dict[str, Any]]] = [
    (shell, '{"cmd": "ls"}', {"command": "ls", "timeout_s": 120.0, "cwd": ""}),
    (
        shell,
        '{"command": "ls", "timeout": "5", "working_directory": "sub"}',
        {"timeout_s": 5.0, "cwd": "sub"},
    ),
    (
        read_file,
        '{"file_path": "f", "start": 2, "end": "4"}',
        {"path": "f", "start_line": 2, "end_line": 4},
    ),
    (read_file, '{"path": "f", "limit": 10}', {"start_line": 0, "end_line": 10}),
    (
        read_file,
        '{"path": "f", "start_line": 5, "max_lines": "10"}',
        {"start_line": 5, "end_line": 14},
    ),
    (
        write_file,
        '{"file_path": "f", "text": "x"}',
        {"path": "f", "content": "x", "mode": "overwrite"},
    ),
    (write_file, '{"path": "f", "content": "x", "overwrite": true}', {"mode": "overwrite"}),
    (write_file, '{"path": "f", "content": "x", "overwrite": false}', {"mode": "create"}),
    (list_files, '{"directory": "d", "max_depth": 3}', {"path": "d", "depth": 3}),
    (search_files, '{"query": "q", "dir": "d"}', {"text": "q", "path": "d"}),
    (search_files, '{"pattern": "q"}', {"text": "q", "path": "."}),
    (ask_user, '{"question": "?", "options": ["a"]}', {"choices": ["a"]}),
    (edit_file, '{"path": "f", "diff": "@@"}', {"patch": "@@", "edits": []}),
]


@pytest.mark.parametrize(("named", "arguments", "expected"), ALIASES)
def test_parameters_of_other_systems(
    named: FunctionTool, arguments: str, expected: dict[str, Any]
) -> None:
    values = decode_arguments(msgspec.Raw(arguments.encode()), named._arguments, named.spec.name)
    assert {name: getattr(values, name) for name in expected} == expected


@pytest.mark.parametrize(
    "arguments",
    [
        '{"path": "f", "edits": [{"old": "a", "new": "b"}]}',
        '{"path": "f", "edits": [{"old_text": "a", "new_text": "b"}]}',
        '{"path": "f", "edits": [{"old_content": "a", "new_content": "b"}]}',
        '{"file_path": "f", "edits": "[{\\"old_content\\": \\"a\\", \\"new_content\\": \\"b\\"}]"}',
        '{"path": "f", "edits": {"old": "a", "new": "b"}}',
        '{"path": "f", "old_text": "a", "new_text": "b"}',
        '{"path": "f", "old_string": "a", "new_string": "b"}',
        '{"path": "f", "old_str": "a", "new_str": "b"}',
    ],
)
async def test_edits_of_other_systems(hands: Hands, arguments: str) -> None:
    path = hands.write("f", b"a\n")
    await hands.outcome(edit_file, arguments.encode())
    assert path.read_bytes() == b"b\n"


@pytest.mark.parametrize(
    ("named", "arguments", "field"),
    [
        (shell, '{"cmd": "ls", "command": "rm"}', "cmd"),
        (shell, '{"cmd": "ls", "script": "rm"}', "script"),
        (read_file, '{"path": "a", "file": "b"}', "file"),
        (read_file, '{"path": "a", "limit": "many"}', "limit"),
    ],
)
def test_a_parameter_under_two_names_is_refused(
    named: FunctionTool, arguments: str, field: str
) -> None:
    with pytest.raises(ToolError, match=f"unknown field `{field}`"):
        decode_arguments(msgspec.Raw(arguments.encode()), named._arguments, named.spec.name)


def test_a_message_has_aliases_too() -> None:
    raw = msgspec.Raw(b'{"content": "hello", "thread": "7"}')
    assert decode_arguments(raw, OutgoingMessage, "send_message") == OutgoingMessage(
        "hello", thread_id="7"
    )


@tool
async def elsewhere(text: str, where: Context) -> str:
    """Says where it is."""
    return f"{text} {where.session} {where.principal.id} {where.agent} {where.key}"


async def test_the_context_is_found_by_its_annotation(hands: Hands) -> None:
    assert set(elsewhere.spec.parameters["properties"]) == {"text"}
    assert (
        await hands(elsewhere, text="at") == "at default/memory:1 ann default default/memory:1#1.c"
    )
    with pytest.raises(ToolError, match="unknown field `where`"):
        await hands(elsewhere, text="at", where="x")
