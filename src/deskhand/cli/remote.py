"""`deskhand remote`: agents of other programs, to which ours may give tasks."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar
from uuid import uuid4

import anyio
import click
import msgspec

from ..config.clock import SystemClock
from ..config.config import Settings
from ..config.first_settings import remove_setting, store_setting
from ..config.remote_agents import RemoteAgentConfig, check_remote_agents
from ..net.client import Net
from ..remote_agents.client import RemoteAgent
from ..remote_agents.discover import FoundAgent, discover, list_hosts, probe
from ..remote_agents.own_key import make_sign
from ..remote_agents.tools import open_agent
from ..remote_agents.wire import RemoteRun
from ..secrets.redaction import open_secrets
from ..types.errors import ConfigError, DeskhandError
from .encoded import to_json
from .plain import escape_control
from .run import USAGE, Listing, config_option, fail, json_option, limit_option, load_settings
from .table import print_json_rows, print_table

PORT = 8765
PROBE_S = 15.0
T = TypeVar("T")
token_option = click.option(
    "--token-env", default="", metavar="NAME", help="Variable of .env that holds its token."
)


@click.group(cls=Listing)
def remote() -> None:
    """List, add and ask agents of other programs, to which your agents may then give tasks.

    They are spoken to by A2A (the Agent2Agent protocol), or as operator-use's agent server.

    \b
    Examples:
      deskhand remote
      deskhand remote add helper https://example.com/agent --token-env KEY
      deskhand remote run helper "Which invoices are open?"
    """


@remote.command("list")
@click.argument("url", default="")
@token_option
@limit_option()
@json_option
@config_option
def list_(url: str, token_env: str, limit: int | None, as_json: bool, config: str | None) -> None:
    """List the agents that are set up, or those that answer at a URL.

    \b
    Examples:
      deskhand remote list
      deskhand remote list http://127.0.0.1:8765
    """
    settings = load_settings(config)
    if url:
        found = _run(_probe, settings, url, token_env)
        if as_json:
            click.echo(to_json([found]))
        else:
            _print_found(found)
        return
    agents = settings.config.remote_agents
    if as_json:
        listed = [
            (name, each.enabled, each.protocol, each.url, each.description)
            for name, each in list(agents.items())[:limit]
        ]
        print_json_rows(("agent", "enabled", "protocol", "url", "description"), listed)
        return
    if not agents:
        click.echo("No agents elsewhere yet. Add one: deskhand remote add NAME URL")
        return
    rows = [
        (name, "on" if each.enabled else "off", each.protocol, each.url, each.description)
        for name, each in agents.items()
    ]
    print_table(("agent", "state", "protocol", "where", "for"), rows[:limit])


@remote.command()
@click.argument("name")
@click.argument("url")
@token_option
@click.option(
    "--agent-id", default="", metavar="ID", help="Its name there, where there are several."
)
@click.option("--for", "description", default="", metavar="TEXT", help="What it is good for.")
@click.option("--trusted", is_flag=True, help="Take what it says for no content from outside.")
@config_option
def add(  # noqa: PLR0913 -- one parameter for each option
    name: str,
    url: str,
    token_env: str,
    agent_id: str,
    description: str,
    trusted: bool,
    config: str | None,
) -> None:
    """Add an agent. It is asked who it is before it is kept.

    \b
    Example:
      deskhand remote add helper https://example.com/agent --token-env KEY
    """
    settings = load_settings(config)
    if name in settings.config.remote_agents:
        fail(f"there is an agent {name!r} already: deskhand remote remove {name}", USAGE)
    found = _run(_probe, settings, url, token_env)
    if found.needs_token:
        fail(f"{url} wants a token: put it into .env, and name it with --token-env")
    _print_found(found)
    made = RemoteAgentConfig(
        url=url,
        protocol=found.protocol,
        agent_id=agent_id,
        token_env=token_env,
        description=description,
        trusted=trusted,
    )
    try:
        check_remote_agents({name: made})
    except ConfigError as error:
        fail(str(error), USAGE)
    store_setting(settings, ["remote_agents", name], msgspec.to_builtins(made))
    click.echo(f"Added {escape_control(name)}. A running Deskhand knows it within a second.")


@remote.command()
@click.argument("name")
@config_option
def remove(name: str, config: str | None) -> None:
    """Remove an agent from the configuration.

    \b
    Example:
      deskhand remote remove helper
    """
    settings = load_settings(config)
    _find(settings, name)
    remove_setting(settings, ["remote_agents", name])
    click.echo(f"Removed {escape_control(name)}.")


@remote.command()
@click.argument("agent", metavar="NAME|URL")
@click.argument("message")
@token_option
@click.option("--session", "-s", default="", metavar="ID", help="Go on with this conversation.")
@config_option
def run(agent: str, message: str, token_env: str, session: str, config: str | None) -> None:
    """Give a task to an agent, and print its answer.

    \b
    Examples:
      deskhand remote run helper "Which invoices are open?"
      deskhand remote run http://127.0.0.1:8765 hello
    """
    settings = load_settings(config)

    async def ask() -> RemoteRun:
        asked = await _open(settings, agent, token_env)
        begun = await asked.begin(message, message_id=uuid4().hex, session=session)
        return await asked.wait(begun, asked.config.timeout_s, lambda text: None)

    ended = _run(ask)
    if ended.text:
        click.echo(escape_control(ended.text))
    again = f"--session {escape_control(ended.session)}" if ended.session else "the same --session"
    match ended.state:
        case "completed":
            return
        case "waiting":
            fail(f"it waits for an answer: give it with {again}")
        case "working":
            fail("there is no answer yet; the task goes on there")
        case _:
            fail(escape_control(ended.problem) or f"the task is {ended.state}")


@remote.command("discover")
@click.option("--port", default=PORT, show_default=True, help="Port to look at.")
@click.option("--timeout", default=0.5, show_default=True, help="Seconds for each address.")
@click.option("--network", default="", metavar="CIDR", help="Look here, and not on this machine.")
@click.option("--add", "adds", is_flag=True, help="Add those that need no token.")
@json_option
@config_option
def discover_(
    port: int, timeout: float, network: str, adds: bool, as_json: bool, config: str | None
) -> None:
    """Look for agents on this machine, or in a network of yours.

    \b
    Examples:
      deskhand remote discover
      deskhand remote discover --network 192.168.1.0/24 --add
    """
    settings = load_settings(config)
    try:
        hosts = list_hosts(network)
    except ConfigError as error:
        fail(str(error), USAGE)
    found = _run(discover, hosts, port, Net(), timeout)
    if as_json:
        click.echo(to_json(found))
    elif not found:
        where = network or "this machine"
        click.echo(f"No agent answers at port {port} of {where}.")
    for each in found:
        if not as_json:
            _print_found(each)
        if adds and not each.needs_token:
            click.echo(f"  {_add_found(settings, each)}", err=as_json)


def _add_found(settings: Settings, found: FoundAgent) -> str:
    """Add it under a new name. Returns what was done."""
    known = load_settings(str(settings.file) if settings.file.exists() else None)
    agents = known.config.remote_agents
    if any(each.url == found.url for each in agents.values()):
        return "known already"
    names = (f"agent{n}" for n in range(1, len(agents) + 2))
    name = next(each for each in names if each not in agents)
    made = RemoteAgentConfig(url=found.url, protocol=found.protocol)
    store_setting(settings, ["remote_agents", name], msgspec.to_builtins(made))
    return f"added as {name}"


async def _open(settings: Settings, agent: str, token_env: str) -> RemoteAgent:
    """The agent of the settings, or the one at a URL. Raises DeskhandError."""
    sign = None
    if settings.config.agent_server.sign:
        sign = make_sign(open_secrets(settings), settings.agents[0], SystemClock())
    if "://" not in agent:
        return open_agent(settings, agent, Net(), sign)
    found = await _probe(settings, agent, token_env)
    chosen = RemoteAgentConfig(url=agent, protocol=found.protocol, token_env=token_env)
    return RemoteAgent(agent, chosen, Net(), _token(settings, token_env), sign)


async def _probe(settings: Settings, url: str, token_env: str) -> FoundAgent:
    return await probe(url.rstrip("/"), _token(settings, token_env), Net(), PROBE_S)


def _token(settings: Settings, name: str) -> str:
    if not name:
        return ""
    token = settings.environment.get(name, "")
    if not token:
        fail(f"{name} is not set: put it into {settings.home.env}")
    return token


def _find(settings: Settings, name: str) -> RemoteAgentConfig:
    found = settings.config.remote_agents.get(name)
    if found is None:
        there = ", ".join(settings.config.remote_agents) or "none"
        fail(f"there is no agent {name!r} elsewhere; there are: {there}", USAGE)
    return found


def _print_found(found: FoundAgent) -> None:
    kind = "A2A" if found.protocol == "a2a" else "operator-use's agent server"
    click.echo(f"{found.url} ({kind})")
    if found.needs_token:
        click.echo("  wants a token")
    for each in found.agents:
        click.echo(f"  {escape_control(each)}")


def _run(work: Callable[..., Coroutine[Any, Any, T]], *given: Any) -> T:
    try:
        return anyio.run(work, *given)
    except DeskhandError as error:
        fail(escape_control(str(error)))
