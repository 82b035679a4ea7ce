"""`deskhand channels`: where people can reach it, and how to add a place."""

from __future__ import annotations

import sys

import anyio
import click

from ..channels.base import Introduction
from ..channels.guides import GUIDES, Guide, Need, find_variable
from ..channels.settings import ChannelConfig
from ..config.first_settings import store_setting
from ..gateway.channel_setup import add_channel, has_secret, list_needs
from ..gateway.terminal_socket import ask_health
from ..store.blobs import Blobs
from ..types.errors import DeskhandError
from ..types.health import HealthFact
from .plain import escape_control
from .run import USAGE, Listing, config_option, fail, json_option, limit_option, load_settings, run
from .table import print_json_rows, print_table


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
@json_option
@config_option
def list_(limit: int | None, as_json: bool, config: str | None) -> None:
    """List configured channels and their state.

    \b
    Example:
      deskhand channels list
    """
    settings = load_settings(config)
    found = settings.config.channels
    if not found and not as_json:
        click.echo(
            "No channels yet. Add one: deskhand channels add telegram. There are also "
            f"{', '.join(kind for kind in GUIDES if kind != 'telegram')}."
        )
        return
    health = anyio.run(ask_health, settings.home.socket)
    facts = {fact.name: fact for fact in health.facts} if health else {}
    rows = [
        (name, each.type or name, *_describe_state(each, facts.get(f"channel {name}")))
        for name, each in found.items()
    ]
    if as_json:
        print_json_rows(("channel", "kind", "state", "why"), rows[:limit])
        return
    print_table(("channel", "kind", "state", "why"), rows[:limit])


def _describe_state(config: ChannelConfig, fact: HealthFact | None) -> tuple[str, str]:
    if not config.enabled:
        return "off", ""
    if fact is None:
        return "not running", ""
    return fact.state, "" if fact.state == "ok" else " ".join(fact.last_error.split())


@channels.command()
@click.argument("name")
@config_option
def enable(name: str, config: str | None) -> None:
    """Switch a channel on. It holds at once, also for a service that runs.

    \b
    Example:
      deskhand channels enable telegram
    """
    _switch(name, config, on=True)


@channels.command()
@click.argument("name")
@config_option
def disable(name: str, config: str | None) -> None:
    """Switch a channel off and keep its settings. Answers that are owed there wait.

    \b
    Example:
      deskhand channels disable telegram
    """
    _switch(name, config, on=False)


def _switch(name: str, config: str | None, *, on: bool) -> None:
    settings = load_settings(config)
    known = settings.config.channels
    if name not in known:
        named = ", ".join(known) or "none; add one: deskhand channels add telegram"
        fail(f"there is no channel {name!r}; there are: {named}", USAGE)
    try:
        store_setting(settings, ["channels", name, "enabled"], on)
    except (OSError, DeskhandError) as error:
        fail(str(error))
    click.echo(f"{name} is {'on' if on else 'off'}.")


@channels.command()
@click.argument("kind", type=click.Choice(sorted(GUIDES)))
@click.option(
    "--name", default="", metavar="NAME", help="Name of the account, if you have more than one."
)
@click.option(
    "--set",
    "given",
    multiple=True,
    metavar="KEY=VALUE",
    help="Answer one of the questions, such as user=desk@example.org.",
)
@config_option
def add(kind: str, name: str, given: tuple[str, ...], config: str | None) -> None:
    """Add a channel. What it needs is prompted for, and secrets may come from standard input, one a
    line. It is checked with the platform first. Secrets are stored in `.env`, never in the
    configuration.

    \b
    Examples:
      deskhand channels add telegram
      deskhand channels add mail --set user=desk@example.org
      echo "$TOKEN" | deskhand channels add telegram --name family
    """
    settings = load_settings(config)
    name = name or kind
    guide = GUIDES[kind]
    answers = dict(_split_setting(each, guide) for each in given)
    asked = [need for need in list_needs(settings, kind, name) if need.setting not in answers]
    if asked and sys.stdin.isatty():
        click.echo(f"Set up {guide.title}{f': {guide.link}' if guide.link else ''}", err=True)
    for need in asked:
        keep = has_secret(settings, need, kind, name)
        answers[need.setting] = _ask(need, find_variable(need, kind, name), keep=keep)

    async def connect() -> Introduction:
        return await add_channel(settings, Blobs(settings.home.blobs), kind, name, answers)

    try:
        met = run(settings, connect)
    except DeskhandError as error:
        fail(str(error), USAGE)
    click.echo(f"Added {escape_control(met.name)}: {escape_control(met.link)}")
    click.echo(f"To use it, start or restart Deskhand: deskhand serve, or /restart. {guide.after}")


def _split_setting(given: str, guide: Guide) -> tuple[str, str]:
    """A secret is no such setting: other programs see the arguments of a command."""
    key, equals, value = given.partition("=")
    known = [need.setting for need in guide.needs if not need.variable]
    if not equals or key.strip() not in known:
        listed = f"KEY is one of {', '.join(known)}" if known else "there is nothing to set"
        fail(f"--set wants KEY=VALUE, and not {given.partition('=')[0]!r}: {listed}", USAGE)
    return key.strip(), value


def _ask(need: Need, variable: str, *, keep: bool) -> str:
    """The answer; from a program a line of standard input for a secret, and what is no secret has
    to be given by `--set`. `keep`: with an empty answer what is there stays."""
    if not sys.stdin.isatty():
        if need.variable:
            return sys.stdin.readline()
        if need.optional:
            return ""
        fail(f"give it too: --set {need.setting}={need.example or 'VALUE'}", USAGE)
    click.echo(f"\n{need.label}: {need.where}.", err=True)
    shown = variable or need.setting
    if keep:
        shown += " (Enter keeps the one that is there)"
    elif need.example:
        shown += f" (such as {need.example})"
    answer: str = click.prompt(
        shown,
        hide_input=bool(need.variable),
        err=True,
        default="" if need.optional or keep else None,
        show_default=False,
    )
    return answer
