"""`deskhand init`: the home folder, made once and never overwritten."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ..assembly.workspace_templates import FILE_PURPOSES, create_agent_files
from ..config.config import Settings
from ..types.folders import make_private_folder
from ..types.private_files import write_private_file
from .plain import escape_control
from .run import agent_option, config_option, fail, load_settings, resolve_agent

CONFIG_TEMPLATE = """\
# Deskhand's configuration. Every key is optional; docs/configuration.md lists them, `deskhand config` shows their values.

# defaults:
#   models: [anthropic/claude-sonnet-5]   # the first is used, the next when it fails; `deskhand model list`
#   steps: 50                             # model calls in one turn
#   preset: work                          # or coding, or one of yours: prompts/NAME/PROMPT.md
# agents:
#   main: {}
# memory:
#   inject_top_k: 3                       # most memories given with a message; default: 5
#   inject_min_relevance: 0.3             # how relevant they must be, 0 to 1; default: 0.1
# timezone: Europe/Berlin                 # default: UTC
"""  # noqa: E501
ENV_TEMPLATE = """\
# Keys, one per line. Only you can read this file.
# ANTHROPIC_API_KEY=
"""
FOLDERS = ("logs", "state", "shared", "skills", "jobs", "prompts")
FILE_DESCRIPTIONS = {".env": "keys of providers; only you can read it", **FILE_PURPOSES}
NAME_WIDTH = 24


@click.command()
@agent_option
@config_option
def init(agent: str, config: str | None) -> None:
    """Create the home folder, a first configuration, and files for each agent to fill in. Existing
    files are not changed.

    \b
    Example:
      deskhand init
    """
    settings = load_settings(config)
    names = [resolve_agent(settings, agent)] if agent else settings.agents
    try:
        made = make_home(settings, names)
    except OSError as error:
        where = f"{error.filename or settings.home.root}: {error.strerror}"
        fail(f"cannot write {where}; set DESKHAND_HOME to a folder that you can write")
    for line in _render_made(settings, made):
        click.echo(escape_control(line))
    if not made:
        click.echo(f"Nothing to do: everything already exists in {settings.home.root}")
    if not settings.agent(resolve_agent(settings, agent)).models:
        click.echo("Next: choose a model: deskhand model use provider/name")
    from .importing import find_import_hint

    hint = find_import_hint(settings)
    if hint:
        click.echo(escape_control(hint))
    click.echo("Start a chat: deskhand")


def make_home(settings: Settings, agents: Sequence[str]) -> list[Path]:
    """Make what is missing. Returns what was made. Raises OSError."""
    home = settings.home
    made = []
    for folder in (home.root, *(home.root / name for name in FOLDERS)):
        if not folder.is_dir():
            make_private_folder(folder)
            made.append(folder)
    for path, text in ((settings.file, CONFIG_TEMPLATE), (home.env, ENV_TEMPLATE)):
        if not path.exists():
            write_private_file(path, text)
            made.append(path)
    for agent in agents:
        made += create_agent_files(settings, agent)
    return made


def _render_made(settings: Settings, made: Sequence[Path]) -> list[str]:
    """What was made, by its folder: the files with what each is for, then the folders."""
    root = settings.home.root
    bases = [*(settings.home.workspace(agent) for agent in settings.agents), root]
    lines = []
    for base in reversed(bases):
        here = [path for path in made if path != base and _find_base(path, bases) == base]
        if here:
            lines.append(f"Created in {base}")
        folders = list[str]()
        for path in here:
            name = path.relative_to(base)
            if path.is_dir():
                folders.append(f"{name}/")
                continue
            about = "settings" if path == settings.file else FILE_DESCRIPTIONS.get(path.name, "")
            lines.append(f"  {name!s:<{NAME_WIDTH}}  {about}".rstrip())
        if folders:
            lines.append(f"  {'  '.join(folders)}")
    others = [path for path in made if path != root and _find_base(path, bases) is None]
    return lines + [f"Made {path}" for path in others]


def _find_base(path: Path, bases: Sequence[Path]) -> Path | None:
    """The innermost of these folders that the path lies in."""
    return next((base for base in bases if path != base and path.is_relative_to(base)), None)
