"""`deskhand open`: the page in a browser, logged in; the service is started first where none
runs."""

from __future__ import annotations

import sys
import webbrowser

import anyio
import anyio.to_thread
import click

from ..config.address import read_address
from ..config.config import Settings
from ..supervision.lock import read_holder
from ..types.people import OWNER_NAME
from .plain import escape_control
from .run import config_option, load_settings

WAIT_S = 60.0
POLL_S = 0.02


@click.command("open")
@config_option
@click.pass_context
def open_(ctx: click.Context, config: str | None) -> None:
    """Open the web page in your browser, signed in. If Deskhand is not running, it is started
    here, and runs until you press Ctrl+C.

    \b
    Example:
      deskhand open
    """
    from .serve import serve

    settings = load_settings(config)
    if not settings.agent(settings.resolve_agent()).models:
        from .importing import find_import_hint

        if moving := find_import_hint(settings):
            click.echo(escape_control(moving), err=True)
    if (url := read_address(settings.home)) and read_holder(settings.home.serve_lock) is not None:
        show_page(settings, make_login_link(settings, url), browser=True)
    else:
        ctx.invoke(serve, worker=None, open_=True, config=config)


def make_login_link(settings: Settings, url: str, user: str = OWNER_NAME) -> str:
    """A link that logs one browser in: once, within ten minutes. What stands behind `#` is sent to
    nobody."""
    from .users import with_people  # the parent of a service stays small without it

    return f"{url}/#login={with_people(settings, lambda people: people.make_login(user))}"


def show_page(settings: Settings, address: str, *, browser: bool) -> None:
    """Say where the page is, and open it where there is a screen to open it on."""
    click.echo(f"Web page: {escape_control(address)}")
    screen = settings.environment.get("DISPLAY") or settings.environment.get("WAYLAND_DISPLAY")
    if browser and (screen or sys.platform == "darwin"):
        webbrowser.open(address)
    if "#login=" in address:
        click.echo(
            "The link signs in one browser, within ten minutes. For another link: deskhand login",
            err=True,
        )


async def show_page_when_ready(settings: Settings, open_: bool) -> None:
    """Show the page once it is there: with a link that logs in, if a person reads this."""
    with anyio.move_on_after(WAIT_S):
        while not (url := read_address(settings.home)):  # noqa: ASYNC110 -- another process writes it
            await anyio.sleep(POLL_S)
        reads = open_ or sys.stdout.isatty()
        address = await anyio.to_thread.run_sync(make_login_link, settings, url) if reads else url
        show_page(settings, address, browser=open_)
