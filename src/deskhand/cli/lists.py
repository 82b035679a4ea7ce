"""`deskhand tools` and `version`: what there is."""

from __future__ import annotations

from difflib import get_close_matches
from importlib.metadata import version as version_of

import click

from ..tools.aliases import TOOL_ALIASES
from ..tools.base import Tools
from ..tools.deferred import estimate_schema_tokens, list_offered_specs, make_schemas
from ..types.errors import ConfigError
from ..types.options import SessionOptions
from .encoded import to_json
from .plain import escape_control
from .run import (
    USAGE,
    agent_option,
    config_option,
    fail,
    limit_option,
    load_settings,
    resolve_agent,
)
from .table import print_table


@click.command()
@click.argument("name", default="")
@agent_option
@limit_option()
@config_option
def tools(name: str, agent: str, limit: int | None, config: str | None) -> None:
    """List an agent's tools with their effect and their approximate size in tokens. With a NAME,
    show the description of that tool that models get.

    \b
    Examples:
      deskhand tools --agent main
      deskhand tools read_file
    """
    from ..runtime.inventory import load_inventory

    settings = load_settings(config)
    try:
        found = load_inventory(settings, resolve_agent(settings, agent))
    except ConfigError as error:
        fail(str(error))
    for problem in (*map(str, found.failed), *found.problems):
        click.echo(f"deskhand: {escape_control(problem)}", err=True)
    if name:
        _print_tool(name, found.tools)
    elif not found.tools:
        click.echo("This agent has no tools: it can only talk.")
    else:
        _print_tools(found.tools, limit)


def _print_tools(found: Tools, limit: int | None) -> None:
    now = {spec.name for spec in list_offered_specs(found, SessionOptions())}
    size = {schema.name: estimate_schema_tokens(schema) for schema in make_schemas(found)}
    rows = [
        (
            s.name,
            s.effect,
            str(size[s.name]),
            "" if s.name in now else "deferred",
            " ".join(s.description.split()),
        )
        for s in (tool.spec for tool in found.values())
    ]
    print_table(("tool", "effect", "tokens", "", "what it does"), rows[:limit])
    later = size.keys() - now
    said = f"{len(now)} tools are in each request, about {sum(size[name] for name in now):,} tokens"
    more = (
        f"; {len(later)} are deferred, about {sum(size[name] for name in later):,} more once "
        "all are loaded"
    )
    click.echo(said + (more if later else ""), err=True)


def _print_tool(name: str, found: Tools) -> None:
    """What a model is told of one."""
    tool = found.get(TOOL_ALIASES.get(name, name))
    if tool is None:
        near = get_close_matches(name, found, 1)
        meant = f"did you mean {near[0]!r}?" if near else "list its tools with: deskhand tools"
        fail(f"this agent has no tool {name!r}; {meant}", USAGE)
    (schema,) = make_schemas({name: tool})
    deferred = "" if tool.spec in list_offered_specs(found, SessionOptions()) else ", deferred"
    click.echo(
        f"{tool.spec.effect}, about {estimate_schema_tokens(schema):,} tokens{deferred}", err=True
    )
    told = {"name": schema.name, "description": schema.description, "parameters": schema.parameters}
    click.echo(to_json(told, indent=2))


@click.command()
def version() -> None:
    """Show the version.

    \b
    Example:
      deskhand version
    """
    click.echo(f"deskhand {version_of('deskhand')}")
