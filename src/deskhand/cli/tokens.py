"""`deskhand tokens` and `login`: credentials for programs, and a way in for a browser."""

from __future__ import annotations

from collections.abc import Sequence
from zoneinfo import ZoneInfo

import click

from ..config.clock import SystemClock
from ..types.people import OWNER_NAME, SCOPES, Scope, TokenRow
from ..users.users import LocalPeople
from .encoded import to_json
from .run import USAGE, Listing, config_option, fail, limit_option, load_settings
from .sessions import format_local_time
from .table import print_table
from .users import with_people

DAY_S = 24 * 3600.0


@click.group(cls=Listing)
def tokens() -> None:
    """Create, list and revoke API tokens.

    A token may do what its scopes allow, but never more than its user: read, chat, approve (answer
    approvals), admin (change settings). Only its hash is stored.

    \b
    Examples:
      deskhand tokens create phone --scopes read,chat
      curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8000/api/status
      deskhand tokens revoke tok_5f0c
    """


@tokens.command("list")
@click.option("--user", default="", metavar="NAME", help="Only tokens of this user.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@limit_option()
@config_option
def list_(user: str, as_json: bool, limit: int | None, config: str | None) -> None:
    """List tokens and signed-in browsers.

    \b
    Example:
      deskhand tokens list
    """
    settings = load_settings(config)
    rows = with_people(settings, lambda people: people.tokens(user))[:limit]
    if as_json:
        click.echo(to_json(rows))
        return
    if not rows:
        click.echo("No tokens yet. Create one: deskhand tokens create phone")
        return
    _print_tokens(rows, ZoneInfo(settings.config.timezone))


def _print_tokens(rows: Sequence[TokenRow], zone: ZoneInfo) -> None:
    now = SystemClock().now()

    def format_expiry(expires_at: float | None) -> str:
        if expires_at is None:
            return "never"
        return "expired" if expires_at <= now else format_local_time(expires_at, zone)

    shown = []
    for row in rows:
        scopes = ",".join(row.scopes)
        expires = format_expiry(row.expires_at)
        used = "-" if row.last_used_at is None else format_local_time(row.last_used_at, zone)
        shown.append((row.id, row.user, row.name, scopes, expires, used))
    print_table(("id", "user", "name", "scopes", "expires", "last used"), shown)


@tokens.command()
@click.argument("name")
@click.option(
    "--user",
    default=OWNER_NAME,
    show_default=True,
    metavar="NAME",
    help="User that the token acts as.",
)
@click.option("--scopes", default=",".join(SCOPES), show_default=True, help="Scopes of the token.")
@click.option(
    "--days",
    default=90.0,
    show_default=True,
    type=click.FloatRange(0),
    help="Days until it expires; 0 for never.",
)
@config_option
def create(name: str, user: str, scopes: str, days: float, config: str | None) -> None:
    """Create a token. It is printed once, on a line of its own; it cannot be shown again.

    \b
    Example:
      deskhand tokens create phone --scopes read,chat --days 30
    """
    wanted = parse_scopes(scopes)
    lasts_s = days * DAY_S if days else None
    row, secret = with_people(
        load_settings(config), lambda people: people.make_token(user, name, wanted, lasts_s)
    )
    _print_token(row, secret, days)


def parse_scopes(text: str) -> tuple[Scope, ...]:
    """Scopes with commas between them. Ends the command for one that there is not."""
    wanted: list[Scope] = []
    for scope in text.split(","):
        known = next((each for each in SCOPES if each == scope.strip()), None)
        if known is None:
            fail(f"there is no scope {scope.strip()!r}; choose from: {', '.join(SCOPES)}", USAGE)
        wanted.append(known)
    return tuple(wanted)


def _print_token(row: TokenRow, secret: str, days: float | None) -> None:
    """`days` is 0 where it does not expire, None where it takes the place of another."""
    click.echo(secret)
    if days is None:
        lasts = "until the old one would have expired"
    else:
        lasts = f"for {days:g} days" if days else "until it is revoked"
    may = f"{row.user} may {', '.join(row.scopes)} with it, {lasts}"
    click.echo(f"{row.id}: {may}. Save it now: it is not shown again.", err=True)


@tokens.command()
@click.argument("token_id", metavar="ID")
@config_option
def rotate(token_id: str, config: str | None) -> None:
    """Replace a token; the old one stops working immediately. A unique prefix of the id is enough.

    \b
    Example:
      deskhand tokens rotate tok_5f0c
    """

    async def use(people: LocalPeople) -> tuple[TokenRow, str]:
        return await people.rotate(await _resolve_token(people, token_id))

    row, secret = with_people(load_settings(config), use)
    _print_token(row, secret, None)


@tokens.command()
@click.argument("token_id", metavar="ID")
@config_option
def revoke(token_id: str, config: str | None) -> None:
    """Revoke a token or a browser's login immediately. A unique prefix of the id is enough.

    \b
    Example:
      deskhand tokens revoke tok_5f0c
    """

    async def use(people: LocalPeople) -> str:
        meant = await _resolve_token(people, token_id)
        await people.revoke(meant)
        return meant

    click.echo(f"Revoked {with_people(load_settings(config), use)}.")


async def _resolve_token(people: LocalPeople, beginning: str) -> str:
    found = [row.id for row in await people.tokens() if row.id.startswith(beginning)]
    if len(found) != 1:
        why = "matches more than one token" if found else "is not a token"
        fail(f"{beginning!r} {why}; list tokens with: deskhand tokens list", USAGE)
    return found[0]


@click.command()
@click.option(
    "--user",
    default=OWNER_NAME,
    show_default=True,
    metavar="NAME",
    help="User to sign in.",
)
@config_option
def login(user: str, config: str | None) -> None:
    """Print a link that signs in one browser, once, within ten minutes. `deskhand serve` must be
    running.

    \b
    Example:
      deskhand login
    """
    from ..config.address import read_address

    settings = load_settings(config)
    url = read_address(settings.home)
    if not url:
        fail("Deskhand is not running; start it with: deskhand serve")
    secret = with_people(settings, lambda people: people.make_login(user))
    click.echo(f"{url}/#login={secret}")
    click.echo(f"Open it within ten minutes; it signs in one browser as {user}.", err=True)
