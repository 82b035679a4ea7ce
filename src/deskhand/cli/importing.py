"""`deskhand import`: move in from another system. First what would be taken over, then, with --yes, it is."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

import click
import msgspec

from ..runtime.clock import SystemClock
from ..runtime.config import Settings
from ..runtime.moving.found import Found
from ..runtime.moving.homes import LOOKS_FOR, read_home
from ..runtime.moving.offer import homes, place, waiting
from ..runtime.moving.plan import Plan, plan
from ..runtime.moving.report import not_taken, summary, told
from ..runtime.moving.take import Taken, Taking
from ..runtime.statements import statements
from ..store.sqlite import SqliteStore
from ..types.errors import DeskhandError
from .plain import plain
from .run import USAGE, config_option, fail, run, settings_of, with_store

T = TypeVar("T")
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
    folders = [folder.expanduser()] if folder else [home for _, home in homes(settings, _here())]
    if not folders:
        click.echo(f"No home of another system was found. Name its folder: {LOOKS_FOR}.")
        return
    read = [(home, _read(home)) for home in folders]
    people = [person.name for _, found in read for person in found.people]
    if me and me not in people:
        names = ", ".join(people) or "none that are known by name"
        fail(f"there is no user {me!r} in {', '.join(str(home) for home in folders)}; there are: {names}", USAGE)
    reports = []
    for number, (home, found) in enumerate(read):
        if number and not as_json:
            click.echo()
        # What one home brought in is here already for the next.
        now = settings_of(config) if yes else settings
        reports.append(_one(now, found, place(settings, home), (yes, me, start_jobs, as_json)))
    if as_json:
        click.echo(msgspec.json.encode(reports))
    elif not yes:
        click.echo(f"\n{_next(settings, read, me)}")


def _next(settings: Settings, read: Sequence[tuple[Path, Found]], me: str) -> str:
    """What to do to have it."""
    owners = [person.name for _, found in read for person in found.people if person.owner]
    more = f" --me {me or owners[0]}" if me or owners else ""
    only = f" {place(settings, read[0][0])}" if len(read) == 1 else ""
    said = f"Nothing was written. To take it over: deskhand import{plain(only + more)} --yes"
    if owners and not me:
        said += f"\nIf you are not {plain(owners[0])}, leave out --me."
    if len(read) > 1:
        said += "\nOne of them alone: name its folder. Where two of them set the same thing, the first of them counts."
    return said


def hint(settings: Settings) -> str:
    """A sentence for somebody who begins here and has used another system; '' where nothing waits to be taken over."""
    here = _here()
    if not homes(settings, here):
        return ""

    async def look(store: SqliteStore) -> str:
        return await waiting(settings, store, here)

    found = _with_store(settings, False, look)
    return f"{found} See what can be taken over: deskhand import" if found else ""


def _here() -> Path | None:
    try:
        return Path.cwd()
    except OSError:  # it was removed meanwhile
        return None


def _read(home: Path) -> Found:
    try:
        return read_home(home, SystemClock().now())
    except DeskhandError as error:
        fail(str(error), USAGE)


def _with_store(settings: Settings, yes: bool, use: Callable[[SqliteStore], Awaitable[T]]) -> T:
    """With the database that is here; where there is none a report makes none."""
    if yes or settings.home.database.exists():
        return with_store(settings, use)

    async def main() -> T:
        with tempfile.TemporaryDirectory(prefix="deskhand-moving-") as folder:
            store = SqliteStore(Path(folder) / "none.db", statements())
            try:
                return await use(store)
            finally:
                await store.close()

    return run(settings, main)


def _one(settings: Settings, found: Found, where: str, how: tuple[bool, str, bool, bool]) -> dict[str, object]:
    yes, me, start_jobs, quiet = how

    async def use(store: SqliteStore) -> tuple[Plan, Taken | None]:
        planned = await plan(found, settings, store, me)
        if not quiet:
            for line in told(planned, where, settings.config.timezone, start_jobs=start_jobs):
                click.echo(plain(line))
        if not yes:
            return planned, None
        if not quiet and sum(len(each.talk.lines) - each.first for each in planned.talks) > LONG:
            click.echo("Taking it over; this takes a minute or two.", err=True)
        return planned, await Taking(planned, settings, store, SystemClock(), start_jobs=start_jobs).take()

    planned, taken = _with_store(settings, yes, use)
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
