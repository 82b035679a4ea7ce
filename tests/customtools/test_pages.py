"""What the page on tools of one's own tells people to write works as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from deskhand.cli.root import cli
from deskhand.testing.temporary_home import TemporaryHome

from .test_custom_tools import write_file

DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
BLOCKS = _BLOCK.findall((DOCS / "tools.md").read_text())


def run(home: Path, *args: str, given: str = "") -> str:
    env = {"DESKHAND_HOME": str(home), "HOME": str(home)}
    return CliRunner().invoke(cli, args, env=env, prog_name="deskhand", input=given).output


async def test_each_file_gives_its_tool(tmp_path: Path) -> None:
    desk = TemporaryHome(tmp_path)
    for number, block in enumerate(BLOCKS):
        write_file(desk, f"file{number}.py", block)
    async with desk.running() as app:
        assert await desk.call(app, "convert", amount=10) == "9.40 CHF"
        assert await desk.call(app, "convert", amount=1, to="USD") == (
            "no rate for 'USD'; there are: CHF, SEK"
        )
        assert await desk.call(app, "my_tool", input="hello") == "HELLO"
        assert await desk.call(app, "other_tool", param="x") == "Result: x"
        assert await desk.call(app, "distance", km=10) == "13 km"


def test_a_file_is_added(tmp_path: Path) -> None:
    home = tmp_path / "home"
    file = tmp_path / "money.py"
    file.write_text(BLOCKS[0])
    said = run(home, "tools", "add", str(file), given="y\n")
    assert "convert(amount, to): Convert euros to another currency." in said
    assert "only reads, and runs without asking" in said and "Added " in said
    assert run(home, "tools", "convert").startswith("none, about ")
    said = run(home, "tools", "add", str(file))
    assert "Added " in said, "the same file is nothing to ask about"
    file.write_text(BLOCKS[0].replace("def convert", "def other"))
    said = run(home, "tools", "add", str(file), given="n\n")
    assert "Replace " in said and "Added " not in said
    assert "has no tool 'other'" in run(home, "tools", "other")


def test_its_hosts_are_asked_for_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    file = tmp_path / "weather.py"
    file.write_text(
        "from deskhand.customtools import tool\n"
        "@tool(hosts=['api.example.org'], secrets=['weather'])\n"
        "def now() -> str:\n    'The weather now.'\n"
    )
    said = run(home, "tools", "add", str(file), given="y\ny\n")
    assert "connects to api.example.org" in said
    assert "Let commands of default reach api.example.org?" in said
    assert "deskhand secrets rule weather api.example.org" in said
    assert "api.example.org  default  (by owner)" in run(home, "hosts", "list")
    assert "Let commands" not in run(home, "tools", "add", str(file))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            "from deskhand.customtools import tool\n@tool\ndef shell(): 'Mine.'",
            "shell is not a tool",
        ),
        ("import nothing_there, deskhand.customtools", "(line 1 of "),
        ("def f(:", "is not valid Python in line 1"),
        ("x = 1", "it gives no tools"),
    ],
)
def test_one_that_gives_none_is_not_added(tmp_path: Path, source: str, said: str) -> None:
    home = tmp_path / "home"
    file = tmp_path / "broken.py"
    file.write_text(source)
    found = run(home, "tools", "add", str(file), given="y\n")
    assert said in found and "was not added: it gives no tools" in found
    assert not (home / "agents" / "default" / "workspace" / "tools").exists()
