"""`deskhand mcp`: servers that bring tools, and what of theirs was accepted."""

from __future__ import annotations

import webbrowser
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import click
import msgspec
from msgspec.structs import replace

from ..config.address import read_address
from ..config.clock import SystemClock
from ..config.config import Settings
from ..config.first_settings import remove_setting, store_setting
from ..config.mcp_servers import McpServerConfig, check_mcp_servers, find_variables
from ..mcp.definitions import KnownTool, count_states, describe_change
from ..mcp.queries import accept_tool, forget_server, known_tools
from ..mcp.servers import NO_EXTRA, McpServers
from ..mcp.setup import make_foreign_config, make_program_config, read_foreign_servers
from ..mcp.sign_in_secrets import ServerLogin
from ..runtime.app import App
from ..secrets.redaction import open_secrets
from ..store.sql_store import SqlStore
from ..tools.deferred import MAX_LINE_CHARS
from ..types.errors import ConfigError, DeskhandError
from ..types.people import OWNER_NAME
from .plain import escape_control, shorten_line
from .run import (
    USAGE,
    Listing,
    config_option,
    fail,
    json_option,
    limit_option,
    load_settings,
    with_store,
)
from .table import print_json_rows, print_table
from .temporary_app import with_app
from .tokens import parse_scopes
from .users import with_people

SHOWN_TOOLS = 15
TOKEN_S = 30 * 86_400.0
"""The longest that a program is served over standard streams."""


@click.group(cls=Listing)
def mcp() -> None:
    """List, add and review MCP servers, which bring tools of their own.

    \b
    Examples:
      deskhand mcp
      deskhand mcp add time -- uvx mcp-server-time
      deskhand mcp add docs https://mcp.example.com/mcp
      deskhand mcp review docs
    """


@mcp.command("list")
@limit_option()
@json_option
@config_option
def list_(limit: int | None, as_json: bool, config: str | None) -> None:
    """List MCP servers, with how many of their tools are used and how many rest.

    \b
    Example:
      deskhand mcp list
    """
    settings = load_settings(config)
    servers = settings.config.mcp
    if not servers and not as_json:
        click.echo("No MCP servers yet. Add one: deskhand mcp add NAME -- COMMAND, or NAME URL")
        return
    known = _read_known(settings)
    rows = []
    listed: list[tuple[str | bool | int, ...]] = []
    for name, server in servers.items():
        counts = count_states(tool for tool in known if tool.server == name)
        resting = counts["changed"] + counts["new"]
        place = _describe_place(server)
        listed.append((name, server.enabled, counts["accepted"], resting, place))
        state = "on" if server.enabled else "off"
        tools = f"{counts['accepted']} tools" + (f", {resting} to review" if resting else "")
        rows.append((name, state, tools, place))
    if as_json:
        print_json_rows(("server", "enabled", "tools", "to_review", "where"), listed[:limit])
        return
    print_table(("server", "state", "tools", "where"), rows[:limit])


@mcp.command(context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("where", nargs=-1, required=True)
@click.option("--env", "-e", multiple=True, metavar="KEY=VALUE", help="Variable for the program.")
@click.option("--header", multiple=True, metavar="NAME=VALUE", help="Header for a URL.")
@click.option("--host", multiple=True, help="Host that the program may reach.")
@click.option("--folder", multiple=True, help="Folder that it sees; PATH:rw to let it write.")
@click.option("--trusted", is_flag=True, help="Take what it says for no content from outside.")
@click.option("--read-only", multiple=True, metavar="PATTERN", help="Tools that only look.")
@click.option("--elicitation", is_flag=True, help="Let it ask people while a tool of it is called.")
@click.option("--sampling", is_flag=True, help="Let it ask the agent's cheap model meanwhile.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@config_option
def add(name: str, where: tuple[str, ...], yes: bool, config: str | None, **given: Any) -> None:
    """Add a server: a program that is run in the sandbox, or the URL of one on the web.

    It is tried first, and you see its tools before they are used. Write ${NAME} in a variable or a
    header for a value of the environment or of `.env`, so that no key stands in the configuration.
    Write -- before a command with options.

    \b
    Examples:
      deskhand mcp add time -- uvx mcp-server-time
      deskhand mcp add bugs -e 'K=${K}' --host bugs.org -- npx bugs-mcp
      deskhand mcp add docs https://mcp.example.com/mcp --header 'X-Key=${KEY}'
    """
    settings = load_settings(config)
    if name in settings.config.mcp:
        fail(f"there is an MCP server {name!r} already: deskhand mcp remove {name}", USAGE)
    try:
        server = _make_config(where, given)
        check_mcp_servers({name: server})
    except DeskhandError as error:
        fail(str(error), USAGE)
    found = _try_server(settings, name, server, fresh=True)
    _show_server(name, server, found)
    if not yes and not click.confirm("Use these tools?", default=True):
        with_store(settings, lambda store: store.change([forget_server(name)]))
        return
    store_setting(settings, ["mcp", name], msgspec.to_builtins(server))
    click.echo(f"Added {escape_control(name)}. A running Deskhand has its tools within a second.")


def _make_config(where: tuple[str, ...], given: dict[str, Any]) -> McpServerConfig:
    """Raises ConfigError."""
    names = ("trusted", "read_only", "elicitation", "sampling")
    more: dict[str, Any] = {name: given[name] for name in names}
    if where[0].startswith(("http://", "https://")):
        return McpServerConfig(url=where[0], headers=_pairs(given["header"]), **more)
    env = _pairs(given["env"])
    folders = _expand(given["folder"])
    return make_program_config(where, env=env, hosts=given["host"], folders=folders, **more)


@mcp.command()
@click.argument("name")
@config_option
def test(name: str, config: str | None) -> None:
    """Connect a server, and list its tools.

    \b
    Example:
      deskhand mcp test docs
    """
    settings = load_settings(config)
    server = _find(settings, name)
    _show_server(name, server, _try_server(settings, name, server))


@mcp.command()
@click.argument("name")
@click.option("--yes", "-y", is_flag=True, help="Accept without asking.")
@config_option
def review(name: str, yes: bool, config: str | None) -> None:
    """Show how the tools of a server have changed since they were accepted, and accept them.

    \b
    Example:
      deskhand mcp review docs
    """
    settings = load_settings(config)
    _find(settings, name)
    waiting = [tool for tool in _read_known(settings, name) if tool.state != "accepted"]
    if not waiting:
        click.echo(f"Nothing to review: all tools of {escape_control(name)} are as accepted.")
        return
    for tool in waiting:
        click.echo(click.style(f"{escape_control(tool.name)} is {tool.state}", bold=True))
        click.echo(escape_control(describe_change(tool)))
    if not yes and not click.confirm(f"Accept {len(waiting)} as they are now?", default=False):
        return

    async def accept(store: SqlStore) -> None:
        now = SystemClock().now()
        await store.change([row for tool in waiting for row in accept_tool(tool, now)])

    with_store(settings, accept)
    click.echo(f"Accepted: {', '.join(escape_control(tool.name) for tool in waiting)}")


@mcp.command()
@click.argument("name")
@config_option
def remove(name: str, config: str | None) -> None:
    """Remove a server from the configuration. Its folder stays.

    \b
    Example:
      deskhand mcp remove docs
    """
    settings = load_settings(config)
    _find(settings, name)
    remove_setting(settings, ["mcp", name])
    with_store(settings, lambda store: store.change([forget_server(name)]))
    click.echo(f"Removed {escape_control(name)}.")


@mcp.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--yes", "-y", is_flag=True, help="Start each without asking.")
@config_option
def import_(file: Path, yes: bool, config: str | None) -> None:
    """Add the servers of another program's file: mcp_servers.json, .mcp.json, or the configuration
    of an agent that names them.

    You are shown what each would run and reach before it is started; what cannot be used is named
    and left out.

    \b
    Example:
      deskhand mcp import ~/project/.mcp.json
    """
    settings = load_settings(config)
    try:
        servers = read_foreign_servers(file)
    except (DeskhandError, OSError) as error:
        fail(str(error), USAGE)
    failed = 0
    for name, foreign in servers.items():
        try:
            server = make_foreign_config(foreign)
            check_mcp_servers({name: server})
            if name in settings.config.mcp:
                raise ConfigError("there is one of this name already")
            _show_reach(name, server)
            if not yes and not click.confirm("Start it?", default=False):
                continue
            found = _connect(settings, name, server)
        except DeskhandError as error:
            click.echo(f"{escape_control(name)}: left out: {escape_control(str(error))}", err=True)
            failed += 1
            continue
        store_setting(settings, ["mcp", name], msgspec.to_builtins(server))
        click.echo(f"{escape_control(name)}: added, with {len(found)} tools")
    if failed:
        raise SystemExit(1)


@mcp.command()
@click.argument("name")
@click.option("--out", is_flag=True, help="Sign out instead.")
@config_option
def login(name: str, out: bool, config: str | None) -> None:
    """Sign in at a server on the web, in your browser. What it gives is kept as secrets.

    \b
    Example:
      deskhand mcp login docs
    """
    settings = load_settings(config)
    server = _find(settings, name)
    ServerLogin(open_secrets(settings), name, server.url).forget()
    if out:
        click.echo(f"Signed out of {escape_control(name)}.")
        return
    try:
        found = _connect(settings, name, server, fresh=False, signs_in=True)
    except DeskhandError as error:
        fail(str(error))
    click.echo(f"Signed in at {escape_control(name)}; it has {len(found)} tools.")


async def _show_address(address: str) -> None:
    click.echo(f"Sign in here: {escape_control(address)}")
    await anyio.to_thread.run_sync(webbrowser.open, address)


@mcp.command()
@click.option("--scopes", default="read,chat", show_default=True, help="What the program may do.")
@config_option
def serve(scopes: str, config: str | None) -> None:
    """Be an MCP server for another program, over standard input and output. Deskhand must run.

    The program can talk to agents, read and search conversations, and run jobs; with the scope
    approve it also answers approvals.
    Over HTTP, programs use the address of the page with /mcp, and a token.

    \b
    Example:
      claude mcp add deskhand -- deskhand mcp serve
    """
    settings = load_settings(config)
    url = read_address(settings.home)
    if not url:
        fail("Deskhand does not run here: start it with deskhand serve")
    try:
        from ..mcp.own_streams import serve_program
    except ModuleNotFoundError:
        fail(NO_EXTRA)
    wanted = parse_scopes(scopes)
    row, secret = with_people(
        settings, lambda people: people.make_token(OWNER_NAME, "mcp serve", wanted, TOKEN_S)
    )
    try:
        anyio.run(serve_program, url, secret)
    finally:
        with_people(settings, lambda people: people.revoke(row.id))


def _find(settings: Settings, name: str) -> McpServerConfig:
    found = settings.config.mcp.get(name)
    if found is None:
        there = ", ".join(settings.config.mcp) or "none"
        fail(f"there is no MCP server {name!r}; there are: {there}", USAGE)
    return found


def _pairs(given: Sequence[str]) -> dict[str, str]:
    """Raises ConfigError."""
    found = {}
    for each in given:
        key, equals, value = each.partition("=")
        if not equals or not key:
            raise ConfigError(f"{each!r} must be written as NAME=VALUE")
        found[key] = value
    return found


def _expand(folders: Sequence[str]) -> list[str]:
    found = []
    for each in folders:
        path = Path(each.removesuffix(":rw")).expanduser().resolve()
        found.append(f"{path}:rw" if each.endswith(":rw") else str(path))
    return found


def _try_server(
    settings: Settings, name: str, server: McpServerConfig, *, fresh: bool = False
) -> list[KnownTool]:
    click.echo(f"Starting {escape_control(name)} …", err=True)
    try:
        return _connect(settings, name, server, fresh=fresh)
    except DeskhandError as error:
        fail(str(error))


def _connect(
    settings: Settings,
    name: str,
    server: McpServerConfig,
    *,
    fresh: bool = True,
    signs_in: bool = False,
) -> list[KnownTool]:
    """Its tools; `fresh`: nothing of it was accepted before. `signs_in`: a person is there for
    that. Raises DeskhandError."""
    config = replace(settings.config, mcp={name: replace(server, enabled=True)})
    failed: list[DeskhandError] = []

    async def use(app: App) -> list[KnownTool]:
        if fresh:
            await app.store.change([forget_server(name)])
        try:
            servers = app.features.mcp
            async with _running(servers, signs_in=signs_in), servers.use(name):
                pass
        except DeskhandError as error:
            failed.append(error)
        return [tool for tool in known_tools(app.store) if tool.server == name]

    found = with_app(replace(settings, config=config), use, drive=False)
    if failed:
        raise failed[0]
    return found


@asynccontextmanager
async def _running(servers: McpServers, *, signs_in: bool) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(anyio.create_task_group())
        if signs_in:
            from ..mcp.sign_in import open_local_page

            servers.page = await stack.enter_async_context(open_local_page(_show_address))
        tasks.start_soon(servers.run)
        while not servers.is_running:
            await anyio.lowlevel.checkpoint()
        yield
        tasks.cancel_scope.cancel()


def _show_server(name: str, server: McpServerConfig, tools: Sequence[KnownTool]) -> None:
    _show_reach(name, server)
    for tool in tools[:SHOWN_TOOLS]:
        definition = tool.accepted or tool.found
        said = " ".join(definition.description.split()) if definition else ""
        mark = "" if tool.state == "accepted" else f"[{tool.state}] "
        line = shorten_line(f"{mark}{said}", MAX_LINE_CHARS)
        click.echo(f"  {escape_control(tool.name)}: {escape_control(line)}")
    if len(tools) > SHOWN_TOOLS:
        click.echo(f"  and {len(tools) - SHOWN_TOOLS} more")
    if not tools:
        click.echo("  It has no tools.")


def _show_reach(name: str, server: McpServerConfig) -> None:
    click.echo(click.style(escape_control(name), bold=True) + f": {_describe_place(server)}")
    if server.command:
        hosts = ", ".join(server.hosts) or "no hosts"
        folders = ", ".join(server.folders) or "no folders of yours"
        click.echo(
            escape_control(f"It runs in the sandbox, and reaches {hosts}; it sees {folders}.")
        )
    else:
        click.echo("What is sent to it leaves this machine.")
    texts = (server.url, *server.args, *server.env.values(), *server.headers.values())
    given = sorted({variable for text in texts for variable in find_variables(text)})
    if given:
        click.echo(f"It is given these of your variables: {', '.join(given)}")


def _describe_place(server: McpServerConfig) -> str:
    return escape_control(server.url or " ".join((server.command, *server.args)))


def _read_known(settings: Settings, name: str = "") -> list[KnownTool]:
    async def use(store: SqlStore) -> list[KnownTool]:
        return [tool for tool in known_tools(store) if name in ("", tool.server)]

    return with_store(settings, use)
