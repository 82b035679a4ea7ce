"""`deskhand store`: where the database is, and how to move it."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import anyio
import click

from ..config.clock import SystemClock
from ..config.config import Settings, check_store
from ..config.database import database_name, has_database
from ..store.move import move as move_rows
from ..store.move import verify
from ..supervision.lock import Holder, acquire_lock
from ..types.errors import ConfigError, DeskhandError
from .run import USAGE, Group, config_option, fail, load_settings

SQLITE = "sqlite"


@click.group(cls=Group)
def store() -> None:
    """Show where the database is, or move it to PostgreSQL and back.

    \b
    Examples:
      deskhand store show
      deskhand store move postgresql://deskhand@db.example.org/deskhand
      deskhand store move sqlite
    """


@store.command()
@config_option
def show(config: str | None) -> None:
    """Print where the database is.

    \b
    Example:
      deskhand store show
    """
    settings = load_settings(config)
    click.echo(database_name(settings))


@store.command()
@click.argument("target", metavar="ADDRESS|sqlite")
@config_option
def move(target: str, config: str | None) -> None:
    """Copy everything to another database, and verify the copy.

    The old database is not changed. If the copy is interrupted, run the command again: it goes on.
    Stop Deskhand before you start. Then set `store` to use the new database.

    \b
    Examples:
      deskhand store move postgresql://deskhand@db.example.org/deskhand
      deskhand store move sqlite
    """
    settings = load_settings(config)
    try:
        check_store("" if target == SQLITE else target)
    except ConfigError as error:
        fail(str(error), USAGE)
    old = settings.config.store or SQLITE
    if old == target:
        fail(f"the database is there already: {database_name(settings)}", USAGE)
    if SQLITE not in (old, target):
        fail("one of the two must be SQLite; move to `sqlite` first, then on", USAGE)
    if not has_database(settings):
        fail("there is no database to move yet; set `store` and start: deskhand config set store …")
    if find_spec("psycopg") is None:
        fail("the driver of PostgreSQL is not installed: pip install 'deskhand[postgres]'")
    _hold_locks(settings)
    try:
        events = anyio.run(_move, settings.home.database, target if old == SQLITE else old, old)
    except DeskhandError as error:
        fail(f"{error}. The old database is unchanged; run the command again to go on")
    click.echo(f"Copied and verified: {events:,} events, all hash chains valid.")
    use = "unset store" if target == SQLITE else f"set store '{target}'"
    click.echo(f"The old database is unchanged. To use the new one: deskhand config {use}")


def _hold_locks(settings: Settings) -> None:
    """Nothing may write meanwhile. Ends the command where something runs."""
    home = settings.home
    home.make_folder(home.state)
    holder = Holder(os.getpid(), SystemClock().now())
    for path in home.all_locks():
        if acquire_lock(path, holder) is None:
            fail("Deskhand is running; stop it first, and close its terminals")


async def _move(path: Path, url: str, old: str) -> int:
    from ..store.move_sides import PostgresSide, SqliteSide

    sqlite = SqliteSide(path)
    try:
        postgres = PostgresSide(url)
    except BaseException:
        await sqlite.close()
        raise
    try:
        if busy := await postgres.store.workers():
            names = ", ".join(row.name for row in busy)
            raise DeskhandError(f"processes still use that database ({names}); stop them first")
        source, target = (sqlite, postgres) if old == SQLITE else (postgres, sqlite)
        move_rows(source, target, _show_progress)
        _show_progress("", 0)
        return await verify(source.store, target.store)
    finally:
        await sqlite.close()
        await postgres.close()


def _show_progress(table: str, rows: int) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r\033[K{table}: {rows:,} rows" if rows else "\r\033[K", nl=False, err=True)
