"""`deskhand sessions`: what was said, to list, to read and to take along."""

from __future__ import annotations

import shutil
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from zoneinfo import ZoneInfo

import click

from ..config.clock import SystemClock
from ..config.config import Settings
from ..importers.jsonl import JsonlReader, before_compaction, export_lines, read_lines
from ..store.sql_store import SqlStore
from ..types.commit import Commit
from ..types.errors import ConfigError
from ..types.events import Recorded
from ..types.identity import Address, session_key
from .asks import resume_command, session_name
from .encoded import to_json
from .plain import escape_control, shorten_line
from .run import (
    ME,
    USAGE,
    Listing,
    agent_option,
    config_option,
    fail,
    limit_option,
    load_settings,
    resolve_agent,
    with_store,
)
from .table import print_table

MAX_FILE_BYTES = 100_000_000


@click.group(cls=Listing)
def sessions() -> None:
    """List, read, export, undo and branch conversations.

    \b
    Examples:
      deskhand sessions
      deskhand sessions show nov21-0930
      deskhand sessions export nov21-0930 > talk.jsonl
    """


@sessions.command("list")
@limit_option(20)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@config_option
def list_(limit: int, as_json: bool, config: str | None) -> None:
    """List conversations, the latest first.

    \b
    Example:
      deskhand sessions list -n 5
    """
    settings = load_settings(config)
    rows = with_store(settings, lambda store: store.sessions(ME, limit))
    if as_json:
        click.echo(to_json(rows))
        return
    if not rows:
        click.echo("No conversations yet. Start one: deskhand")
        return
    zone = ZoneInfo(settings.config.timezone)
    shown = [
        (
            session_name(row.session, settings),
            format_local_time(row.last_at, zone),
            str(row.turns),
            shorten_line(row.title, 200),
        )
        for row in rows
    ]
    print_table(("name", "last", "turns", "first message"), shown)


@sessions.command()
@click.argument("name")
@config_option
def show(name: str, config: str | None) -> None:
    """Print a conversation for reading.

    \b
    Example:
      deskhand sessions show nov21-0930 | less -R
    """
    from .paint import Paint
    from .terminal_traits import guess_traits
    from .themes import choose_theme, detect_color_system
    from .view import View

    settings = load_settings(config)
    events = load_events(settings, name)
    columns = shutil.get_terminal_size().columns
    theme = settings.config.terminal.theme
    paint = Paint(
        lambda: columns,
        detect_color_system(settings.environment, theme),
        choose_theme(theme, dark=guess_traits(settings.environment).dark),
    )
    view = View(paint, SystemClock().monotonic, zone=ZoneInfo(settings.config.timezone))
    for recorded in events:
        for line in view.render(recorded):
            click.echo(line)


@sessions.command()
@click.argument("name")
@click.option(
    "--format",
    "form",
    default="events",
    show_default=True,
    type=click.Choice(["events", "jsonl"]),
    help="Logged events, or messages with role and content.",
)
@click.option(
    "--compaction",
    type=int,
    help="Only what was said before this compaction: 1 is the first, -1 the last.",
)
@config_option
def export(name: str, form: str, compaction: int | None, config: str | None) -> None:
    """Print a conversation as JSON Lines: one event or one message per line.

    \b
    Examples:
      deskhand sessions export nov21-0930 > log.jsonl
      deskhand sessions export nov21-0930 --format jsonl > talk.jsonl
      deskhand sessions export nov21-0930 --format jsonl --compaction -1
    """
    events = load_events(load_settings(config), name)
    if compaction is not None:
        try:
            events = before_compaction(events, compaction)
        except ConfigError as error:
            fail(f"{escape_control(name)}: {error}", USAGE)
    for line in events if form == "events" else export_lines(events):
        click.echo(to_json(line))


@sessions.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@agent_option
@config_option
def import_(file: str, agent: str, config: str | None) -> None:
    """Import a conversation from JSON Lines of role and content, as `export --format jsonl` writes
    them.

    You can continue the imported conversation. A file is imported only once.

    \b
    Example:
      deskhand sessions import ~/agent_computer/sessions/main.jsonl
    """
    settings = load_settings(config)
    try:
        data = _read_file(Path(file))
        lines = read_lines(data, Path(file).name)
    except OSError as error:
        fail(f"{file}: {error.strerror}", USAGE)
    except ConfigError as error:
        fail(str(error), USAGE)
    name = f"import-{sha256(data).hexdigest()[:12]}"
    place = Address("terminal", chat=name)
    session = session_key(resolve_agent(settings, agent), place)
    reader = JsonlReader(ME, place, f"file {Path(file).name}", SystemClock().now())
    commits = reader.make_commits(lines)

    async def use(store: SqlStore) -> int:
        done = len(await store.events(session))
        n = 1
        written = 0
        for at, events in commits:
            if n > done:  # a run that was cut off is gone on with
                await store.commit(Commit(session, n, at, events, close=True))
                written += 1
            n += len(events)
        return written

    if with_store(settings, use):
        messages = sum(line.role in ("user", "assistant") for line in lines)
        click.echo(f"Imported {messages} messages.")
        if reader.left_out:
            click.echo(f"Skipped {reader.left_out} lines with other roles.", err=True)
    else:
        click.echo("This file was imported before.")
    click.echo(f"Continue it with: {resume_command(session, settings)}")


def _read_file(path: Path) -> bytes:
    """Raises OSError; ConfigError for what is too large."""
    with path.open("rb") as file:
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError(f"{str(path)!r} is larger than {MAX_FILE_BYTES // 1_000_000} MB")
    return data


def format_local_time(at: float, zone: ZoneInfo) -> str:
    """A time as people read it."""
    return datetime.fromtimestamp(at, zone).strftime("%Y-%m-%d %H:%M")


def resolve_session_key(settings: Settings, name: str) -> str:
    """The key of a conversation by its name here, or by the key itself."""
    if "/" in name:
        return name
    return session_key(resolve_agent(settings, ""), Address("terminal", chat=name))


def load_events(settings: Settings, name: str) -> list[Recorded]:
    """The events of a conversation by its name or its key. Ends with exit code 2 where there is
    none."""
    session = resolve_session_key(settings, name)

    async def use(store: SqlStore) -> list[Recorded]:
        return await store.events(session)

    events = with_store(settings, use)
    if not events:
        fail(
            f"there is no conversation {name!r}; list conversations with: deskhand sessions list",
            USAGE,
        )
    return events
