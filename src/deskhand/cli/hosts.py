"""`deskhand hosts`: the hosts that commands may reach."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from zoneinfo import ZoneInfo

import click

from ..config.clock import SystemClock
from ..config.config import Settings
from ..net.egress import parse_egress_host
from ..secrets.queries import drop_grants, list_grants, list_uses
from ..store.sql_store import SqlStore
from ..tools.network import READ_OUTSIDE
from ..tools.queries import grant_host
from ..types.errors import DeskhandError
from ..users.queries import audit_note
from .encoded import to_json
from .plain import escape_control
from .run import (
    FAILED,
    ME,
    USAGE,
    Listing,
    agent_option,
    config_option,
    fail,
    json_option,
    limit_option,
    load_settings,
    resolve_agent,
    with_store,
)
from .table import print_json_rows


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

    After a conversation has read untrusted content, such as a page or a mail, you are asked again,
    since that content could try to send data there. With --after-reading you are not asked.

    \b
    Examples:
      deskhand hosts allow pypi.org
      deskhand hosts allow "*.example.org" --agent coder
      deskhand hosts allow git.example.org:8443
    """
    settings = load_settings(config)
    try:
        entry = str(parse_egress_host(host))
        name = resolve_agent(settings, agent) if agent else ""
    except DeskhandError as error:
        fail(str(error), USAGE)

    allow_host(settings, entry, name, READ_OUTSIDE if after_reading else 0)


def allow_host(settings: Settings, entry: str, agent: str, knowing: int = 0) -> None:
    """Let commands of this agent ('' for every one) reach a host; `knowing` as in `HostGrant`."""

    async def use(store: SqlStore) -> None:
        now = SystemClock().now()
        note = audit_note(now, ME.id, what="host allowed", subject=f"{entry} {agent}".strip())
        grant = grant_host(entry, agent=agent, session="", knowing=knowing, at=now, by=ME.id)
        await store.change([grant, note])

    with_store(settings, use)
    click.echo(f"Commands of {agent or 'every agent'} may reach {entry} now")
    click.echo(f'To revoke access: deskhand hosts revoke "{entry}"')


def offer_hosts(settings: Settings, agent: str, hosts: Sequence[str], *, yes: bool) -> None:
    """Ask about each of these hosts that is not allowed yet: whether commands of this agent ('' for
    every one) may reach it. With `yes`, say only how to allow it."""
    wanted = [each for each in dict.fromkeys(hosts) if _is_host(each)]
    for host in with_store(settings, partial(_list_not_allowed, settings, agent, wanted)):
        entry = str(parse_egress_host(host))
        whose = agent or "every agent"
        if yes or not click.confirm(f"Let commands of {whose} reach {entry}?", default=True):
            only = f" --agent {agent}" if agent else ""
            click.echo(f'To allow it later: deskhand hosts allow "{entry}"{only}')
            continue
        allow_host(settings, entry, agent)


def _is_host(text: str) -> bool:
    try:
        parse_egress_host(text)
    except DeskhandError:
        return False
    return True


async def _list_not_allowed(
    settings: Settings, agent: str, hosts: list[str], store: SqlStore
) -> list[str]:
    allowed = {str(parse_egress_host(each)) for each in settings.config.egress.allow}
    for grant in await list_grants(store):
        if not grant.session and grant.agent in ("", agent):
            allowed.add(grant.host)
    return [host for host in hosts if str(parse_egress_host(host)) not in allowed]


@hosts.command("list")
@click.option(
    "--used", is_flag=True, help="List which hosts commands reached, and which were refused."
)
@limit_option()
@json_option
@config_option
def list_(used: bool, limit: int | None, as_json: bool, config: str | None) -> None:
    """List allowed hosts, and who allowed them.

    \b
    Examples:
      deskhand hosts list
      deskhand hosts list --used
    """
    settings = load_settings(config)
    zone = ZoneInfo(settings.config.timezone)

    async def use(store: SqlStore) -> None:
        if used:
            uses = await list_uses(store, limit or 200)
            if as_json:
                click.echo(to_json(uses))
                return
            for use in reversed(uses):
                at = datetime.fromtimestamp(use.last_at, zone).strftime("%Y-%m-%d %H:%M")
                what = f"{use.up:,} bytes out, {use.down:,} in"
                if use.refused:
                    what = f"refused: {use.refused}"
                where = f"{use.session}  {use.host}:{use.port}"
                click.echo(escape_control(f"{at}  {where}  {use.requests} times  {what}"))
            if not uses:
                click.echo("No command has connected to a host yet.")
            return
        lines = [
            f"{each}  every agent  (by the configuration)" for each in settings.config.egress.allow
        ]
        rows: list[tuple[str | bool, ...]] = [
            (each, "", "", "configuration", False) for each in settings.config.egress.allow
        ]
        for grant in await list_grants(store):
            where = grant.session or grant.agent or "every agent"
            reading = (
                (", also after reading untrusted content") if grant.knowing == READ_OUTSIDE else ""
            )
            lines.append(f"{grant.host}  {where}{reading}  (by {grant.by})")
            rows.append((grant.host, grant.agent, grant.session, grant.by, bool(reading)))
        if as_json:
            print_json_rows(("host", "agent", "session", "by", "outside"), rows[:limit])
            return
        for line in lines[:limit]:
            click.echo(escape_control(line))
        if not lines:
            click.echo(
                "Commands cannot reach any host. Allow one with: deskhand hosts allow pypi.org"
            )

    with_store(settings, use)


@hosts.command("revoke")
@click.argument("host")
@agent_option
@config_option
def revoke(host: str, agent: str, config: str | None) -> None:
    """Revoke access to a host, in all conversations. This applies from the next connection.

    \b
    Example:
      deskhand hosts revoke pypi.org
    """
    settings = load_settings(config)
    try:
        entry = str(parse_egress_host(host))
    except DeskhandError as error:
        fail(str(error), USAGE)

    async def use(store: SqlStore) -> None:
        note = audit_note(SystemClock().now(), ME.id, what="host revoked", subject=entry)
        count, _ = await store.change([drop_grants(entry, agent), note])
        if not count:
            how = "not allowed"
            if entry in settings.config.egress.allow:
                how = "allowed by the configuration"
            fail(f"{entry} is {how}; list hosts with: deskhand hosts list", FAILED)
        click.echo(f"Revoked: {count}")

    with_store(settings, use)
