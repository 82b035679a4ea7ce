"""`deskhand backup`: back up this home, and restore it."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import click

from ..config.clock import SystemClock
from ..config.config import Settings
from ..supervision.backup import make_backup, verify_archive
from ..supervision.backup_places import (
    S3_SCHEME,
    BackupFile,
    BackupPlace,
    list_backups,
    open_place,
    prune_backups,
    split_address,
)
from ..supervision.erased_index import read_erased
from ..supervision.lock import Holder, acquire_lock, read_holder
from ..supervision.restore import folder_with_room, open_backup, restore_backup
from ..types.errors import DeskhandError
from ..types.sizes import format_size
from .plain import escape_control
from .run import (
    USAGE,
    Group,
    config_option,
    fail,
    json_option,
    limit_option,
    load_service_settings,
    load_settings,
)
from .table import print_json_rows

key_option = click.option(
    "--key", default="", metavar="FILE", help="File with the key of age, for an encrypted backup."
)


@click.group(cls=Group)
def backup() -> None:
    """Make, list, verify and restore backups.

    A backup has everything in Deskhand's home: conversations, memories, files of agents, settings
    and keys. It can be made while Deskhand runs. It lies in a folder, or in a bucket of a service
    that speaks S3.

    \b
    Examples:
      deskhand backup make ~/backups
      deskhand backup make s3://my-bucket/deskhand
      deskhand backup restore ~/backups/deskhand-3f9a1c-2026-11-26T03-00-00.tar.gz
      deskhand config set backup.folder ~/backups     # every night
    """


@backup.command()
@click.argument("folder", required=False)
@click.option("--keep", type=click.IntRange(0), help="Delete all but so many of the newest.")
@click.option(
    "--for",
    "recipient",
    default="",
    metavar="KEY",
    help="Encrypt it for this public key of age.",
)
@config_option
def make(folder: str | None, keep: int | None, recipient: str, config: str | None) -> None:
    """Make a backup in a folder or bucket, and verify it by restoring it beside.

    Without a folder, `backup.folder` of the configuration is used.

    \b
    Examples:
      deskhand backup make ~/backups --keep 7
      deskhand backup make /mnt/disk --for age1example
    """
    settings = load_settings(config)
    own = settings.config.backup
    try:
        place = _open_place(settings, folder)
        made, listed = make_backup(
            settings,
            place,
            now=SystemClock().now(),
            recipient=recipient or own.recipient,
            progress=_show_progress,
        )
    except (DeskhandError, OSError) as error:
        _show_progress("")
        fail(f"no backup was made: {error}")
    _show_progress("")
    click.echo(
        f"{escape_control(made.address)}: {format_size(made.size)}, {len(listed.files):,} files, "
        f"{listed.events:,} events. Verified."
    )
    for each in listed.left_out:
        click.echo(f"Not in it: {escape_control(each)}")
    try:
        kept = own.keep if keep is None and not folder else keep or 0
        for old in prune_backups(place, made, kept):
            click.echo(f"Deleted {escape_control(old.name)}")
    except (DeskhandError, OSError) as error:
        fail(f"the backup was made, but an older one could not be deleted: {error}")


@backup.command("list")
@click.argument("folder", required=False)
@limit_option()
@json_option
@config_option
def list_(folder: str | None, limit: int | None, as_json: bool, config: str | None) -> None:
    """List the backups in a folder or bucket, the newest first.

    \b
    Example:
      deskhand backup list ~/backups
    """
    try:
        place = _open_place(load_service_settings(config, quiet=True), folder)
        found = list_backups(place)
    except (DeskhandError, OSError) as error:
        fail(str(error))
    if as_json:
        listed = [(each.name, each.at, each.size, each.is_encrypted) for each in found[:limit]]
        print_json_rows(("name", "at", "size_bytes", "encrypted"), listed)
        return
    if not found:
        click.echo(f"There is no backup in {escape_control(place.address)}.")
    for each in found[:limit]:
        click.echo(_describe(each))


@backup.command()
@click.argument("file")
@key_option
@config_option
def verify(file: str, key: str, config: str | None) -> None:
    """Restore a backup into a temporary folder and compare everything; nothing here is changed.

    \b
    Example:
      deskhand backup verify ~/backups/deskhand-3f9a1c-2026-11-26T03-00-00.tar.gz
    """
    try:
        with (
            _fetched(load_service_settings(config, quiet=True), file) as path,
            tempfile.TemporaryDirectory(
                prefix="deskhand-verify-", dir=folder_with_room(path)
            ) as folder,
            open_backup(path, key) as archive,
        ):
            listed = verify_archive(archive, Path(folder) / "home")
    except (DeskhandError, OSError) as error:
        fail(str(error))
    made = datetime.fromtimestamp(listed.at).astimezone()
    click.echo(
        f"Made {made:%Y-%m-%d %H:%M} by Deskhand {listed.version}: {len(listed.files):,} files "
        f"and {listed.events:,} events, all as they were."
    )


@backup.command()
@click.argument("file")
@click.option("--replace", is_flag=True, help="Move a home that is there aside, and keep it.")
@key_option
@config_option
def restore(file: str, replace: bool, key: str, config: str | None) -> None:
    """Restore a backup as the home.

    Stop Deskhand before. Turns that were going on when the backup was made are stopped, and
    messages that were on their way are held back: nobody knows what became of them later.
    What was erased after the backup is erased again. A home that is there is moved aside with
    --replace.

    \b
    Examples:
      deskhand backup restore ~/backups/deskhand-3f9a1c-2026-11-26T03-00-00.tar.gz
      deskhand backup restore backup.tar.gz.age --key key.txt
    """
    settings = load_service_settings(config, quiet=True)
    held = _hold_locks(settings)
    try:
        where, _ = split_address(file)
        with _fetched(settings, file) as path:
            done = restore_backup(
                settings,
                path,
                now=SystemClock().now(),
                identity=key,
                replace=replace,
                erased=read_erased(open_place(settings, where)),
            )
    except (DeskhandError, OSError) as error:
        fail(f"nothing was restored: {error}")
    finally:
        for descriptor in held:
            os.close(descriptor)
    click.echo(
        f"Restored {len(done.listed.files):,} files and {done.listed.events:,} events to "
        f"{escape_control(str(settings.home.root))}."
    )
    if done.stopped:
        click.echo(f"Stopped: turns of {done.stopped} conversations. Ask again where you need to.")
    if done.held_back:
        click.echo(f"Held back: {done.held_back} messages. See them: deskhand failed")
    again = done.erased
    if again.sessions or again.memories:
        click.echo(
            f"Erased again: {_count(again.sessions, 'conversation', 'conversations')} and "
            f"{_count(again.memories, 'memory', 'memories')} that were erased after this backup."
        )
    if done.listed.database == "postgresql":
        click.echo(
            "The database is a SQLite file now. To put it on a server again: deskhand store move "
            "postgresql://…"
        )
    if done.aside:
        click.echo(f"The home from before is kept: {escape_control(str(done.aside))}")
    click.echo("Tokens and users are as they were then: deskhand tokens list, deskhand users list")
    now = load_service_settings(config, quiet=True)
    if now.config.store:
        fail(
            "`store` still names a server, in the environment or in another configuration: remove "
            "it, or Deskhand will use that database and not the one that was restored"
        )


def _open_place(settings: Settings, given: str | None) -> BackupPlace:
    """Where backups lie. Ends the command where nobody says it."""
    named = given or settings.config.backup.folder
    if not named:
        fail("name a folder, or set one: deskhand config set backup.folder FOLDER", USAGE)
    return open_place(settings, named)


@contextmanager
def _fetched(settings: Settings, address: str) -> Iterator[Path]:
    """A backup as a file on this machine. Ends the command where there is none."""
    where, name = split_address(address)
    if not address.startswith(S3_SCHEME):
        path = Path(where) / name
        if not path.is_file():
            fail(f"there is no file {address!r}", USAGE)
        yield path
        return
    room = folder_with_room(settings.home.root)
    with tempfile.TemporaryDirectory(prefix="deskhand-fetch-", dir=room) as folder:
        path = Path(folder) / name
        try:
            open_place(settings, where).fetch(name, path)
        except FileNotFoundError:
            fail(f"there is no backup {address!r}; list them: deskhand backup list {where}", USAGE)
        yield path


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"


def _hold_locks(settings: Settings) -> list[int]:
    """Nothing may run in a home that is replaced. Ends the command where something does."""
    home = settings.home
    if not home.state.exists():
        return []
    holder = Holder(os.getpid(), SystemClock().now())
    held = []
    for path in home.all_locks():
        descriptor = acquire_lock(path, holder)
        if descriptor is None:
            running = read_holder(path)
            pid = f" (process {running.pid})" if running and running.pid else ""
            fail(f"Deskhand is running{pid}; stop it first, and close its terminals")
        held.append(descriptor)
    return held


def _describe(each: BackupFile) -> str:
    at = datetime.fromtimestamp(each.at).astimezone()
    secret = "  encrypted" if each.is_encrypted else ""
    name = escape_control(each.name)
    return f"{at:%Y-%m-%d %H:%M}  {format_size(each.size):>9}  {name}{secret}"


def _show_progress(text: str) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r\033[K{text} …" if text else "\r\033[K", nl=False, err=True)
