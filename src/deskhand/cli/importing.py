"""`deskhand import`: move in from another system. First what would be taken over, then, with --yes, it is."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from ..runtime.clock import SystemClock
from ..runtime.config import Settings
from ..runtime.moving.found import Found
from ..runtime.moving.homes import LOOKS_FOR, homes_in, read_home, system_of
from ..runtime.moving.plan import Plan, ledger_of, plan
from ..runtime.moving.report import not_taken, summary, told
from ..runtime.moving.take import Taken, Taking
from ..store.sqlite import SqliteStore
from ..types.errors import DeskhandError
from .plain import plain
from .run import USAGE, config_option, fail, settings_of, with_store

LONG = 20_000
"""So many lines of conversations take a while."""


@click.command("import")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--yes", is_flag=True, help="Take it over; without this nothing is written.")
@click.option("--me", default="", metavar="NAME", help="This user of the other system is you, the owner here.")
@click.option("--start-jobs", is_flag=True, help="Leave jobs on; else they come switched off.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@config_option
def import_(folder: Path | None, yes: bool, me: str, start_jobs: bool, as_json: bool, config: str | None) -> None:
    """Move in from operator-ai, operator-use, agent_computer or openagent-core: agents and their settings, users,
    conversations, jobs, memories, key-values, skills and tasks.

    Without a folder it looks where they usually lie. It only says what it would take over, and what not, and why,
    until you say --yes. Run it as often as you like: nothing is taken twice, and nothing there is changed.

    \b
    Examples:
      deskhand import
      deskhand import ~/.operator --me ann --yes
    """
    settings = settings_of(config)
    homes = [folder.expanduser()] if folder else _homes(settings)
    if not homes:
        click.echo(f"No home of another system was found. Name its folder: {LOOKS_FOR}.")
        return
    reports = []
    for home in homes:
        found = _read(home)
        if me and me not in [person.name for person in found.people]:
            names = ", ".join(person.name for person in found.people) or "none that it knows by name"
            fail(f"there is no user {me!r} in {home}; there are: {names}", USAGE)
        reports.append(_one(settings, found, _place(settings, home), (yes, me, start_jobs, as_json)))
    if as_json:
        click.echo(msgspec.json.encode(reports))
    elif not yes:
        where = f" {_place(settings, homes[0])}" if len(homes) == 1 else ""
        click.echo(f"\nNothing was written. To take it over: deskhand import{plain(where)} --yes")


def hint(settings: Settings) -> str:
    """A sentence for somebody who begins here and has used another system; '' where nothing waits to be taken over."""
    waiting = [home for home in _homes(settings) if not _taken_before(settings, home)]
    if not waiting:
        return ""
    system, place = system_of(waiting[0]), _place(settings, waiting[0])
    return f"{system} was used here ({place}). See what can be taken over: deskhand import"


def _taken_before(settings: Settings, home: Path) -> bool:
    system = system_of(home) or ""
    if not settings.home.database.exists():
        return False
    return bool(with_store(settings, lambda store: ledger_of(store, system)))


def _homes(settings: Settings) -> list[Path]:
    person = Path(settings.environment.get("HOME", "/"))
    return [home for _, home in homes_in(person, Path.cwd()) if home.resolve() != settings.home.root.resolve()]


def _read(home: Path) -> Found:
    try:
        return read_home(home, SystemClock().now())
    except DeskhandError as error:
        fail(str(error), USAGE)


def _place(settings: Settings, home: Path) -> str:
    """As a person writes it."""
    person = settings.environment.get("HOME", "")
    return f"~/{home.relative_to(person)}" if person and home.is_relative_to(person) else str(home)


def _one(settings: Settings, found: Found, place: str, how: tuple[bool, str, bool, bool]) -> dict[str, object]:
    yes, me, start_jobs, quiet = how

    async def use(store: SqliteStore) -> tuple[Plan, Taken | None]:
        planned = await plan(found, settings, store, me)
        if not quiet:
            for line in told(planned, place):
                click.echo(plain(line))
        if not yes:
            return planned, None
        if not quiet and sum(len(each.talk.lines) - each.first for each in planned.talks) > LONG:
            click.echo("Taking it over; this takes a minute or two.", err=True)
        return planned, await Taking(planned, settings, store, SystemClock(), start_jobs=start_jobs).take()

    planned, taken = with_store(settings, use)
    if taken is not None and not quiet:
        counted = summary((number, name) for name, number in taken.counts.items())
        click.echo(f"Took over {counted}." if counted else "There was nothing new to take over.")
        for line in (*not_taken(taken.left), *(f"  {note}" for note in taken.notes)):
            click.echo(plain(line))
    return {
        "system": found.system,
        "version": found.version,
        "home": found.root,
        "new": {name: number for number, name in planned.counts()},
        "taken": taken.counts if taken else None,
        "not_taken": msgspec.to_builtins((*planned.left, *(taken.left if taken else ()))),
    }
