"""The tutorial on plugins, step by step, as somebody does it who reads it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from deskhand.cli.root import cli
from deskhand.config.config import Home
from deskhand.testing.temporary_home import TemporaryHome

PAGE = (Path(__file__).parents[2] / "docs" / "plugin-tutorial.md").read_text()
FIRST, LATER, ABOVE = re.findall(r"```python\n(.*?)```", PAGE, re.S)
COMMANDS = re.findall(r"^deskhand .+$", PAGE, re.M)


def run(home: Path, line: str, given: str = "") -> str:
    env = {"DESKHAND_HOME": str(home), "HOME": str(home), "DESKHAND_MODELS": "scripted/echo"}
    done = CliRunner().invoke(cli, line.split()[1:], env=env, prog_name="deskhand", input=given)
    assert done.exit_code == 0, done.output
    return done.output


def test_each_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "home"
    new, check, enable, tools, disable, again = COMMANDS
    run(home, new)
    file = home / "plugins" / "tides.py"
    assert "tool count_words" in run(home, check), "what was made works as it is"
    file.write_text(FIRST)
    assert "tool high_tide(harbour), none: When the next high tide is" in run(home, check)
    assert "Enabled tides: high_tide" in run(home, enable)
    assert "brest, dover or cuxhaven" in run(home, tools)
    file.write_text(FIRST.partition("class Tides")[0] + ABOVE + "\n" + LATER + "\nplugin = Tides\n")
    run(home, disable)
    assert "Enabled tides: high_tide, a prompt, 1 hook" in run(home, again)

    other = tmp_path / "other"
    said = run(other, f"deskhand plugins add {file}", given="y\n")
    assert "outside the sandbox" in said and "Added tides: high_tide" in said
    run(home, "deskhand plugins new waves --package")
    assert (tmp_path / "deskhand-waves" / "pyproject.toml").is_file()


async def test_its_tool_works(tmp_path: Path) -> None:
    home = tmp_path / "home"
    run(home, "deskhand plugins new tides")
    (home / "plugins" / "tides.py").write_text(FIRST)
    desk = TemporaryHome(home, plugins=["tides"])
    async with desk.running() as app:
        said = await desk.call(app, "high_tide", harbour="Brest")
        assert re.fullmatch(r"\d\d:\d\d UTC", said)
        assert "there are: brest, dover, cuxhaven" in await desk.call(app, "high_tide", harbour="x")


def test_the_package_can_be_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(tmp_path / "home", "deskhand plugins new waves --package")
    code = (
        "from deskhand_waves import plugin; from deskhand.tools.plugin import Plugin; "
        "assert issubclass(plugin, Plugin)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path / "deskhand-waves")


FOLDER = {
    "__init__.py": (
        "from .words import TEXT\nfrom deskhand.tools.plugin import Plugin\n"
        "class Mine(Plugin):\n    def get_system_prompt(self): return TEXT\nplugin = Mine\n"
    ),
    "words.py": "TEXT = 'from another file'\n",
}


def test_a_folder_is_a_plugin(tmp_path: Path) -> None:
    home = tmp_path / "home"
    folder = tmp_path / "mine"
    folder.mkdir()
    for name, text in FOLDER.items():
        (folder / name).write_text(text)
    assert "Added mine: a prompt" in run(home, f"deskhand plugins add {folder}", given="y\n")
    assert "prompt, 17 characters: from another file" in run(home, "deskhand plugins check mine")
    inner = Home(home).plugins / "mine" / "words.py"
    inner.write_text("TEXT = 1 / 0\n")
    failed = CliRunner().invoke(
        cli,
        ["plugins", "check", "mine"],
        env={"DESKHAND_HOME": str(home), "HOME": str(home)},
    )
    assert failed.exit_code == 2 and "division by zero (line 1 of words.py)" in failed.output
    inner.write_text("TEXT = 'again'\n")
    inner.chmod(0o666)
    failed = CliRunner().invoke(
        cli,
        ["plugins", "check", "mine"],
        env={"DESKHAND_HOME": str(home), "HOME": str(home)},
    )
    assert "others can write it" in failed.output


REGISTERING = """
from deskhand.tools.define import tool
from deskhand.tools.plugin import Plugin

@tool
async def shout(text: str) -> str:
    "Say it loudly."
    return text.upper()

async def see(context): ...

class Old(Plugin):
    def register_tools(self, registry): registry.register(shout)
    def register_hooks(self, hooks): hooks.register("BEFORE_TOOL_CALL", see)
    def attach_prompt(self, prompt): prompt.attach("Shout when asked to.")
    def unregister_tools(self, registry=None): print("tools gone")
    def detach_prompt(self, prompt=None): raise RuntimeError("it fails as it goes")

plugin = Old
"""


def test_one_that_registers_by_itself(tmp_path: Path) -> None:
    from deskhand.assembly.plugins import Plugins
    from deskhand.assembly.tools import load_configured_plugins

    from .test_plugins import settings_of

    settings = settings_of(tmp_path, "old", old=REGISTERING)
    loaded = load_configured_plugins(settings)
    (plugin,) = loaded.loaded
    assert [tool.spec.name for tool in plugin.tools] == ["shout"]
    assert list(plugin.hooks) == ["before_tool_call"] and plugin.prompt == "Shout when asked to."
    assert load_configured_plugins(settings_of(tmp_path), loaded) == Plugins()
