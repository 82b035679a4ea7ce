"""`deskhand pair`: strangers who wrote to a bot, to be let in or refused."""

from __future__ import annotations

import sys
from math import ceil
from zoneinfo import ZoneInfo

import click
import msgspec

from ..runtime.clock import SystemClock
from ..runtime.pairing import described
from ..runtime.people import LocalPeople
from ..types.people import OWNER_NAME, Identity, Pairing, User
from .plain import plain
from .run import Listing, config_option, fail, limit_option, settings_of
from .sessions import when
from .table import table
from .users import with_people


@click.group(cls=Listing)
def pair() -> None:
    """Let in who wrote to a bot of yours and was told a code.

    A code holds for an hour, once, for who was told it. After five codes that do not hold none is taken for an hour.

    \b
    Examples:
      deskhand pair
      deskhand pair approve K7TQ2MXB --user gavin
      deskhand pair refuse K7TQ2MXB
    """


def _who(asked: Pairing) -> str:
    known_as = described(Identity(asked.channel, asked.external_id, asked.account))
    return plain(f"{asked.name} ({known_as})" if asked.name else known_as)


@pair.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@limit_option()
@config_option
def list_(as_json: bool, limit: int | None, config: str | None) -> None:
    """Who waits to be let in.

    \b
    Example:
      deskhand pair list
    """
    settings = settings_of(config)

    async def use(people: LocalPeople) -> tuple[list[Pairing], float]:
        return await people.pairings(), people.locked_until()

    found, locked = with_people(settings, use)
    found = found[:limit]
    if as_json:
        click.echo(msgspec.json.encode(found))
        return
    zone = ZoneInfo(settings.config.timezone)
    if locked:
        click.echo(f"After too many bad codes none is taken until {when(locked, zone)}.", err=True)
    if not found:
        click.echo("Nobody waits. Who writes to your bot is told a code, and stands here then.")
        return
    now = SystemClock().now()
    rows = [(each.code, _who(each), f"{ceil((each.expires_at - now) / 60)} minutes") for each in found]
    table(("code", "who", "holds for"), rows)


@pair.command()
@click.argument("code")
@click.option(
    "--user", default="", metavar="NAME", help="Who they are; without it and --role, the first one ever is you."
)
@click.option("--role", "-r", default="", metavar="ROLE", help="What a new user may do; without it they are a member.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@config_option
def approve(code: str, user: str, role: str, yes: bool, config: str | None) -> None:
    """Let in who was told this code: as the user that you name, or as a new one.

    Without --user and --role, the very first one to be let in is you, the owner.

    \b
    Examples:
      deskhand pair approve K7TQ2MXB
      deskhand pair approve K7TQ2MXB --user gavin --role approver
    """
    settings = settings_of(config)

    async def first(people: LocalPeople) -> Pairing | None:
        wanted = code.replace("-", "").replace(" ", "").upper()
        known = any(each.identities for each in await people.users())
        return None if known or user or role else next((a for a in await people.pairings() if a.code == wanted), None)

    asked = with_people(settings, first)
    if asked is not None and not yes:
        if not sys.stdin.isatty():
            fail(f"{_who(asked)} would be you, the owner: say --yes if that is so, or who else it is with --user NAME")
        if not click.confirm(f"{_who(asked)} would be you, the owner, who may do everything. Is it you?"):
            fail("not let in; say who it is: --user NAME")

    async def use(people: LocalPeople) -> User:
        return await people.approve(code, user, role)

    let_in = with_people(settings, use)
    whose = "you, the owner" if let_in.name == OWNER_NAME else f"{let_in.name} ({', '.join(let_in.roles)})"
    click.echo(f"Let in: {whose}, known as {', '.join(described(each) for each in let_in.identities)}")


@pair.command()
@click.argument("code")
@config_option
def refuse(code: str, config: str | None) -> None:
    """Do not let them in. They hear nothing of it.

    \b
    Example:
      deskhand pair refuse K7TQ2MXB
    """

    async def use(people: LocalPeople) -> None:
        await people.refuse(code)

    with_people(settings_of(config), use)
    click.echo("Refused.")
