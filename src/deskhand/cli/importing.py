"""`deskhand import`: move in from another system. First what would be taken over, then, with --yes,
it is."""

from __future__ import annotations

import shutil
import sys
import tempfile
import textwrap
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import click
import msgspec

from ..config.clock import SystemClock
from ..config.config import Settings
from ..config.database import has_database
from ..config.statements import load_statements
from ..importers.apply import AppliedPlan, Taking
from ..importers.broken import describe_broken_home
from ..importers.detect import KNOWN_HOMES, read_home
from ..importers.model import ImportedHome
from ..importers.offer import describe_offer, find_homes, format_home
from ..importers.plan import ImportPlan, make_plan
from ..importers.report import make_report, render_counts, render_head, render_report
from ..store.sql_store import SqlStore
from ..store.sqlite import SqliteStore
from ..types.errors import DeskhandError
from .encoded import to_json
from .plain import escape_control
from .run import USAGE, config_option, fail, load_settings, run, with_store

T = TypeVar("T")
LONG_IMPORT_LINES = 20_000
"""So many lines of conversations take a while."""


@click.command("import")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--yes", is_flag=True, help="Write the import. Without it, only the plan is shown.")
@click.option(
    "--me", default="", metavar="NAME", help="This user of the other system is you, the owner here."
)
@click.option(
    "--start-jobs", is_flag=True, help="Keep jobs enabled. [default: imported jobs are disabled]"
)
@click.option(
    "--skip-broken", is_flag=True, help="Leave out files that cannot be read, and import the rest."
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@config_option
def import_(  # noqa: PLR0913 -- one parameter for each option
    folder: Path | None,
    yes: bool,
    me: str,
    start_jobs: bool,
    skip_broken: bool,
    as_json: bool,
    config: str | None,
) -> None:
    """Import from OpenClaw, Hermes Agent, nanobot, operator-ai, operator-use, agent_computer or
    openagent-core: agents, settings, users, conversations, jobs, memories, stored values, skills,
    tasks and notes.

    Without a folder, the usual places are searched. Without --yes, it only reports what it would
    import, change and leave out, with the reasons. You can run it any number of times: nothing is
    imported twice, and the files of the other system are not changed.

    \b
    Examples:
      deskhand import
      deskhand import ~/.openclaw --yes
      deskhand import ~/.operator --me ann --yes
    """
    settings = load_settings(config)
    if folder:
        folders = [folder.expanduser()]
    else:
        folders = [home for _, home in find_homes(settings, _current_folder())]
    if not folders:
        click.echo(f"No data of another system was found. Name its folder: {KNOWN_HOMES}.")
        return

    read = [(home, _read_home(home)) for home in folders]
    if me:
        _check_user(me, read)
    broken = [describe_broken_home(found) for _, found in read if found.broken and not skip_broken]
    if broken and not as_json:
        fail("\n".join(broken), USAGE)

    write = yes and not broken
    how = How(write=write, me=me, start_jobs=start_jobs, skip_broken=skip_broken, quiet=as_json)
    reports = []
    for number, (home, found) in enumerate(read):
        if number and not as_json:
            click.echo()
        # What one home brought in is here already for the next.
        now = load_settings(config) if write else settings
        reports.append(_import_home(now, found, format_home(settings, home), how))
    if as_json:
        click.echo(to_json(reports))
        if broken:
            sys.exit(USAGE)
    elif not yes:
        click.echo(f"\n{_describe_next_step(settings, read, me)}")


def _check_user(name: str, read: Sequence[tuple[Path, ImportedHome]]) -> None:
    """Fail where no home has a user of this name."""
    names = _list_people(read)
    if name not in names:
        places = ", ".join(str(home) for home, _ in read)
        known = ", ".join(names) or "none"
        fail(f"there is no user {name!r} in {places}; there are: {known}", USAGE)


def _list_people(
    read: Sequence[tuple[Path, ImportedHome]], *, only_owners: bool = False
) -> list[str]:
    names = list[str]()
    for _, found in read:
        for person in found.people:
            if person.owner or not only_owners:
                names.append(person.name)
    return names


class How(msgspec.Struct, frozen=True, kw_only=True):
    """How homes are taken over: the options of the command. `quiet`: nothing is printed on the
    way."""

    write: bool
    me: str
    start_jobs: bool
    skip_broken: bool
    quiet: bool


def _describe_next_step(
    settings: Settings, read: Sequence[tuple[Path, ImportedHome]], me: str
) -> str:
    """What to do to have it."""
    owners = _list_people(read, only_owners=True)
    more = f" --me {me or owners[0]}" if me or owners else ""
    only = f" {format_home(settings, read[0][0])}" if len(read) == 1 else ""
    said = f"Nothing was written. To import it: deskhand import{escape_control(only + more)} --yes"
    if owners and not me:
        said += f"\nIf you are not {escape_control(owners[0])}, leave out --me."
    if len(read) > 1:
        said += (
            "\nTo import only one of them, name its folder. If two of them set the same thing, "
            "the first one wins."
        )
    return said


def find_import_hint(settings: Settings) -> str:
    """A sentence for somebody who begins here and has used another system; '' where nothing waits
    to be taken over."""
    here = _current_folder()
    if not find_homes(settings, here):
        return ""

    async def use(store: SqlStore) -> str:
        return await describe_offer(settings, store, here)

    found = _with_store(settings, False, use)
    return f"{found} See what can be imported: deskhand import" if found else ""


def _current_folder() -> Path | None:
    try:
        return Path.cwd()
    except OSError:  # it was removed meanwhile
        return None


def _read_home(home: Path) -> ImportedHome:
    try:
        return read_home(home, SystemClock().now())
    except DeskhandError as error:
        fail(str(error), USAGE)


def _with_store(settings: Settings, yes: bool, use: Callable[[SqlStore], Awaitable[T]]) -> T:
    """With the database that is here; where there is none a report makes none."""
    if yes or has_database(settings):
        return with_store(settings, use)

    async def main() -> T:
        with tempfile.TemporaryDirectory(prefix="deskhand-moving-") as folder:
            store = SqliteStore(Path(folder) / "none.db", load_statements())
            try:
                return await use(store)
            finally:
                await store.close()

    return run(settings, main)


def _import_home(
    settings: Settings, found: ImportedHome, where: str, how: How
) -> dict[str, object]:
    """Report on one home, and take it over where that is asked for. Returns the report for
    programs."""

    async def use(store: SqlStore) -> tuple[ImportPlan, AppliedPlan | None]:
        planned = await make_plan(found, settings, store, how.me)
        if not how.write:
            return planned, None
        lines = sum(len(each.conversation.lines) - each.first for each in planned.conversations)
        if lines > LONG_IMPORT_LINES and not how.quiet:
            click.echo("Importing; this takes a minute or two.", err=True)
        clock = SystemClock()
        taking = Taking(
            planned, settings, store, clock, start_jobs=how.start_jobs, skip_broken=how.skip_broken
        )
        return planned, await taking.apply()

    planned, taken = _with_store(settings, how.write, use)
    more_left = tuple(taken.left_out) if taken else ()
    report = make_report(
        planned, settings.config.timezone, start_jobs=how.start_jobs, more_left=more_left
    )
    if not how.quiet:
        for line in (
            *render_head(planned, where),
            *_render_broken(found),
            *render_report(report),
            *_render_outcome(taken),
        ):
            click.echo(_wrap_line(escape_control(line)))
    return {
        "system": found.system,
        "version": found.version,
        "home": found.root,
        "new": {name: number for number, name in planned.counts()},
        "taken": taken.counts if taken else None,
        "report": {
            "taken": dict(report.taken),
            "changed": msgspec.to_builtins(report.changed),
            "left_out": msgspec.to_builtins(report.left_out),
        },
        "broken": msgspec.to_builtins(found.broken),
    }


def _render_broken(found: ImportedHome) -> Iterator[str]:
    """The files that cannot be read, where the rest is taken all the same."""
    if found.broken:
        yield "\nLeft out because it cannot be read:"
    yield from (f"  {each.file}: {each.why}" for each in found.broken)


def _wrap_line(line: str) -> str:
    """A line with what does not fit into the terminal beneath it, indented as it is. In a file it
    stays one line."""
    if not sys.stdout.isatty():
        return line
    begins = line.lstrip("\n")
    gap = " " * (len(begins) - len(begins.lstrip()) + 2)
    width = max(60, shutil.get_terminal_size().columns)
    text = textwrap.fill(
        begins, width, subsequent_indent=gap, break_long_words=False, break_on_hyphens=False
    )
    return "\n" * (len(line) - len(begins)) + text


def _render_outcome(taken: AppliedPlan | None) -> Iterator[str]:
    """What was taken over, and what is to be done now."""
    if taken is None:
        return
    counted = render_counts((number, name) for name, number in taken.counts.items())
    yield f"\nImported {counted}." if counted else "\nThere was nothing new to import."
    yield from (f"  {note}" for note in taken.notes)
