"""`deskhand written`: what agents changed in folders of the owner, until it is reviewed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import click
import msgspec

from ..config.config import Settings
from ..secrets.redaction import Redactor
from ..store.blobs import Blobs
from ..store.sql_store import SqlStore
from ..types.diffs import CallDiff
from ..workspace.owner_folder_review import ReviewReader, Unreviewed, discard_changes
from ..workspace.undo_journal import open_undo_journal
from .asks import session_name
from .diffs import color_line, render_diff
from .plain import escape_control
from .run import FAILED, ME, USAGE, config_option, fail, load_settings, with_store
from .sessions import format_local_time

MAX_DIFF_LINES = 10_000
FOLDED_FOLDERS = (".git",)
"""Folders of which only the number of files is said, unless `--all` is given: only git reads them,
and what it runs of them is put back after each command."""


class _Wanted(msgspec.Struct, frozen=True):
    """What was said on the command line."""

    accept: bool
    discard: bool
    yes: bool
    check: bool
    names: bool
    all_: bool
    as_json: bool


@click.command()
@click.argument("path", default="", metavar="[PATH]")
@click.option("--accept", is_flag=True, help="Mark the changes as reviewed; asks once.")
@click.option("--discard", is_flag=True, help="Restore what was there before; asks once.")
@click.option("--yes", "-y", is_flag=True, help="With --accept or --discard: do not ask.")
@click.option(
    "--check",
    is_flag=True,
    help="Print only the number of unreviewed changes; exit 1 if there are any.",
)
@click.option("--names", is_flag=True, help="List the paths without their diffs.")
@click.option("--all", "all_", is_flag=True, help="List git's own files one by one, too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@config_option
def written(config: str | None, path: str, **given: Any) -> None:
    """Review what agents changed in your own folders (allowed with `deskhand allow path --write`).

    Whatever they changed there is listed, with its diff, until you accept it. Your own programs
    (make, git, editors, shells) can run code from files in such a folder: review them before you
    run anything there.

    \b
    Examples:
      deskhand written
      deskhand written ~/src/app
      deskhand written ~/src/app --accept
      deskhand written ~/src/app/Makefile --discard
      deskhand written . --check && make
    """
    settings = load_settings(config)
    wanted = _Wanted(**given)
    if wanted.accept and wanted.discard:
        fail("choose one: --accept or --discard", USAGE)
    place = str(Path(path).expanduser().resolve()) if path else ""

    async def use(store: SqlStore) -> tuple[list[Unreviewed], CallDiff]:
        async with open_undo_journal(settings, store) as effects:
            await effects.record_interrupted(settings.agents)
        known = ReviewReader(store, Blobs(settings.home.blobs))
        found = await known.list_unreviewed(place)
        if wanted.check or wanted.names:
            return found, CallDiff(True)
        return found, await known.diff(found)

    found, diff = with_store(settings, use)
    if wanted.as_json:
        hide = Redactor(settings)
        shown = {"files": _to_dicts(found), "diff": diff}
        click.echo(hide(msgspec.json.encode(shown).decode()))
    elif wanted.check:
        click.echo(f"{len(found)} to review" if found else "Nothing to review.")
    else:
        _print_unreviewed(settings, found, diff, wanted)
    if wanted.check and found:
        sys.exit(FAILED)
    if found and (wanted.accept or wanted.discard):
        _decide(settings, found, wanted)


def _to_dicts(found: list[Unreviewed]) -> list[dict[str, Any]]:
    return [
        {
            "path": each.display_path,
            "did": each.change_kind,
            "folder": each.folder,
            "agent": each.agent,
            "session": each.session,
            "at": each.at,
            "outside": each.outside,
        }
        for each in found
    ]


def _print_unreviewed(
    settings: Settings, found: list[Unreviewed], diff: CallDiff, wanted: _Wanted
) -> None:
    hide = Redactor(settings)
    zone = ZoneInfo(settings.config.timezone)
    if not found:
        click.echo(
            "Nothing to review: no agent has changed anything in your folders since you "
            "last looked."
        )
        return
    files = {file.place: file for file in diff.files}
    folded = dict[str, int]()
    for each in found:
        inside = _find_folded(each)
        if inside and not wanted.all_:
            folded[inside] = folded.get(inside, 0) + 1
            continue
        source = ", may contain untrusted content" if each.outside else ""
        by = f"{format_local_time(each.at, zone)}, {session_name(each.session, settings)}{source}"
        click.echo(escape_control(hide(f"{each.display_path}  {each.change_kind}  ({by})")))
        file = files.get(each.display_path)
        if file is not None:
            for text, style in render_diff(CallDiff(True, (file,)), most=MAX_DIFF_LINES):
                click.echo(f"    {color_line(hide(text), style, settings.environment)}")
    for inside, count in folded.items():
        click.echo(escape_control(f"{inside}  {count} of git's own files  (--all lists them)"))
    if not (wanted.accept or wanted.discard):
        click.echo(
            "After reviewing the changes, add --accept, or --discard to restore the files.",
            err=True,
        )


def _find_folded(one: Unreviewed) -> str:
    """The folder of git in which it lies; '' where it lies in none."""
    parts = one.display_path.split("/")
    at = next((n for n, part in enumerate(parts) if part in FOLDED_FOLDERS), 0)
    return "/".join(parts[: at + 1]) if 0 < at < len(parts) - 1 else ""


def _decide(settings: Settings, found: list[Unreviewed], wanted: _Wanted) -> None:
    question = f"Restore {len(found)} as before?"
    if wanted.accept:
        question = f"Accept {len(found)} as reviewed?"
    if not wanted.yes and not click.confirm(question, err=True):
        sys.exit(FAILED)

    async def use(store: SqlStore) -> list[str]:
        if wanted.accept:
            count = await ReviewReader(store, Blobs(settings.home.blobs)).accept(found)
            said = [f"Accepted: {count}."]
            left = len(found) - count
            if left:
                said.append(f"Changed in the meantime, so still to review: {left}.")
            return said
        async with open_undo_journal(settings, store) as effects:
            return await discard_changes(effects, ME, found)

    for line in with_store(settings, use):
        click.echo(escape_control(line))
