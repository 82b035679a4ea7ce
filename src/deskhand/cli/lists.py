"""`deskhand tools`, `skills` and `version`: what there is."""

from __future__ import annotations

from importlib.metadata import version as version_of
from pathlib import Path

import click

from ..runtime.config import Settings
from ..types.errors import ConfigError
from .plain import one_line, plain
from .run import agent_of, agent_option, config_option, fail, settings_of
from .table import table


@click.command()
@agent_option
@config_option
def tools(agent: str, config: str | None) -> None:
    """List what the agents can do, and what each of it does to the world.

    \b
    Example:
      deskhand tools --agent main
    """
    from ..runtime.toolbox import skills_of, toolbox

    settings = settings_of(config)
    try:
        name = agent_of(settings, agent)
        found = [tool.spec for tool in toolbox(settings, name, skills_of(settings, name)).values()]
    except ConfigError as error:
        fail(str(error))
    if not found:
        click.echo("This agent has no tools: it can only talk.")
    else:
        table(("tool", "effect", "what it does"), [(s.name, s.effect, s.description.partition("\n")[0]) for s in found])


@click.command()
@agent_option
@config_option
def skills(agent: str, config: str | None) -> None:
    """List the skills that agents may read.

    \b
    Example:
      deskhand skills
    """
    settings = settings_of(config)
    rows = [
        (path.parent.name, one_line(_description(path), 70), plain(str(path.parent)))
        for path in _skill_files(settings, agent_of(settings, agent))
    ]
    if rows:
        table(("skill", "what it is for", "where"), rows)
    else:
        click.echo(f"No skills yet. A skill is a folder with a SKILL.md in {settings.home.skills}")


def _skill_files(settings: Settings, agent: str) -> list[Path]:
    folders = (settings.home.skills, settings.home.workspace(agent) / "skills")
    return [path for folder in folders for path in sorted(folder.glob("*/SKILL.md"))]


def _description(path: Path) -> str:
    try:
        with path.open(errors="replace") as file:
            lines = file.read(8192).splitlines()
    except OSError:
        return "(cannot be read)"
    found = [line.partition(":")[2].strip(" \"'") for line in lines if line.startswith("description:")]
    return found[0] if found else ""


@click.command()
def version() -> None:
    """Show the version.

    \b
    Example:
      deskhand version
    """
    click.echo(f"deskhand {version_of('deskhand')}")
