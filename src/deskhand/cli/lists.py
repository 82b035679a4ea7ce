"""`deskhand tools` and `version`: what there is."""

from __future__ import annotations

from difflib import get_close_matches
from importlib.metadata import version as version_of

import click
import msgspec

from ..models.base import ToolSchema, schema_of
from ..models.tokens import CHARS_PER_TOKEN
from ..tools.aliases import TOOLS
from ..tools.base import Spec, Tools
from ..types.errors import ConfigError
from .plain import plain
from .run import USAGE, agent_of, agent_option, config_option, fail, settings_of
from .table import table


@click.command()
@click.argument("name", default="")
@agent_option
@config_option
def tools(name: str, agent: str, config: str | None) -> None:
    """List what an agent can do: each tool with what it does to the world, and about how many tokens it takes in each
    request. With a NAME, show what models are told of that tool.

    \b
    Examples:
      deskhand tools --agent main
      deskhand tools read_file
    """
    from ..runtime.inventory import inventory

    settings = settings_of(config)
    try:
        found = inventory(settings, agent_of(settings, agent))
    except ConfigError as error:
        fail(str(error))
    for problem in (*map(str, found.failed), *found.problems):
        click.echo(f"deskhand: {plain(problem)}", err=True)
    if name:
        _show(name, found.tools)
    elif not found.tools:
        click.echo("This agent has no tools: it can only talk.")
    else:
        _list(found.tools)


def _list(found: Tools) -> None:
    specs = [tool.spec for tool in found.values()]
    rows = [(s.name, s.effect, str(_tokens(_schema(s))), " ".join(s.description.split())) for s in specs]
    table(("tool", "effect", "tokens", "what it does"), rows)
    every = sum(_tokens(_schema(spec)) for spec in specs)
    click.echo(f"{len(specs)} tools, about {every:,} tokens in each request", err=True)


def _show(name: str, found: Tools) -> None:
    """What a model is told of one."""
    tool = found.get(TOOLS.get(name, name))
    if tool is None:
        near = get_close_matches(name, found, 1)
        meant = f"did you mean {near[0]!r}?" if near else "`deskhand tools` lists those that it has"
        fail(f"this agent has no tool {name!r}; {meant}", USAGE)
    schema = _schema(tool.spec)
    click.echo(f"{tool.spec.effect}, about {_tokens(schema):,} tokens", err=True)
    told = {"name": schema.name, "description": schema.description, "parameters": schema.parameters}
    click.echo(plain(msgspec.json.format(msgspec.json.encode(told), indent=2).decode()))


def _schema(spec: Spec) -> ToolSchema:
    return schema_of(spec.name, spec.description, spec.parameters)


def _tokens(schema: ToolSchema) -> int:
    return int(schema.size / CHARS_PER_TOKEN)


@click.command()
def version() -> None:
    """Show the version.

    \b
    Example:
      deskhand version
    """
    click.echo(f"deskhand {version_of('deskhand')}")
