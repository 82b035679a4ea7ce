"""`deskhand pair`: strangers who wrote to a bot, to be let in or refused."""

from __future__ import annotations

import sys
from math import ceil
from zoneinfo import ZoneInfo

import click

from ..config.clock import SystemClock
from ..types.people import OWNER_NAME, Identity, Pairing, User
from ..users.pairing import format_identity
from ..users.users import LocalPeople
from .encoded import to_json
from .plain import escape_control
from .run import USAGE, Listing, config_option, fail, limit_option, load_settings
from .sessions import format_local_time
from .table import print_table
from .users import with_people

ROLE_DESCRIPTIONS = {
    "owner": "do everything",
    "approver": "talk and answer approvals",
    "member": "talk",
    "viewer": "read",
}


@click.group(cls=Listing)
def pair() -> None:
    """Approve people who messaged your bot and received a code.

    A code is valid for an hour, once, and only for the person who received it. After five wrong
    codes, no code is accepted for an hour.

    \b
    Examples:
      deskhand pair
      deskhand pair approve K7TQ2MXB --user gavin --role member
      deskhand pair refuse K7TQ2MXB
    """


def _describe_requester(asked: Pairing) -> str:
    known_as = format_identity(Identity(asked.channel, asked.external_id, asked.account))
    return escape_control(f"{asked.name} ({known_as})" if asked.name else known_as)


@pair.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@limit_option()
@config_option
def list_(as_json: bool, limit: int | None, config: str | None) -> None:
    """List people who wait for approval.

    \b
    Example:
      deskhand pair list
    """
    settings = load_settings(config)

    async def use(people: LocalPeople) -> tuple[list[Pairing], float]:
        return await people.pairings(), people.locked_until()

    found, locked = with_people(settings, use)
    found = found[:limit]
    if as_json:
        click.echo(to_json(found))
        return
    zone = ZoneInfo(settings.config.timezone)
    if locked:
        click.echo(
            f"Too many wrong codes: no code is accepted until {format_local_time(locked, zone)}.",
            err=True,
        )
    if not found:
        click.echo(
            "No pairing requests. People who write to your bot for the first time get a code and "
            "are listed here."
        )
        return
    now = SystemClock().now()
    rows = [
        (each.code, _describe_requester(each), f"{ceil((each.expires_at - now) / 60)} minutes")
        for each in found
    ]
    print_table(("code", "who", "expires in"), rows)


@pair.command()
@click.argument("code")
@click.option(
    "--user",
    default="",
    metavar="NAME",
    help="Existing user. Without it and --role, the first person becomes the owner.",
)
@click.option("--role", "-r", default="", metavar="ROLE", help="Role of the new user; see above.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@config_option
def approve(code: str, user: str, role: str, yes: bool, config: str | None) -> None:
    """Approve the person with this code, as an existing or a new user.

    \b
    Roles:
      owner     may do everything
      approver  may talk, and answer approval requests
      member    may talk
      viewer    may only read
    Define more roles in the configuration (roles.NAME.agents).

    Without --user and --role, the very first person becomes the owner, so it should be you; in a
    script, add --yes. Everybody after that becomes a member, unless you set --role. Existing users
    keep their roles.

    \b
    Examples:
      deskhand pair approve K7TQ2MXB --yes
      deskhand pair approve K7TQ2MXB --user gavin --role approver
    """
    settings = load_settings(config)

    async def preview(people: LocalPeople) -> tuple[User | None, set[str], bool]:
        users = await people.users()
        is_first = not any(each.identities for each in users)
        new = await people.preview_approval(code, user, role)
        return new, {each.name for each in users}, is_first

    new, users, is_first = with_people(settings, preview)
    if new is not None:
        is_new_name = bool(user) and user not in users
        if is_first and is_new_name and not role:
            advice = "add --role owner if that is you, otherwise --role member"
            fail(f"{user} would be the first user: {advice}", USAGE)
        who = ", ".join(map(format_identity, new.identities))
        click.echo(f"{escape_control(who)} will be {describe_user(new)}.", err=True)
        if is_first and not (user or role or yes):
            _ask_whether_owner()

    async def use(people: LocalPeople) -> User:
        return await people.approve(code, user, role)

    approved = with_people(settings, use)
    known_as = ", ".join(map(format_identity, approved.identities))
    click.echo(f"Approved: {describe_user(approved)}, known as {known_as}")


def _ask_whether_owner() -> None:
    if not sys.stdin.isatty():
        fail(
            "nothing was changed: add --yes if that is you, or name the person with --user NAME "
            "--role ROLE"
        )
    if not click.confirm("Is this you?"):
        fail("not approved; name the person: --user NAME --role ROLE")


def describe_user(user: User) -> str:
    """Who somebody is, and what they may do."""
    if user.name == OWNER_NAME:
        return "you, the owner, who may do everything"
    may = ", and ".join(ROLE_DESCRIPTIONS[role] for role in user.roles if role in ROLE_DESCRIPTIONS)
    return f"{user.name}, role {', '.join(user.roles) or 'none'}" + (
        f", who may {may}" if may else ""
    )


@pair.command()
@click.argument("code")
@config_option
def refuse(code: str, config: str | None) -> None:
    """Refuse a person. They are not notified.

    \b
    Example:
      deskhand pair refuse K7TQ2MXB
    """

    async def use(people: LocalPeople) -> None:
        await people.refuse(code)

    with_people(load_settings(config), use)
    click.echo("Refused.")
