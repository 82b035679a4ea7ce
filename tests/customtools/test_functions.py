"""Skills that are Python: what of a file is a tool, and that the file is never run to find out."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from deskhand.customtools.definitions import FileTool, FoundTools, Parameter
from deskhand.customtools.files import MOST_FILES, ToolFiles
from deskhand.customtools.functions import parse_functions
from deskhand.customtools.processes import ToolProcesses
from deskhand.customtools.tools import make_file_tools

SOURCE = '''
"""A module."""
import does_not_exist
raise SystemExit("nobody runs this")

async def forecast(city: str, days: int = 3, exact: bool = False, factor: float = 1, note: str | None = None):
    """

    The weather   to come.

    More of it.
    """

def not_async(a: int): ...

async def _private(a: int): ...

class Inside:
    async def method(self): ...

async def bare(text, *, at: "int" = LATER): ...
'''  # noqa: E501


def test_public_async_functions_are_tools() -> None:
    found = parse_functions(SOURCE.encode(), "skills/weather.py")
    assert found.problems == ()
    forecast, bare = found.tools
    assert forecast == FileTool(
        "forecast",
        "[skill] The weather to come.",
        "skills/weather.py",
        (
            Parameter("city", "str", True),
            Parameter("days", "int", False, 3),
            Parameter("exact", "bool", False, False),
            Parameter("factor", "float", False, 1),
            Parameter("note", "str", False),
        ),
    )
    assert bare.description == "[skill] bare"
    assert bare.parameters == (Parameter("text", "str", True), Parameter("at", "int", False))
    (tool, _), problems = make_file_tools(found, (), ToolProcesses())
    assert problems == () and tool.spec.effect == "local_write" and tool.spec.replay == "never"
    assert tool.spec.parameters["required"] == ["city"]
    kinds = {name: each.get("type") for name, each in tool.spec.parameters["properties"].items()}
    assert kinds == {
        "city": "string",
        "days": "integer",
        "exact": "boolean",
        "factor": "number",
        "note": "string",
    }


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("async def f(*a): ...", "all be named"),
        ("async def f(**a): ...", "all be named"),
        ("async def f(a, /): ...", "all be named"),
        ("async def f(a: list[int]): ...", "list[int] is not a supported type"),
        ("async def f(a: __import__('os').system('x')): ...", "is not a supported type"),
        ("async def f(context: str): ...", "cannot be called 'context'"),
        ("async def f(_a: str): ...", "cannot be called '_a'"),
        ("async def größe(): ...", "letters, digits and _"),
        (f"async def {'f' * 70}(): ...", "at most 64"),
        ("async def f(: ...", "is not valid Python in line 1"),
        ("x = '\0'", "is not valid Python"),
        (f"async def f(a: {'-' * 900}1): ...", "nested too deeply"),
        (f"async def f({', '.join(f'a{n}' for n in range(21))}): ...", "more than 20 parameters"),
        ("(" * 5000, "is not valid Python"),
        ("-" * 50000 + "1", "is not valid Python"),
        ("x = a" + ".a" * 20000, ""),
    ],
)
def test_what_is_no_tool_says_why(source: str, why: str) -> None:
    found = parse_functions(source.encode(), "skills/x.py")
    assert found.tools == () and (why in found.problems[0] if why or found.problems else True)


def test_the_last_of_a_name_counts_and_names_are_not_taken_twice() -> None:
    twice = parse_functions(
        b"async def f(a: int): 'one'\nasync def f(b: str): 'two'", "skills/a.py"
    )
    assert [each.description for each in twice.tools] == ["[skill] two"]
    assert (
        parse_functions(b"async def f(a: int): 'one'\nasync def f(*b): 'two'", "skills/a.py").tools
        == ()
    )
    other = FileTool("f", "[skill] other", "skills/b.py", ())
    shell, bash = (FileTool(name, "", "skills/b.py", ()) for name in ("shell", "bash"))
    tools, problems = make_file_tools(
        FoundTools((*twice.tools, other, shell, bash)), {"shell"}, ToolProcesses()
    )
    assert [tool.spec.description for tool in tools] == ["[skill] two"]
    assert [problem.split(" is not a tool")[0] for problem in problems] == [
        "skills/b.py: f",
        "skills/b.py: shell",
        "skills/b.py: bash",
    ]


def test_what_nobody_sees_is_written_out() -> None:
    (skill,) = parse_functions(
        "async def f():\n    'Do\u200b it.\U000e0041'".encode(), "skills/a.py"
    ).tools
    assert skill.description == "[skill] Do\\u200b it.\\U000e0041"
    (skill,) = parse_functions(
        "async def f(a: str = 'x\u200b', b: str = 'x'): ...".encode(), "skills/a.py"
    ).tools
    assert [each.default for each in skill.parameters] == [None, "x"]
    (skill,) = parse_functions(
        f"async def f():\n    '{'long ' * 200}'".encode(), "skills/a.py"
    ).tools
    assert len(skill.description) <= 310


def test_models_are_told_no_default_that_cannot_be_said() -> None:
    long = f"c: int = {'9' * 400}, e: str = '{'x' * 300}'"
    source = (
        f"async def f(a: float = 1e999, b: int = 10 ** 9, {long}, d: str = '\\ud800', g: bool = "
        "True): ..."
    )
    found = parse_functions(source.encode(), "skills/a.py")
    assert [each.default for each in found.tools[0].parameters] == [None] * 5 + [True]
    (tool,), _ = make_file_tools(found, (), ToolProcesses())
    assert msgspec.json.encode(tool.spec.parameters)


def test_a_folder_of_many_files_is_read_in_part(tmp_path: Path) -> None:
    (tmp_path / "skills").mkdir()
    for number in range(MOST_FILES + 5):
        (tmp_path / "skills" / f"f{number:03}.py").touch()
    assert len(ToolFiles(tmp_path).stamp(1e12)) == MOST_FILES


def test_files_are_followed(tmp_path: Path) -> None:
    skills = ToolFiles(tmp_path)
    assert skills.find(1e12) == FoundTools() and skills.stamp(1e12) == ()
    for folder in ("skills", "memory/skills"):
        (tmp_path / folder).mkdir(parents=True)
    file = tmp_path / "memory" / "skills" / "one.py"
    file.write_text("async def one(): 'First.'")
    (tmp_path / "skills" / "_hidden.py").write_text("async def hidden(): ...")
    (tmp_path / "skills" / "notes.md").write_text("async def notes(): ...")
    (tmp_path / "skills" / "large.py").write_text("#" * 70_000)
    (tmp_path / "skills" / "link.py").symlink_to("/etc/passwd")
    now = file.stat().st_mtime
    assert skills.find(now + 0.5) == FoundTools(), "it was written just now"
    found = skills.find(now + 2)
    before = skills.stamp(now + 2)
    assert [each.name for each in found.tools] == ["one"] and found.problems == (
        "skills/large.py is larger than 64 kB",
    )
    file.write_text("async def two(): 'Second one.'")
    assert [each.name for each in skills.find(now + 9).tools] == ["two"] and skills.stamp(
        now + 9
    ) != before
    file.unlink()
    assert skills.find(now + 9).tools == ()
