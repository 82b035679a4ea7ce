"""`deskhand browser`: the sign-ins that agents may use on web pages."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import click

from ..computer.browser.sign_in_window import require_screen, take_sign_in
from ..computer.browser.sign_ins import (
    MAX_FILE_BYTES,
    SignIns,
    SiteSignIn,
    parse_site,
    read_exported,
)
from ..config.clock import SystemClock
from ..config.config import Settings
from ..tools.render import INSTALL_COMMAND, find_browser
from ..types.errors import ConfigError, DeskhandError
from .run import (
    FAILED,
    USAGE,
    Listing,
    add_audit_note,
    config_option,
    fail,
    json_option,
    limit_option,
    load_settings,
    run,
)
from .table import print_json_rows


@click.group(cls=Listing)
def browser() -> None:
    """Give agents sign-ins for web pages, and take them back.

    An agent asks before it uses one, and before clicks, keys and choices where you are signed in.

    \b
    Examples:
      deskhand browser sign-in github.com
      deskhand browser list
    """


@browser.command("sign-in")
@click.argument("site")
@click.option(
    "--file",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Take it from a storage state of Playwright or a cookies.txt instead.",
)
@config_option
def sign_in(site: str, file: Path | None, config: str | None) -> None:
    """Sign in to a site in a window, so that agents can use your account there.

    Close the window when you are signed in. Only what belongs to this site is kept, in the home
    folder; an earlier sign-in for it is replaced.

    \b
    Examples:
      deskhand browser sign-in github.com
      deskhand browser sign-in https://shop.example.org/login
      deskhand browser sign-in github.com --file state.json
    """
    settings = load_settings(config)
    try:
        host = parse_site(site)
        given = _read_file(file, host) if file else _open_window(settings, site, host)
        SignIns(settings.home.sign_ins).save(given)
    except (DeskhandError, OSError) as error:
        fail(str(error), USAGE)
    add_audit_note(settings, "sign-in given", host)
    click.echo(f"Agents may ask to use your sign-in at {host}.")
    click.echo(f"Take it back with: deskhand browser sign-out {host}")


def _read_file(file: Path, site: str) -> SiteSignIn:
    try:
        with file.open("rb") as opened:
            return read_exported(opened.read(MAX_FILE_BYTES + 1), site, SystemClock().now())
    except OSError as error:
        raise ConfigError(f"{str(file)!r} cannot be read: {error.strerror}") from error
    except ConfigError as error:
        raise ConfigError(f"{str(file)!r} was not used: {error}") from error


def _open_window(settings: Settings, address: str, site: str) -> SiteSignIn:
    program = find_browser()
    if not program:
        fail(f"Chromium is not installed on this machine: {INSTALL_COMMAND}", FAILED)
    require_screen(settings.started_with)
    url = address if "://" in address else f"https://{address}"
    click.echo(f"Sign in at {site} in the window that opens, and close it when you are done.")
    now = SystemClock().now()
    take = partial(take_sign_in, program, url, site, now, settings.started_with)
    return run(settings, take, log=False)


@browser.command("list")
@limit_option()
@json_option
@config_option
def list_(limit: int | None, as_json: bool, config: str | None) -> None:
    """List the sites for which agents have a sign-in of yours.

    \b
    Example:
      deskhand browser list
    """
    settings = load_settings(config)
    known = SignIns(settings.home.sign_ins)
    found: list[SiteSignIn] = []
    for site in known.list_sites()[:limit]:
        try:
            found.append(known.load(site))
        except ConfigError as error:
            click.echo(f"{site}: {error}", err=True)
    if as_json:
        print_json_rows(("site", "given_at"), [(each.site, each.taken_at) for each in found])
        return
    zone = ZoneInfo(settings.config.timezone)
    for each in found:
        click.echo(f"{each.site}  given {datetime.fromtimestamp(each.taken_at, zone):%Y-%m-%d}")
    if not found:
        click.echo("There are none. Give one with: deskhand browser sign-in SITE")


@browser.command("sign-out")
@click.argument("site")
@config_option
def sign_out(site: str, config: str | None) -> None:
    """Delete a sign-in. Pages that are open with it are closed at the next action.

    The site itself may still know the session: sign out there too where you want it to end.

    \b
    Example:
      deskhand browser sign-out github.com
    """
    settings = load_settings(config)
    try:
        host = parse_site(site)
        SignIns(settings.home.sign_ins).remove(host)
    except (DeskhandError, OSError) as error:
        fail(str(error), USAGE)
    add_audit_note(settings, "sign-in removed", host)
    click.echo(f"Deleted the sign-in at {host}")
