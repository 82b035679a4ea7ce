"""`deskhand sessions undo`, `retry`, `branch`, `erase`, `search`: going back to what was said, from
the shell."""

from __future__ import annotations

import sys
from typing import NoReturn
from zoneinfo import ZoneInfo

import click

from ..config.clock import SystemClock
from ..store.base import Hit
from ..store.sql_store import SqlStore
from ..supervision.erased_index import Erased, describe_backups, erase_for_good
from ..workspace.erase import Gone
from .ask import Question, run_question
from .asks import session_name
from .encoded import to_json
from .plain import escape_control
from .run import ME, config_option, fail, limit_option, load_settings, with_store
from .sessions import format_local_time, load_events, resolve_session_key, sessions
from .temporary_app import with_app

__all__ = ["sessions"]


@sessions.command()
@click.argument("name")
@click.argument("turns", default=1, type=click.IntRange(1))
@config_option
def undo(name: str, turns: int, config: str | None) -> None:
    """Undo the last turn of a conversation, or the last N turns. Files that they changed are
    restored, unless they were changed again since; sent messages are not affected.

    Undone turns stay in the log. A running turn is interrupted.

    \b
    Examples:
      deskhand sessions undo nov21-0930
      deskhand sessions undo nov21-0930 3
    """
    _run_command(name, f"/undo {turns}", config)


@sessions.command()
@click.argument("name")
@config_option
def retry(name: str, config: str | None) -> None:
    """Undo the last turn, send its message again, and print the new answer.

    \b
    Example:
      deskhand sessions retry nov21-0930
    """
    _run_command(name, "/retry", config)


@sessions.command()
@click.argument("name")
@config_option
def branch(name: str, config: str | None) -> None:
    """Copy a conversation and continue in the copy. The original is not changed.

    \b
    Example:
      deskhand sessions branch nov21-0930
    """
    _run_command(name, "/branch", config)


@sessions.command()
@click.argument("name")
@click.option("--keep-memories", is_flag=True, help="Keep the memories that came from it.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@config_option
def erase(name: str, keep_memories: bool, yes: bool, config: str | None) -> None:
    """Erase a conversation permanently. This cannot be undone.

    Memories that come only from this conversation are erased too, with their history and from the
    files that list them. Memories that also come from elsewhere are kept, and so are other
    conversations and files that agents created.

    \b
    Examples:
      deskhand sessions erase nov21-0930
      deskhand sessions erase nov21-0930 --keep-memories
    """
    settings = load_settings(config)
    load_events(settings, name)
    shown = session_name(resolve_session_key(settings, name), settings)
    if not yes and not click.confirm(
        f"Permanently erase the conversation “{shown}”? This cannot be undone."
    ):
        fail("Nothing was erased.")

    async def use(store: SqlStore) -> tuple[Gone, Erased]:
        return await erase_for_good(
            store,
            ME,
            resolve_session_key(settings, name),
            SystemClock().now(),
            memories=not keep_memories,
        )

    gone, erased = with_store(settings, use)
    more = gone.summary
    if keep_memories and gone.kept:
        more = "Its memories are kept; list them with: deskhand memories"
    events = "1 event" if gone.events == 1 else f"{gone.events:,} events"
    click.echo(f"Erased: {events} of “{shown}”. {more}".strip())
    kept = describe_backups(settings, erased)
    if kept:
        click.echo(kept)


def _run_command(name: str, command: str, config: str | None) -> NoReturn:
    settings = load_settings(config)
    load_events(settings, name)
    key = resolve_session_key(settings, name)
    sys.exit(
        with_app(
            settings, lambda app: run_question(app, Question(command, key.partition("/")[0], key))
        )
    )


@sessions.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--session", "-s", default="", metavar="NAME", help="Search only this conversation.")
@limit_option(20, most=1000)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@config_option
def search(
    words: tuple[str, ...], session: str, limit: int, as_json: bool, config: str | None
) -> None:
    """Search all conversations for messages that contain all words (or words with these prefixes).

    \b
    Example:
      deskhand sessions search tax invoice
    """
    settings = load_settings(config)
    key = resolve_session_key(settings, session) if session else ""
    hits = with_store(settings, lambda store: store.search(ME, " ".join(words), limit, key))
    if as_json:
        click.echo(to_json(hits))
        return
    if not hits:
        click.echo("No messages found. Try fewer words, or only the beginning of a word.")
    zone = ZoneInfo(settings.config.timezone)
    for hit in hits:
        place = f"{escape_control(session_name(hit.session, settings))}  {format_local_time(hit.at, zone)}  event {hit.n}"  # noqa: E501
        click.echo(click.style(place, dim=True))
        click.echo(f"  {'you' if hit.role == 'user' else 'it'}: {_highlight_hit(hit)}")


def _highlight_hit(hit: Hit) -> str:
    """The excerpt, with what was searched for in bold where there are colours."""
    shown = ""
    done = 0
    for start, end in hit.marks:
        shown += escape_control(hit.excerpt[done:start]) + click.style(
            escape_control(hit.excerpt[start:end]), bold=True
        )
        done = end
    return shown + escape_control(hit.excerpt[done:])
