"""What `deskhand plugins new` makes: a plugin that works, with one of each thing."""

from __future__ import annotations

_PLUGIN = '''"""NAME: a plugin for Deskhand."""

from deskhand.tools.define import tool
from deskhand.tools.hooks import HookContext
from deskhand.tools.plugin import Plugin
from deskhand.types.errors import ToolError
from deskhand.types.labels import LOCAL


@tool(reads=LOCAL)
async def count_words(text: str, at_least: int = 1) -> int:
    """Count the words of a text.

    at_least: how many letters a word has
    """
    if at_least < 1:
        raise ToolError("at_least is 1 or more")
    return sum(len(word) >= at_least for word in text.split())


async def note_answer(context: HookContext) -> None:
    """Called when an answer is stored. See docs/extending.md for the other hooks."""


class CLASS(Plugin):
    def get_tools(self):
        return [count_words]

    def get_system_prompt(self):
        return "When somebody asks how long a text is, count its words."

    def get_hooks(self):
        return {"after_agent_end": note_answer}


plugin = CLASS
'''
_PROJECT = """[project]
name = "deskhand-NAME"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = ["deskhand"]

[project.entry-points."deskhand.plugins"]
NAME = "MODULE:CLASS"

# A package can bring more; see docs/extending.md:
# [project.entry-points."deskhand.channels"]
# NAME = "MODULE_channel:open_channel"
# [project.entry-points."deskhand.models"]
# NAME = "MODULE_model:open_model"

[build-system]
requires = ["setuptools >=77"]
build-backend = "setuptools.build_meta"

[tool.setuptools]
py-modules = ["MODULE"]
"""


def make_plugin_file(name: str) -> str:
    """The source of a plugin of this name."""
    return _fill(_PLUGIN, name)


def make_package_files(name: str) -> dict[str, str]:
    """The files of a package that brings it, by their paths."""
    return {"pyproject.toml": _fill(_PROJECT, name), f"{_module_of(name)}.py": _fill(_PLUGIN, name)}


def _module_of(name: str) -> str:
    return f"deskhand_{name.replace('-', '_')}"


def _fill(template: str, name: str) -> str:
    title = "".join(part.capitalize() for part in name.replace("-", "_").split("_"))
    return (
        template.replace("NAME", name).replace("CLASS", title).replace("MODULE", _module_of(name))
    )
