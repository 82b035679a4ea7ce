"""`deskhand sessions`: what was said, to list, to read and to take along."""

from __future__ import annotations

import shutil
import sys
from datetime import datetime
from zoneinfo import ZoneInfo

import click
import msgspec

from ..runtime.clock import SystemClock
from ..runtime.config import Settings
from ..store.sqlite import SqliteStore
from ..types.events import Recorded
from ..types.identity import Address, session_key
from .asks import name_of
from .plain import one_line
from .run import ME, USAGE, Listing, agent_of, config_option, fail, settings_of, with_store
from .table import table


@click.group(cls=Listing)
def sessions() -> None:
    """List, read and export conversations.

    \b
    Examples:
      deskhand sessions
      deskhand sessions show nov21-0930
      deskhand sessions export nov21-0930 > talk.jsonl
    """


@sessions.command("list")
@click.option("--limit", "-n", default=20, show_default=True, type=click.IntRange(1), help="How many at most.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@config_option
def list_(limit: int, as_json: bool, config: str | None) -> None:
    """List conversations, the latest first.

    \b
    Example:
      deskhand sessions list -n 5
    """
    settings = settings_of(config)
    rows = with_store(settings, lambda store: store.sessions(ME, limit))
    if as_json:
        click.echo(msgspec.json.encode(rows))
        return
    if not rows:
        click.echo("No conversations yet. Start one: deskhand")
        return
    zone = ZoneInfo(settings.config.timezone)
    shown = [
        (name_of(row.session, settings), when(row.last_at, zone), str(row.turns), one_line(row.title, 200))
        for row in rows
    ]
    table(("name", "last", "turns", "it began with"), shown)


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
    from .screen import colour_system
    from .view import View

    settings = settings_of(config)
    events = events_of(settings, name)
    columns = shutil.get_terminal_size().columns
    view = View(Paint(lambda: columns, colour_system() if sys.stdout.isatty() else None), SystemClock().monotonic)
    for recorded in events:
        for line in view.render(recorded):
            click.echo(line)


@sessions.command()
@click.argument("name")
@config_option
def export(name: str, config: str | None) -> None:
    """Print a conversation as JSON lines, one event each, exactly as it is logged.

    \b
    Example:
      deskhand sessions export nov21-0930 > talk.jsonl
    """
    for recorded in events_of(settings_of(config), name):
        click.echo(msgspec.json.encode(recorded))


def when(at: float, zone: ZoneInfo) -> str:
    """A time as people read it."""
    return datetime.fromtimestamp(at, zone).strftime("%Y-%m-%d %H:%M")


def key_of(settings: Settings, name: str) -> str:
    """The key of a conversation by its name here, or by the key itself."""
    return name if "/" in name else session_key(agent_of(settings, ""), Address("terminal", chat=name))


def events_of(settings: Settings, name: str) -> list[Recorded]:
    """The events of a conversation by its name or its key. Ends with exit code 2 where there is none."""
    session = key_of(settings, name)

    async def use(store: SqliteStore) -> list[Recorded]:
        return await store.events(session)

    events = with_store(settings, use)
    if not events:
        fail(f"there is no conversation {name!r}; `deskhand sessions list` shows them", USAGE)
    return events
