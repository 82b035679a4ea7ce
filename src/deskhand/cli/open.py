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
from .plain import plain
from .run import config_option, settings_of

WAIT_S = 60.0
LOOK_S = 0.02


@click.command("open")
@config_option
@click.pass_context
def open_(ctx: click.Context, config: str | None) -> None:
    """Open the web page in your browser, signed in. Where Deskhand does not run yet, it is started
    here, and works until you end it with Ctrl+C.

    \b
    Example:
      deskhand open
    """
    from .serve import serve

    settings = settings_of(config)
    if not settings.agent(settings.resolve_agent()).models:
        from .importing import hint

        if moving := hint(settings):
            click.echo(plain(moving), err=True)
    if (url := read_address(settings.home)) and read_holder(settings.home.serve_lock) is not None:
        show(settings, link(settings, url), browser=True)
    else:
        ctx.invoke(serve, worker=None, open_=True, config=config)


def link(settings: Settings, url: str, user: str = OWNER_NAME) -> str:
    """A link that logs one browser in: once, within ten minutes. What stands behind `#` is sent to
    nobody."""
    from .users import with_people  # the parent of a service stays small without it

    return f"{url}/#login={with_people(settings, lambda people: people.make_login(user))}"


def show(settings: Settings, address: str, *, browser: bool) -> None:
    """Say where the page is, and open it where there is a screen to open it on."""
    click.echo(f"The page: {plain(address)}")
    screen = settings.environment.get("DISPLAY") or settings.environment.get("WAYLAND_DISPLAY")
    if browser and (screen or sys.platform == "darwin"):
        webbrowser.open(address)
    if "#login=" in address:
        click.echo(
            "The link logs one browser in, within ten minutes; deskhand login prints another.",
            err=True,
        )


async def announce(settings: Settings, open_: bool) -> None:
    """Show the page once it is there: with a link that logs in, if a person reads this."""
    with anyio.move_on_after(WAIT_S):
        while not (url := read_address(settings.home)):  # noqa: ASYNC110 -- another process writes it
            await anyio.sleep(LOOK_S)
        reads = open_ or sys.stdout.isatty()
        address = await anyio.to_thread.run_sync(link, settings, url) if reads else url
        show(settings, address, browser=open_)
