"""`deskhand hosts`: the hosts that commands may reach."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import click

from ..config.clock import SystemClock
from ..net.egress import parse_egress_host
from ..store.sqlite import SqliteStore
from ..tools.network import OUTSIDE
from ..types.commit import Change
from ..types.errors import DeskhandError
from .plain import plain
from .run import (
    FAILED,
    ME,
    USAGE,
    Listing,
    agent_of,
    agent_option,
    config_option,
    fail,
    limit_option,
    settings_of,
    with_store,
)


@click.group(cls=Listing)
def hosts() -> None:
    """Show and set which hosts commands may reach.

    \b
    Examples:
      deskhand hosts allow pypi.org
      deskhand hosts list
    """


@hosts.command("allow")
@click.argument("host")
@click.option(
    "--after-reading",
    is_flag=True,
    help="Also in conversations that have read untrusted content.",
)
@agent_option
@config_option
def allow(host: str, after_reading: bool, agent: str, config: str | None) -> None:
    """Allow commands to reach a host over HTTP and HTTPS, in all conversations.

    After something from outside was read, a page or a mail, it is asked about again: what was read
    may want to send something there. With --after-reading it is not.

    \b
    Examples:
      deskhand hosts allow pypi.org
      deskhand hosts allow "*.example.org" --agent coder
      deskhand hosts allow git.example.org:8443
    """
    settings = settings_of(config)
    try:
        entry = str(parse_egress_host(host))
        name = agent_of(settings, agent) if agent else ""
    except DeskhandError as error:
        fail(str(error), USAGE)

    async def use(store: SqliteStore) -> None:
        now = SystemClock().now()
        note = Change("people_note", (now, ME.id, "host allowed", f"{entry} {name}".strip()))
        await store.change(
            [Change("egress_grant_set", (name, "", entry, int(after_reading), now, ME.id)), note]
        )
        click.echo(f"Commands of {name or 'every agent'} may reach {entry} now")
        click.echo(f'Take it back with: deskhand hosts revoke "{entry}"')

    with_store(settings, use)


@hosts.command("list")
@click.option(
    "--used", is_flag=True, help="List which hosts commands reached, and which were refused."
)
@limit_option()
@config_option
def list_(used: bool, limit: int | None, config: str | None) -> None:
    """List allowed hosts, and who allowed them.

    \b
    Examples:
      deskhand hosts list
      deskhand hosts list --used
    """
    settings = settings_of(config)
    zone = ZoneInfo(settings.config.timezone)

    async def use(store: SqliteStore) -> None:
        if used:
            rows = await store.query("egress_uses", (limit or 200,))
            for session, host, port, refused, requests, up, down, _, last in reversed(rows):
                at = datetime.fromtimestamp(last, zone).strftime("%Y-%m-%d %H:%M")
                what = f"refused: {refused}" if refused else f"{up:,} bytes out, {down:,} in"
                click.echo(plain(f"{at}  {session}  {host}:{port}  {requests} times  {what}"))
            if not rows:
                click.echo("No command has reached anything yet.")
            return
        lines = [
            f"{each}  every agent  (by the configuration)" for each in settings.config.egress.allow
        ]
        for agent, session, host, knowing, _, by in await store.query("egress_grants", ()):
            where = session or agent or "every agent"
            lines.append(
                f"{host}  {where}{'  also after reading' if knowing == OUTSIDE else ''}  (by {by})"
            )
        for line in lines[:limit]:
            click.echo(plain(line))
        if not lines:
            click.echo("Commands reach no host. Allow one with: deskhand hosts allow pypi.org")

    with_store(settings, use)


@hosts.command("revoke")
@click.argument("host")
@agent_option
@config_option
def revoke(host: str, agent: str, config: str | None) -> None:
    """Revoke access to a host, in all conversations. It holds from the next connection on.

    \b
    Example:
      deskhand hosts revoke pypi.org
    """
    settings = settings_of(config)
    try:
        entry = str(parse_egress_host(host))
    except DeskhandError as error:
        fail(str(error), USAGE)

    async def use(store: SqliteStore) -> None:
        note = Change("people_note", (SystemClock().now(), ME.id, "host revoked", entry))
        count, *_ = await store.change([Change("egress_grant_drop", (entry, agent, "*")), note])
        if not count:
            how = (
                "allowed by the configuration"
                if entry in settings.config.egress.allow
                else "not allowed"
            )
            fail(f"{entry} is {how}: deskhand hosts list", FAILED)
        click.echo(f"Taken back: {count}")

    with_store(settings, use)
