"""`deskhand agents`: who there is, and making and removing them."""

from __future__ import annotations

import re

import click

from ..assembly.models import Models
from ..config.config import Config, Settings, parse_config, read_settings, translate_config
from ..config.parse import parse_value, read_text
from ..config.yaml_edit import set_key, unset_key
from ..types.errors import ConfigError, DeskhandError
from ..types.private_files import write_private_file
from .init import make_home
from .plain import escape_control
from .run import (
    USAGE,
    Listing,
    config_option,
    fail,
    json_option,
    limit_option,
    load_settings,
    resolve_agent,
)
from .table import print_json_rows, print_table

NAME_PATTERN = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
RESERVED_NAMES = ("defaults", "list")
"""Words that have another meaning under `agents`, in the files of another system."""


@click.group(cls=Listing)
def agents() -> None:
    """List, create and remove agents.

    The first agent in the list is the default.

    \b
    Examples:
      deskhand agents
      deskhand agents add coder --model anthropic/claude-sonnet-5
      deskhand agents remove coder
    """


@agents.command("list")
@limit_option()
@json_option
@config_option
def list_(limit: int | None, as_json: bool, config: str | None) -> None:
    """List the agents.

    \b
    Example:
      deskhand agents list
    """
    settings = load_settings(config)
    if not as_json:
        _print_agents(settings, limit)
        return
    known = [(name, settings.agent(name)) for name in settings.agents[:limit]]
    rows = [
        (name, each.models, each.profile, each.tools, _describe_workspace(settings, name))
        for name, each in known
    ]
    print_json_rows(("agent", "models", "profile", "tools", "workspace"), rows)


@agents.command()
@click.argument("name")
@click.option(
    "--model",
    "-m",
    "models",
    multiple=True,
    metavar="PROVIDER/NAME",
    help="Models to use, in order of preference.",
)
@config_option
def add(name: str, models: tuple[str, ...], config: str | None) -> None:
    """Create an agent with its own workspace.

    \b
    Example:
      deskhand agents add coder --model anthropic/claude-sonnet-5
    """
    settings = load_settings(config)
    if not NAME_PATTERN.fullmatch(name) or name in RESERVED_NAMES:
        fail(
            f"invalid agent name {name!r}: use lowercase letters, digits, - and _, such as 'coder'",
            USAGE,
        )
    if name in settings.agents:
        fail(f"an agent named {name!r} already exists; list agents with: deskhand agents", USAGE)
    try:
        for model in models:
            if missing := Models(settings).check(model):
                click.echo(f"deskhand: {missing}", err=True)
        text = _read_text(settings)
        for first in (
            () if settings.config.agents else settings.agents
        ):  # who is there without being named, stays first
            text = set_key(text, ["agents", first], {})
        _write_config(
            settings, set_key(text, ["agents", name], {"models": list(models)} if models else {})
        )
        make_home(read_settings(settings.file), (name,))
    except OSError as error:
        fail(f"cannot write {error.filename}: {error.strerror}")
    except DeskhandError as error:
        fail(str(error), USAGE)
    click.echo(
        f"Created agent {name} in {escape_control(str(settings.home.workspace(name)))}. Talk to "
        f"it: deskhand --agent {name}"
    )


@agents.command()
@click.argument("name")
@config_option
def remove(name: str, config: str | None) -> None:
    """Remove an agent from the configuration. Its files and conversations are kept.

    \b
    Example:
      deskhand agents remove coder
    """
    settings = load_settings(config)
    name = resolve_agent(settings, name)
    if len(settings.agents) == 1:
        fail(f"{name!r} is the only agent; create another first: deskhand agents add NAME", USAGE)
    place = settings.agent(name).workspace or str(settings.home.workspace(name))
    try:
        _write_config(settings, unset_key(_read_text(settings), ["agents", name], Config))
    except OSError as error:
        fail(f"cannot write {error.filename}: {error.strerror}")
    except DeskhandError as error:
        fail(str(error), USAGE)
    click.echo(
        f"Removed agent {name}. Its files are kept in {escape_control(place)}, its conversations "
        "in the log."
    )
    click.echo(f"The default agent is now {settings.agents[settings.agents[0] == name]}.")


def _print_agents(settings: Settings, limit: int | None) -> None:
    rows = []
    for name in settings.agents[:limit]:
        agent = settings.agent(name)
        place = _describe_workspace(settings, name)
        tools = (
            ", ".join((*([agent.profile] if agent.profile else []), *(agent.tools or ()))) or "none"
        )
        rows.append((name, ", ".join(agent.models) or "no model", tools, place))
    print_table(("agent", "models", "tools", "workspace"), rows)


def _describe_workspace(settings: Settings, name: str) -> str:
    return settings.agent(name).workspace or str(settings.home.workspace(name))


def _read_text(settings: Settings) -> str:
    """The text of the configuration. Raises ConfigError where its agents are not written as
    ours."""
    try:
        text = read_text(settings.file)
    except FileNotFoundError:
        return ""
    data = parse_value(text) or {}
    found = data.get("agents") or {}
    if not isinstance(found, dict) or any(name in found for name in RESERVED_NAMES):
        file = settings.file
        raise ConfigError(
            f"{file} defines agents in the format of another system; convert it first: deskhand "
            f"config import {file} --write"
        )
    return text


def _write_config(settings: Settings, text: str) -> None:
    """Write it only if it can be read back. Raises ConfigError, OSError."""
    parse_config(translate_config(parse_value(text) or {}, settings.file).config, settings.file)
    write_private_file(settings.file, text)
