"""`deskhand users`: who may talk here, as whom they are known, and what they may do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar
from zoneinfo import ZoneInfo

import click

from ..config.clock import SystemClock
from ..config.config import Settings
from ..policy.roles import allowed_agents, allowed_scopes
from ..types.people import Identity, User
from ..users.pairing import format_identity
from ..users.users import LocalPeople, open_people
from .encoded import to_json
from .plain import escape_control
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
from .sessions import format_local_time
from .table import print_table

T = TypeVar("T")


def with_people(settings: Settings, use: Callable[[LocalPeople], Awaitable[T]]) -> T:
    """Open the users alone, as the owner. What is changed holds at once in a Deskhand that runs."""
    roles = {name: role.agents for name, role in settings.config.roles.items()}
    return with_store(
        settings, lambda store: use(open_people(store, SystemClock(), lambda: roles, dict))
    )


def account_option(command: Callable[..., None]) -> Callable[..., None]:
    text = "Only on this bot account of the channel."
    return click.option("--account", default="", metavar="NAME", help=text)(command)


def _make_identity(channel: str, external_id: str, account: str = "") -> Identity:
    return Identity(channel, external_id, account)


@click.group(cls=Listing)
def users() -> None:
    """Manage users, their chat identities and their roles.

    owner may do everything; approver may also answer approvals; member may talk; viewer may only
    read. Define more roles in the configuration (roles.NAME.agents).

    \b
    Examples:
      deskhand users
      deskhand users add gavin --role member telegram 12345678
      deskhand users add-role gavin approver
    """


@users.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@limit_option()
@config_option
def list_(as_json: bool, limit: int | None, config: str | None) -> None:
    """List users, their roles and their identities.

    \b
    Example:
      deskhand users list
    """
    found = with_people(load_settings(config), lambda people: people.users())[:limit]
    if as_json:
        click.echo(to_json(found))
        return
    print_table(
        ("user", "roles", "known as"),
        [(user.name, ", ".join(user.roles), _describe_identities(user)) for user in found],
    )
    if len(found) == 1 and limit != 1 and not found[0].identities:
        click.echo(
            "Only you, on this machine. To approve people who message your bot: deskhand pair",
            err=True,
        )


def _describe_identities(user: User) -> str:
    return ", ".join(format_identity(identity) for identity in user.identities)


@users.command()
@click.argument("name")
@config_option
def info(name: str, config: str | None) -> None:
    """Show a user's roles, identities and tokens.

    \b
    Example:
      deskhand users info gavin
    """
    settings = load_settings(config)
    roles = {each: role.agents for each, role in settings.config.roles.items()}

    async def use(people: LocalPeople) -> None:
        user = next((each for each in await people.users() if each.name == name), None)
        if user is None:
            fail(f"there is no user {name!r}; list users with: deskhand users list", USAGE)
        agents = allowed_agents(user.roles, roles)
        tokens = await people.tokens(name)
        since = "the beginning"
        if user.created_at:
            since = format_local_time(user.created_at, ZoneInfo(settings.config.timezone))
        lines = (
            ("user", user.name),
            ("since", since),
            ("roles", ", ".join(user.roles) or "none: no access"),
            ("may", ", ".join(allowed_scopes(user.roles, roles)) or "nothing"),
            ("agents", "all" if agents is None else ", ".join(agents) or "none"),
            ("known as", _describe_identities(user) or "no identities yet: deskhand users link"),
            ("tokens", ", ".join(f"{token.id} ({token.name})" for token in tokens) or "none"),
        )
        for title, text in lines:
            click.echo(f"{title:9} {escape_control(text)}")

    with_people(settings, use)


@users.command()
@click.argument("name")
@click.option("--role", "-r", default="member", show_default=True, help="Role of the user.")
@click.argument("channel", required=False, default="")
@click.argument("external_id", metavar="[ID]", required=False, default="")
@account_option
@config_option
def add(
    name: str, role: str, channel: str, external_id: str, account: str, config: str | None
) -> None:
    """Add a user with their numeric id on a chat platform (never a name).

    \b
    Examples:
      deskhand users add gavin --role member telegram 12345678
      deskhand users add kiosk --role viewer
    """
    if bool(channel) != bool(external_id):
        fail(f"add the person's id on {channel!r}, such as: telegram 12345678", USAGE)
    identity = _make_identity(channel, external_id, account) if channel else None
    user = with_people(load_settings(config), lambda people: people.add_user(name, role, identity))
    click.echo(
        f"Added {user.name}: {', '.join(user.roles)}"
        + (f", {_describe_identities(user)}" if channel else "")
    )


@users.command()
@click.argument("name")
@config_option
def remove(name: str, config: str | None) -> None:
    """Remove a user, with their identities and tokens. What they said stays.

    \b
    Example:
      deskhand users remove gavin
    """
    with_people(load_settings(config), lambda people: people.remove_user(name))
    click.echo(
        f"Removed {name}. Their conversations are kept: a new user of this name could read them."
    )


@users.command()
@click.argument("name")
@click.argument("channel")
@click.argument("external_id", metavar="ID")
@account_option
@config_option
def link(name: str, channel: str, external_id: str, account: str, config: str | None) -> None:
    """Link an id on a chat platform to a user.

    \b
    Example:
      deskhand users link gavin slack U04ABC123
    """
    user = with_people(
        load_settings(config),
        lambda people: people.link(name, _make_identity(channel, external_id, account)),
    )
    click.echo(f"Linked. Identities of {user.name}: {_describe_identities(user)}")


@users.command()
@click.argument("name")
@click.argument("channel")
@click.argument("external_id", metavar="ID")
@account_option
@config_option
def unlink(name: str, channel: str, external_id: str, account: str, config: str | None) -> None:
    """Unlink a user's id on a chat platform.

    \b
    Example:
      deskhand users unlink gavin slack U04ABC123
    """
    wanted = _make_identity(channel, external_id, account)

    async def use(people: LocalPeople) -> None:
        theirs = next((each.identities for each in await people.users() if each.name == name), ())
        if not any((each.channel, each.external_id) == (channel, external_id) for each in theirs):
            fail(
                (
                    f"{format_identity(wanted)} is not linked to {name!r}; list their identities "
                    f"with: deskhand users info {name}"
                ),
                USAGE,
            )
        await people.unlink(wanted)

    with_people(load_settings(config), use)
    click.echo(f"Unlinked {format_identity(wanted)}.")


@users.command("add-role")
@click.argument("name")
@click.argument("role")
@config_option
def add_role(name: str, role: str, config: str | None) -> None:
    """Add a role to a user.

    \b
    Example:
      deskhand users add-role gavin approver
    """
    user = with_people(load_settings(config), lambda people: people.add_role(name, role))
    click.echo(f"{user.name} has: {', '.join(user.roles)}")


@users.command("remove-role")
@click.argument("name")
@click.argument("role")
@config_option
def remove_role(name: str, role: str, config: str | None) -> None:
    """Remove a role from a user. This takes effect immediately, also for existing tokens.

    \b
    Example:
      deskhand users remove-role gavin approver
    """
    user = with_people(load_settings(config), lambda people: people.remove_role(name, role))
    click.echo(f"{user.name} has: {', '.join(user.roles) or 'no role, and no access'}")


@users.command("log")
@limit_option(20)
@json_option
@config_option
def log_(limit: int, as_json: bool, config: str | None) -> None:
    """Show the audit log of users and access, latest first.

    \b
    Example:
      deskhand users log -n 50
    """
    settings = load_settings(config)
    notes = with_people(settings, lambda people: people.list_audit_notes(limit))
    zone = ZoneInfo(settings.config.timezone)
    if as_json:
        click.echo(to_json(notes))
        return
    if not notes:
        click.echo("No changes yet.")
        return
    print_table(
        ("when", "who", "what", "target"),
        [(format_local_time(n.at, zone), n.who, n.what, n.subject) for n in notes],
    )
