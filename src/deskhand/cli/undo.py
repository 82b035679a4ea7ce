"""`deskhand undo`: puts back what agents did to files and key-values, and lists it."""

from __future__ import annotations

import sys
from typing import Any
from zoneinfo import ZoneInfo

import click
import msgspec

from ..config.config import Settings
from ..secrets.redaction import Redactor
from ..store.sql_store import SqlStore
from ..tools.journal import JournalEntry
from ..types.diffs import CallDiff
from ..workspace.diffs import Diffs
from ..workspace.undo_journal import Outcome, UndoJournal, open_undo_journal
from .asks import session_name
from .diffs import color_line, render_diff
from .encoded import to_json
from .plain import escape_control
from .run import FAILED, ME, USAGE, config_option, fail, limit_option, load_settings, with_store
from .sessions import format_local_time, resolve_session_key
from .table import print_table

DEFAULT_LIMIT = 50
MAX_DIFF_LINES = 10_000


class _Wanted(msgspec.Struct, frozen=True):
    """What was said on the command line."""

    count: int
    session: str
    listed: bool
    limit: int
    change: int | None
    redo: bool
    force: bool
    diff: int | None
    as_json: bool


@click.command()
@click.argument("count", default=0, metavar="[N]", type=click.IntRange(0, 1000))
@click.option(
    "--session", "-s", default="", metavar="NAME", help="Only changes made in this conversation."
)
@click.option("--list", "listed", is_flag=True, help="List changes, latest first.")
@limit_option(DEFAULT_LIMIT)
@click.option("--change", type=int, metavar="NUMBER", help="Undo this change of the list.")
@click.option("--redo", is_flag=True, help="Redo the latest undone change.")
@click.option("--force", is_flag=True, help="Overwrite later changes; a copy of them is kept.")
@click.option(
    "--diff",
    type=int,
    metavar="NUMBER",
    help="Show the diff of this change. Nothing is undone.",
)
@click.option("--json", "as_json", is_flag=True, help="With --list or --diff: print JSON.")
@config_option
def undo(config: str | None, **given: Any) -> None:
    """Undo the last change, or the last N changes, that an agent made to files and stored values.

    Files that somebody else has changed since are left alone and reported. To reverse an undo, use
    --redo.

    \b
    Examples:
      deskhand undo --list
      deskhand undo --diff 12
      deskhand undo
      deskhand undo 3 --session nov21-0930
      deskhand undo --change 12 --force
    """
    settings = load_settings(config)
    wanted = _Wanted(**given)
    key = resolve_session_key(settings, wanted.session) if wanted.session else ""
    if wanted.listed:
        _print_effects(settings, key, wanted.count or wanted.limit, wanted.as_json)
        return
    if wanted.diff is not None:
        _print_diff(settings, wanted.diff, wanted.as_json)
        return
    if wanted.change is not None and (wanted.count or wanted.redo or wanted.session):
        fail("--change cannot be combined with N, --redo or --session", USAGE)

    async def use(store: SqlStore) -> list[Outcome]:
        async with open_undo_journal(settings, store) as effects:
            await effects.record_interrupted(settings.agents)
            chosen = await _select_effects(effects, key, wanted)
            return [await effects.undo(ME, effect, force=wanted.force) for effect in chosen]

    done = with_store(settings, use)
    hide = Redactor(settings)
    if not done:
        nothing = "there is nothing to undo; list all changes with: deskhand undo --list"
        fail("there is nothing to redo" if wanted.redo else nothing)
    for outcome in done:
        click.echo(escape_control(hide(f"{outcome.entry.n}  {outcome.words}")))
    refused = [outcome.entry.n for outcome in done if outcome.undo is None]
    if refused:
        click.echo(
            f"To undo it anyway and keep a copy: deskhand undo --change {refused[0]} --force",
            err=True,
        )
        sys.exit(FAILED)


async def _select_effects(
    effects: UndoJournal, session: str, wanted: _Wanted
) -> list[JournalEntry]:
    if wanted.change is not None:
        return [await effects.get(ME, wanted.change)]
    if wanted.redo:
        return await effects.list_redoable(ME, wanted.count or 1, session)
    return await effects.list_undoable(ME, wanted.count or 1, session)


def _print_effects(settings: Settings, session: str, limit: int, as_json: bool) -> None:
    async def use(store: SqlStore) -> list[JournalEntry]:
        async with open_undo_journal(settings, store) as effects:
            return await effects.timeline(ME, session, limit=limit)

    found = with_store(settings, use)
    hide = Redactor(settings)
    if as_json:
        click.echo(hide(to_json(found)))
        return
    if not found:
        click.echo("No agent has changed a file or a key-value yet.")
        return
    zone = ZoneInfo(settings.config.timezone)
    rows = [
        (
            str(each.n),
            format_local_time(each.at, zone),
            session_name(each.session, settings),
            _state(each),
            str(each.count),
            hide(each.description),
        )
        for each in found
    ]
    print_table(("number", "when", "conversation", "", "changed", "what"), rows)


def _print_diff(settings: Settings, number: int, as_json: bool) -> None:
    """The diff of one change, whole as far as it is kept."""

    async def use(store: SqlStore) -> tuple[JournalEntry, CallDiff]:
        async with open_undo_journal(settings, store) as effects:
            effect = await effects.get(ME, number)
            return effect, await Diffs(store, effects.open_scope).diff_change(ME, effect)

    effect, found = with_store(settings, use)
    hide = Redactor(settings)
    if as_json:
        click.echo(hide(to_json(found)))
        return
    click.echo(escape_control(hide(f"{effect.n}  {effect.description}")))
    for text, style in render_diff(found, most=MAX_DIFF_LINES):
        click.echo(f"    {color_line(hide(text), style, settings.environment)}")


def _state(effect: JournalEntry) -> str:
    if effect.undoes is not None:
        return f"of {effect.undoes}"
    return "undone" if effect.undone_at is not None else ""
