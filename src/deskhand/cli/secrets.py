"""`deskhand secrets`: keys that commands may use without ever having them."""

from __future__ import annotations

import sys
from typing import Any

import click

from ..net.egress_secrets import BEARER, SecretRule
from ..secrets.redaction import open_secrets
from ..secrets.secrets import Place
from ..types.errors import DeskhandError
from ..types.secrets import format_handle
from .plain import escape_control
from .run import (
    USAGE,
    Listing,
    add_audit_note,
    config_option,
    fail,
    json_option,
    limit_option,
    load_settings,
)
from .table import print_json_rows


@click.group(cls=Listing)
def secrets() -> None:
    """Manage keys and tokens that commands use without seeing them.

    The value is added to outgoing requests, only for the hosts that a rule names, and removed from
    the responses. Commands, logs and models never see it.

    \b
    Examples:
      deskhand secrets set github
      deskhand secrets rule github api.github.com
      deskhand hosts allow api.github.com
    """


@secrets.command("set")
@click.argument("name")
@click.option(
    "--keyring",
    is_flag=True,
    help="Store the value in the desktop keyring instead of the home folder.",
)
@click.option(
    "--env", "variable", default="", help="Store no value: read it from this environment variable."
)
@config_option
def set_(name: str, keyring: bool, variable: str, config: str | None) -> None:
    """Store a secret, or replace its value. Its rules are kept.

    \b
    Examples:
      deskhand secrets set github
      pass show github | deskhand secrets set github --keyring
    """
    settings = load_settings(config)
    if keyring and variable:
        fail("a secret can be stored in the keyring or read from the environment, not both", USAGE)
    value = ""
    kind: Place = "keyring" if keyring else "file"
    if variable:
        kind = "env"
    elif sys.stdin.isatty():
        value = click.prompt(f"Value of {name}", hide_input=True, err=True)
    else:
        value = sys.stdin.read()
    places: dict[Place, str] = {
        "env": f"in the environment as {variable}",
        "keyring": "in the keyring",
        "file": f"in {settings.home.secrets}",
    }
    try:
        known = open_secrets(settings)
        known.set(name, value.strip(), kind, variable)
        rules = known.read_entries()[name].rules
    except (DeskhandError, OSError) as error:
        fail(str(error), USAGE)
    add_audit_note(settings, "secret set", name)
    click.echo(f"{name} is kept {places[kind]}")
    if not rules:
        click.echo(
            f"No command may use it yet. Name a host for it: deskhand secrets rule {name} HOST"
        )


@secrets.command("list")
@limit_option()
@json_option
@config_option
def list_(limit: int | None, as_json: bool, config: str | None) -> None:
    """List secrets, where they are stored, and who may use them where. No value is shown.

    \b
    Example:
      deskhand secrets list
    """
    settings = load_settings(config)
    try:
        known = open_secrets(settings)
        entries = known.read_entries()
    except DeskhandError as error:
        fail(str(error))
    here = {each.name for each in known.list_secrets()}
    if as_json:
        rows = [
            (name, each.place, name in here, format_handle(name), each.rules)
            for name, each in list(entries.items())[:limit]
        ]
        print_json_rows(("name", "place", "present", "handle", "rules"), rows)
        return
    for name, entry in list(entries.items())[:limit]:
        place = f"environment {entry.variable}" if entry.place == "env" else entry.place
        click.echo(
            escape_control(
                f"{name}  {place}{'' if name in here else '  (its value is not there)'}  "
                f"{format_handle(name)}"
            )
        )
        for rule in entry.rules:
            port = "" if rule.port == 443 else f":{rule.port}"
            limits = " ".join((*rule.methods, *rule.paths)) or "all requests"
            click.echo(
                escape_control(
                    f"  {rule.host}{port}  {limits}  {rule.header}  for {', '.join(rule.who)}"
                )
            )
        if not entry.rules:
            click.echo(
                f"  no command may use it; name a host for it: deskhand secrets rule {name} HOST"
            )
    if not entries:
        click.echo("No secrets yet. Store one with: deskhand secrets set NAME")


@secrets.command("rule")
@click.argument("name")
@click.argument("host")
@click.option(
    "--header",
    default=BEARER,
    show_default=True,
    help="{} stands for the value, {basic:USER} for USER with the value as the password.",
)
@click.option(
    "--method", "methods", multiple=True, help="Only requests with this method. Repeatable."
)
@click.option("--path", "paths", multiple=True, help="Only paths with this prefix. Repeatable.")
@click.option(
    "--who",
    multiple=True,
    help="Whose conversations may use it: a name or role:NAME. [default: the owner's]",
)
@click.option("--drop", is_flag=True, help="Remove this secret's rules for this host.")
@config_option
def rule(name: str, host: str, drop: bool, config: str | None, **wanted: Any) -> None:
    """Add a secret to requests to one host, over TLS.

    \b
    Examples:
      deskhand secrets rule github api.github.com --method GET --path /repos/
      deskhand secrets rule github github.com \\
        --header "Authorization: Basic {basic:x-access-token}"
      deskhand secrets rule github api.github.com --drop
    """
    settings = load_settings(config)
    known = open_secrets(settings)
    try:
        if drop:
            count = known.remove_rules(name, host.lower())
            add_audit_note(settings, "secret rule dropped", f"{name} {host}")
            click.echo(f"Rules removed: {count}")
            return
        made = known.add_rule(
            name, SecretRule(host, **{key: value for key, value in wanted.items() if value})
        )
    except (DeskhandError, OSError) as error:
        fail(str(error), USAGE)
    add_audit_note(settings, "secret rule", f"{name} {made.host}")
    click.echo(
        f"{name} is sent to {made.host} as {made.header.partition(':')[0]}, and nowhere else"
    )
    click.echo(f"If commands may not reach that host yet: deskhand hosts allow {made.host}")


@secrets.command("remove")
@click.argument("name")
@config_option
def remove(name: str, config: str | None) -> None:
    """Delete a secret and its rules.

    \b
    Example:
      deskhand secrets remove github
    """
    settings = load_settings(config)
    try:
        open_secrets(settings).remove(name)
    except (DeskhandError, OSError) as error:
        fail(str(error), USAGE)
    add_audit_note(settings, "secret removed", name)
    click.echo(f"Deleted {name}")
