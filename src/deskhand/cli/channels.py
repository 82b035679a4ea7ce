"""`deskhand channels`: where people can reach it, and how to add a place."""

from __future__ import annotations

import sys

import anyio
import click
from msgspec.structs import replace

from ..channels.base import Introduction
from ..channels.settings import ChannelConfig
from ..config.first_settings import store_secret, store_setting
from ..gateway.channel_loader import fetch_introduction
from ..gateway.terminal_socket import ask_health
from ..store.blobs import Blobs
from ..types.errors import DeskhandError
from ..types.health import HealthFact
from .plain import escape_control
from .run import USAGE, Listing, config_option, fail, limit_option, load_settings, run
from .table import print_table

TOKEN_VARIABLES = {"telegram": "TELEGRAM_BOT_TOKEN"}
"""The kinds that are added by a token, and the variable that holds it."""


@click.group(cls=Listing)
def channels() -> None:
    """List and add channels.

    \b
    Examples:
      deskhand channels
      deskhand channels add telegram
    """


@channels.command("list")
@limit_option()
@config_option
def list_(limit: int | None, config: str | None) -> None:
    """List configured channels and their state.

    \b
    Example:
      deskhand channels list
    """
    settings = load_settings(config)
    found = settings.config.channels
    if not found:
        click.echo(
            "No channels yet. Create a bot with @BotFather, then add it: deskhand channels add "
            "telegram"
        )
        return
    health = anyio.run(ask_health, settings.home.socket)
    facts = {fact.name: fact for fact in health.facts} if health else {}
    rows = [
        (name, each.type or name, *_describe_state(each, facts.get(f"channel {name}")))
        for name, each in found.items()
    ]
    print_table(("channel", "kind", "state", "why"), rows[:limit])


def _describe_state(config: ChannelConfig, fact: HealthFact | None) -> tuple[str, str]:
    if not config.enabled:
        return "off", ""
    if fact is None:
        return "not running", ""
    return fact.state, "" if fact.state == "ok" else " ".join(fact.last_error.split())


@channels.command()
@click.argument("kind", type=click.Choice(sorted(TOKEN_VARIABLES)))
@click.option(
    "--name", default="", metavar="NAME", help="Name of the account, if you have more than one bot."
)
@config_option
def add(kind: str, name: str, config: str | None) -> None:
    """Add a bot. Its token is prompted for, or read from standard input. It is checked with the
    platform first, and stored in `.env`, never in the configuration.

    \b
    Examples:
      deskhand channels add telegram
      echo "$TOKEN" | deskhand channels add telegram --name family
    """
    settings = load_settings(config)
    name = name or kind
    before = settings.config.channels.get(name, ChannelConfig())
    own = TOKEN_VARIABLES[kind] if name == kind else f"{name.upper().replace('-', '_')}_BOT_TOKEN"
    variable = before.token_env or own
    if sys.stdin.isatty():
        token = click.prompt(variable, hide_input=True, err=True)
    else:
        token = sys.stdin.readline()
    wanted = replace(before, type=before.type or kind, token_env=variable, enabled=True)
    tried = replace(settings, environment={**settings.environment, variable: token.strip()})

    async def introduce() -> Introduction:
        return await fetch_introduction(name, wanted, tried, Blobs(settings.home.blobs))

    try:
        met = run(settings, introduce)
        store_secret(settings, variable, token)
        for key, value in _config_entries(name, kind, variable):
            store_setting(settings, ["channels", name, key], value)
    except DeskhandError as error:
        fail(str(error), USAGE)
    click.echo(f"Added {escape_control(met.name)}: {escape_control(met.link)}")
    click.echo(
        "To use it, start or restart Deskhand: deskhand serve, or /restart. Then write to the "
        "bot to get a pairing code."
    )


def _config_entries(name: str, kind: str, variable: str) -> list[tuple[str, object]]:
    if name == kind:
        return [("enabled", True)]
    return [("type", kind), ("token_env", variable), ("enabled", True)]
