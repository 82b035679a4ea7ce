"""`deskhand init`: the home folder, made once and never overwritten."""

from __future__ import annotations

from pathlib import Path

import click

from ..runtime.config import Settings
from ..runtime.edit import write_private
from .plain import plain
from .run import agent_of, agent_option, config_option, fail, settings_of

CONFIG = """\
# Deskhand's configuration. Every key is optional; docs/configuration.md lists them, `deskhand config` shows what holds.

# defaults:
#   models: [anthropic/claude-sonnet-5]   # the first is used, the next when it fails; `deskhand model list`
#   steps: 50                             # model calls in one turn
# agents:
#   main: {}
# timezone: Europe/Berlin                 # UTC without it
"""
ENV = """\
# Keys, one a line; this file is readable by you alone.
# ANTHROPIC_API_KEY=
"""
FOLDERS = ("logs", "state", "shared", "skills", "jobs", "prompts")


@click.command()
@agent_option
@config_option
def init(agent: str, config: str | None) -> None:
    """Make the home folder and a first configuration. What is there already stays as it is.

    \b
    Example:
      deskhand init
    """
    settings = settings_of(config)
    try:
        made = make_home(settings, agent_of(settings, agent))
    except OSError as error:
        where = f"{error.filename or settings.home.root}: {error.strerror}"
        fail(f"cannot write {where}; set DESKHAND_HOME to a folder of yours")
    for path in made:
        click.echo(f"made  {plain(str(path))}")
    if not made:
        click.echo(f"Everything is there already: {settings.home.root}")
    if not settings.agent(agent_of(settings, agent)).models:
        click.echo("Next: choose a model: deskhand model use provider/name")
    click.echo("Talk to it: deskhand")


def make_home(settings: Settings, agent: str) -> list[Path]:
    """Make what is missing. Returns what was made. Raises OSError."""
    home, made = settings.home, []
    workspace = home.workspace(agent)
    folders = [home.root, *(home.root / name for name in FOLDERS), workspace, workspace / "memory"]
    for folder in folders:
        if not folder.is_dir():
            folder.mkdir(parents=True, mode=0o700)
            made.append(folder)
    for path, text in ((settings.file, CONFIG), (home.env, ENV)):
        if not path.exists():
            write_private(path, text)
            made.append(path)
    link = workspace / "shared"
    if not link.is_symlink() and not link.exists():
        link.symlink_to("../../../shared")
        made.append(link)
    return made
