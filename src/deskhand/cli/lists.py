"""`deskhand tools` and `version`: what there is."""

from __future__ import annotations

from importlib.metadata import version as version_of

import click

from ..policy.profiles import offers
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
    from ..runtime.reach import workspace_of
    from ..runtime.toolbox import ours, plugins_of, skills_of, toolbox
    from ..skills.python import PythonSkills, python_tools

    settings = settings_of(config)
    try:
        name = agent_of(settings, agent)
        plugins = plugins_of(settings)
        skills = skills_of(settings, name)
        found = [tool.spec for tool in toolbox(settings, name, skills, plugins=plugins.tools).values()]
        taken = {tool.spec.name for tool in (*ours(settings, name, skills), *plugins.tools)}
        python, problems = python_tools(PythonSkills(workspace_of(settings, name)).find(0.0), taken)
        found += [tool.spec for tool in python if offers(settings.offered(name), tool.spec.name)]
    except ConfigError as error:
        fail(str(error))
    for failed in plugins.failed:
        click.echo(f"deskhand: {plain(str(failed))}", err=True)
    for problem in problems:
        click.echo(f"deskhand: {plain(problem)}", err=True)
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
