"""`deskhand update`: install a newer version, and go back where it does not work."""

from __future__ import annotations

import signal
import sys

import anyio
import click

from ..config.clock import SystemClock
from ..config.config import Settings
from ..supervision.update import (
    NewVersion,
    UpdateHalfDone,
    find_checkout,
    go_back,
    install,
    is_serving,
    is_standing_by,
    look_for_update,
    read_schema,
    restart_service,
    try_out,
)
from ..types.errors import DeskhandError
from .plain import escape_control
from .run import FAILED, USAGE, config_option, fail, load_service_settings

OTHERWISE = (
    "this Deskhand does not run from a source checkout; update it as you installed it: "
    "`uv tool upgrade deskhand`, `pipx upgrade deskhand`, or with Docker "
    "`docker compose pull` and `docker compose up -d`"
)
NEWS = 20


@click.command()
@click.option("--check", is_flag=True, help="Only say whether there is a newer version.")
@click.option(
    "--to", "ref", default="", metavar="VERSION", help="Update to this tag, branch or commit."
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@config_option
def update(check: bool, ref: str, yes: bool, config: str | None) -> None:
    """Update Deskhand, and go back if the new version does not work.

    The new version is first installed beside the one that runs, and has to answer a message on a
    copy of your data. Then it takes the place of the old one, and the service restarts. If it does
    not start, the old version comes back, unless the new one has changed the database.

    \b
    Examples:
      deskhand update --check
      deskhand update
      deskhand update --to v1.2
    """
    settings = load_service_settings(config, quiet=True)
    folder = find_checkout()
    if folder is None:
        fail(OTHERWISE)
    try:
        found = look_for_update(folder, ref)
    except DeskhandError as error:
        fail(str(error), USAGE if check else FAILED)
    if found is None:
        newest = f"{ref} is not newer than what runs" if ref else "Deskhand is up to date"
        click.echo(f"{escape_control(newest)}.")
        return
    _show(found)
    if check:
        sys.exit(1)
    if not yes:
        click.confirm("Update now?", default=True, abort=True)
    _update(settings, found)


def _show(found: NewVersion) -> None:
    many = f"{found.commits} commit{'s' if found.commits > 1 else ''}"
    click.echo(f"A newer version is there: {found.old[:8]} -> {found.new[:8]}, {many}.")
    for line in found.news[:NEWS]:
        click.echo(f"  {escape_control(line)}")
    if len(found.news) > NEWS:
        click.echo(f"  and {len(found.news) - NEWS} more lines in CHANGELOG.md")


def _update(settings: Settings, found: NewVersion) -> None:
    for order in (signal.SIGTERM, signal.SIGHUP):  # as Ctrl+C: what was begun is cleaned up
        signal.signal(order, signal.default_int_handler)
    home = settings.home
    if is_standing_by(home):
        fail("a terminal chat does the work of the service: end it first, then update again")
    try:
        if home.database.exists() or settings.config.store:
            try_out(settings, found, SystemClock().now(), _show_step)
        schema = read_schema(settings)
        _show_step("Putting it in place")
        install(found)
    except UpdateHalfDone as error:
        fail(f"not updated: {error}")
    except (DeskhandError, OSError) as error:
        fail(f"not updated: {error}. Nothing was changed")
    if is_serving(home):
        _show_step("Restarting the service")
        if not anyio.run(restart_service, home, settings.config.start_s):
            _go_back(settings, found, schema)
    click.echo(f"Updated to {found.new[:8]}.")


def _go_back(settings: Settings, found: NewVersion, schema: int) -> None:
    """The old version does not know a database that the new one has changed."""
    help_ = "What went wrong: deskhand doctor, deskhand logs"
    try:
        if read_schema(settings) != schema:
            fail(
                f"the service did not become ready with {found.new[:8]}. It has changed the "
                f"database, so {found.old[:8]} cannot come back. {help_}"
            )
        _show_step("The service did not start. Going back to the old version")
        is_up = anyio.run(go_back, settings, found)
    except (DeskhandError, OSError) as error:
        fail(f"the new version did not start, and the old one is not back: {error}")
    start = "The service works with it again" if is_up else "Start it with: deskhand serve"
    fail(f"{found.new[:8]} did not start, so {found.old[:8]} is back. {start}. {help_}")


def _show_step(text: str) -> None:
    click.echo(f"{text} …")
