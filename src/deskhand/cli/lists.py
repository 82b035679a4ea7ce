"""`deskhand agents`, `tools`, `skills` and `version`: what there is."""

from __future__ import annotations

import sys
from importlib.metadata import version as version_of

import click

from ..types.errors import ConfigError
from .plain import one_line
from .run import agent_of, agent_option, config_option, fail, settings_of
from .table import table


@click.command()
@config_option
def agents(config: str | None) -> None:
    """List the agents of the configuration; the first one answers where none is named.

    \b
    Example:
      deskhand agents
    """
    settings = settings_of(config)
    rows = []
    for name in settings.agents:
        agent = settings.agent(name)
        place = agent.workspace or str(settings.home.workspace(name))
        rows.append((name, ", ".join(agent.models) or "no model", ", ".join(agent.tools), place))
    table(("agent", "models", "tools", "workspace"), rows)


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
    from ..runtime.toolbox import skills_of

    settings = settings_of(config)
    found = skills_of(settings, agent_of(settings, agent)).find().values()
    rows = [
        (
            skill.name,
            one_line(skill.problem or skill.description, 70),
            skill.source if skill.source == "bundled" else str(skill.folder),
        )
        for skill in found
    ]
    table(("skill", "what it is for", "where"), rows)
    if all(skill.source == "bundled" for skill in found) and sys.stdout.isatty():
        click.echo(f"Add your own: a folder with a SKILL.md in {settings.home.skills}")


@click.command()
def version() -> None:
    """Show the version.

    \b
    Example:
      deskhand version
    """
    click.echo(f"deskhand {version_of('deskhand')}")
