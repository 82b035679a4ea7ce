"""`deskhand tools` and `version`: what there is."""

from __future__ import annotations

from importlib.metadata import version as version_of

import click

from ..types.errors import ConfigError
from .plain import plain
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
    from ..runtime.toolbox import plugins_of, skills_of, toolbox

    settings = settings_of(config)
    try:
        name = agent_of(settings, agent)
        plugins = plugins_of(settings)
        found = [tool.spec for tool in toolbox(settings, name, skills_of(settings, name), plugins.tools).values()]
    except ConfigError as error:
        fail(str(error))
    for failed in plugins.failed:
        click.echo(f"deskhand: {plain(str(failed))}", err=True)
    if not found:
        click.echo("This agent has no tools: it can only talk.")
    else:
        table(("tool", "effect", "what it does"), [(s.name, s.effect, s.description.partition("\n")[0]) for s in found])


@click.command()
def version() -> None:
    """Show the version.

    \b
    Example:
      deskhand version
    """
    click.echo(f"deskhand {version_of('deskhand')}")
