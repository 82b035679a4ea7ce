"""`deskhand uninstall`: everything that it made on this machine, listed first and then removed."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from ..config.config import Settings
from ..supervision.lock import read_holder
from ..types.sizes import format_size
from .plain import escape_control
from .run import USAGE, config_option, fail, load_settings


@click.command()
@click.option(
    "--purge",
    is_flag=True,
    help="Remove conversations, files, settings and keys, too. This cannot be undone.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@config_option
def uninstall(purge: bool, yes: bool, config: str | None) -> None:
    """Show what Deskhand created on this machine; with --purge, remove it.

    To remove the program itself, delete the clone, or run `pip uninstall deskhand`.

    \b
    Examples:
      deskhand uninstall
      deskhand uninstall --purge
    """
    settings = load_settings(config)
    found = [(path, about) for path, about in _list_folders(settings) if path.exists()]
    if not found:
        click.echo("There is nothing to remove: Deskhand created no files on this machine.")
        return
    for path, about in found:
        click.echo(f"{escape_control(str(path))}  {about}, {format_size(_size_of(path))}")
    if not purge:
        click.echo("Remove all of it: deskhand uninstall --purge")
        return
    _require_removable(settings)
    if not yes and not click.confirm("Remove all of it? This cannot be undone"):
        fail("nothing was removed", USAGE)
    for path, _ in found:
        try:
            shutil.rmtree(path)
        except OSError as error:
            fail(f"{error.filename}: {error.strerror}; everything listed before it was removed")
    click.echo("Removed.")


def _list_folders(settings: Settings) -> list[tuple[Path, str]]:
    home = settings.home.root
    cache = settings.cache_folder
    return [
        (home, "conversations, agents' files, settings and keys"),
        (cache, "models that can be downloaded again"),
    ]


def _require_removable(settings: Settings) -> None:
    """Ends the command where something still runs, or where a folder is more than ours."""
    holders = map(read_holder, settings.home.all_locks())
    if (holder := next(filter(None, holders), None)) is not None:
        fail(
            f"process {holder.pid} is still running; stop it first: deskhand service uninstall, "
            f"or kill {holder.pid}"
        )
    person = Path(settings.environment.get("HOME", "/")).resolve()
    for path, _ in _list_folders(settings):
        if person.is_relative_to(path.resolve()) or path.is_symlink():
            fail(f"{str(path)!r} also contains files that are not from Deskhand: remove it by hand")


def _size_of(path: Path) -> int:
    return sum(
        file.lstat().st_size for file in path.rglob("*") if file.is_file() and not file.is_symlink()
    )
