"""`deskhand tools`: which there are, and adding files of them."""

from __future__ import annotations

import tempfile
from difflib import get_close_matches
from pathlib import Path

import anyio
import click

from ..assembly.workspace_tools import find_all_tools
from ..config.clock import SystemClock
from ..config.config import Settings, workspace_of
from ..customtools.definitions import FoundTools
from ..customtools.processes import ToolProcesses
from ..customtools.tools import CustomTool, make_file_tools
from ..sandbox.choose import open_sandbox
from ..tools.aliases import TOOL_ALIASES
from ..tools.base import Tools
from ..tools.deferred import estimate_schema_tokens, list_offered_specs, make_schemas
from ..types.errors import ConfigError
from ..types.options import SessionOptions
from ..types.private_files import write_private_file
from ..workspace.scope import SandboxProvider
from .encoded import to_json
from .hosts import offer_hosts
from .plain import escape_control, shorten_line
from .run import (
    USAGE,
    Listing,
    agent_option,
    config_option,
    fail,
    json_option,
    limit_option,
    load_settings,
    resolve_agent,
)
from .table import print_json_rows, print_table


class ToolsGroup(Listing):
    """`deskhand tools read_file` shows that tool."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands:
            args = ["list", *args]
        return super().resolve_command(ctx, args)


@click.group(cls=ToolsGroup)
def tools() -> None:
    """List tools, and add your own from Python files.

    \b
    Examples:
      deskhand tools --agent main
      deskhand tools read_file
      deskhand tools add weather.py
    """


TOOL_COLUMNS = ("tool", "effect", "tokens", "deferred", "description")


@tools.command("list")
@click.argument("name", default="")
@agent_option
@limit_option()
@json_option
@config_option
def list_(name: str, agent: str, limit: int | None, as_json: bool, config: str | None) -> None:
    """List an agent's tools with their effect and their approximate size in tokens. With a NAME,
    show the description of that tool that models get.

    \b
    Examples:
      deskhand tools list --agent main
      deskhand tools list read_file
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
    elif as_json:
        print_json_rows(TOOL_COLUMNS, _list_tools(found.tools)[:limit])
    elif not found.tools:
        click.echo("This agent has no tools: it can only talk.")
    else:
        _print_tools(found.tools, limit)


@tools.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--yes", "-y", is_flag=True, help="Do not ask. Its hosts are not allowed by this.")
@agent_option
@config_option
def add(file: Path, yes: bool, agent: str, config: str | None) -> None:
    """Add the tools of a Python file to an agent.

    The file is loaded in the sandbox first, and you see its tools, and the hosts that they connect
    to, before it is copied into the workspace.

    \b
    Examples:
      deskhand tools add weather.py
      deskhand tools add weather.py --agent home
    """
    settings = load_settings(config)
    name = resolve_agent(settings, agent)
    folder = workspace_of(settings, name) / "tools"
    source = _read_source(file)
    place = folder / file.name
    there = place.read_bytes() if place.is_file() else None
    found = _load_file(source, file.name)
    taken = _names_beside(settings, name, f"tools/{file.name}")
    usable, problems = make_file_tools(found, taken, ToolProcesses())
    for problem in problems:
        click.echo(f"deskhand: {escape_control(problem)}", err=True)
    if not usable:
        fail(f"{file} was not added: it gives no tools", USAGE)
    _show_tools(found)
    change = "Add them" if there is None else f"Replace {escape_control(str(place))}"
    if not yes and there != source and not click.confirm(f"{change}?", default=True):
        return
    write_private_file(place, source.decode())
    click.echo(f"Added {escape_control(str(place))}. A running Deskhand has its tools in a moment.")
    _offer_hosts(settings, name, found, yes=yes)


def _read_source(file: Path) -> bytes:
    source = file.read_bytes()
    try:
        source.decode()
    except UnicodeDecodeError:
        fail(f"{file} is not text in UTF-8", USAGE)
    return source


def _load_file(source: bytes, name: str) -> FoundTools:
    """What the tools of this file would be."""
    with tempfile.TemporaryDirectory(prefix="deskhand-tools-") as staging:
        workspace = Path(staging).resolve()
        place = workspace / "tools" / name
        place.parent.mkdir()
        place.write_bytes(source)
        sandbox = SandboxProvider(open_sandbox, SystemClock().now)
        return anyio.run(find_all_tools, workspace, sandbox)


def _names_beside(settings: Settings, agent: str, own: str) -> set[str]:
    """The names of the agent's other tools."""
    from ..runtime.inventory import load_inventory

    try:
        found = load_inventory(settings, agent)
    except ConfigError as error:
        fail(str(error))
    return {
        name
        for name, tool in found.tools.items()
        if not (isinstance(tool, CustomTool) and tool.file == own)
    }


def _show_tools(found: FoundTools) -> None:
    for tool in found.tools:
        names = [each.name for each in tool.parameters]
        names += (tool.schema or {}).get("properties", {})
        click.echo(
            escape_control(
                f"{tool.name}({', '.join(names)}): {shorten_line(tool.description, 100)}"
            )
        )
        if tool.reads_only:
            asks = "" if tool.hosts else ", and runs without asking"
            click.echo(f"  only reads{asks}")
        if tool.hosts:
            click.echo(escape_control(f"  connects to {', '.join(tool.hosts)}"))
        if tool.secrets:
            click.echo(escape_control(f"  uses the secrets {', '.join(tool.secrets)}"))


def _offer_hosts(settings: Settings, agent: str, found: FoundTools, *, yes: bool) -> None:
    """Ask once for what the tools connect to, and say how they get their secrets."""
    offer_hosts(settings, agent, [host for tool in found.tools for host in tool.hosts], yes=yes)
    for tool in found.tools:
        for secret in tool.secrets:
            for host in tool.hosts:
                click.echo(f"For its secret: deskhand secrets rule {secret} {host}")


def _list_tools(found: Tools) -> list[tuple[str, str, int, bool, str]]:
    """The tools by `TOOL_COLUMNS`."""
    now = {spec.name for spec in list_offered_specs(found, SessionOptions())}
    size = {schema.name: estimate_schema_tokens(schema) for schema in make_schemas(found)}
    return [
        (s.name, s.effect, size[s.name], s.name not in now, " ".join(s.description.split()))
        for s in (tool.spec for tool in found.values())
    ]


def _print_tools(found: Tools, limit: int | None) -> None:
    known = _list_tools(found)
    rows = [
        (name, effect, str(tokens), "deferred" if deferred else "", about)
        for name, effect, tokens, deferred, about in known
    ]
    print_table(("tool", "effect", "tokens", "", "what it does"), rows[:limit])
    size = {name: tokens for name, _, tokens, _, _ in known}
    now = {name for name, _, _, deferred, _ in known if not deferred}
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
