"""`deskhand ps`: what runs beside conversations, to look at and to end."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import click

from ..config.config import Settings
from ..store.queries import stop_process, visible_processes
from ..types.process import Process
from .asks import has_driver, session_name
from .encoded import to_json
from .plain import shorten_line
from .run import ME, USAGE, Listing, config_option, fail, limit_option, load_settings, with_store
from .sessions import format_local_time
from .table import print_table

MAX_LISTED = 200


@click.group(cls=Listing)
def ps() -> None:
    """List background commands and terminal sessions.

    \b
    Examples:
      deskhand ps
      deskhand ps list --all
      deskhand ps kill 5f0c92ab
    """


@ps.command("list")
@click.option("--all", "-a", "all_", is_flag=True, help="Include commands that ended recently.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@limit_option()
@config_option
def list_(all_: bool, as_json: bool, limit: int | None, config: str | None) -> None:
    """List running commands, latest first.

    \b
    Example:
      deskhand ps list --all
    """
    settings = load_settings(config)
    found = _list_processes(settings) if all_ else _list_running(settings)
    found = found[:limit]
    if as_json:
        click.echo(to_json(found))
    elif not found:
        hint = "" if all_ else " To include those that ended recently, add --all."
        click.echo(f"No background commands are running.{hint}")
    else:
        zone = ZoneInfo(settings.config.timezone)
        rows = [
            (
                each.id,
                _state(each, settings),
                format_local_time(each.at, zone),
                session_name(each.session, settings),
                _describe_command(each),
            )
            for each in found
        ]
        print_table(("id", "", "since", "conversation", "command"), rows)


@ps.command()
@click.argument("process_id", metavar="ID")
@config_option
def kill(process_id: str, config: str | None) -> None:
    """Stop a background command and everything it started. Its conversation is notified. A
    unique prefix of the id is enough.

    \b
    Example:
      deskhand ps kill 5f0c92ab
    """
    settings = load_settings(config)
    found = [each for each in _list_running(settings) if each.id.startswith(process_id)]
    if len(found) != 1:
        which = "several commands match" if found else "no running command matches"
        fail(f"{which} {process_id!r}; list them with: deskhand ps", USAGE)
    stop = stop_process(found[0].id, by=ME.id)
    with_store(settings, lambda store: store.change((stop,)))
    click.echo(f"Stopped {found[0].id}: {shorten_line(found[0].command, 200)}")


def _list_processes(settings: Settings) -> list[Process]:
    return with_store(settings, lambda store: visible_processes(store, ME, MAX_LISTED))


def _list_running(settings: Settings) -> list[Process]:
    live = [each for each in _list_processes(settings) if each.is_live]
    return live if live and has_driver(settings) else []


def _state(process: Process, settings: Settings) -> str:
    """What was running when nobody runs any more has ended too."""
    if not process.is_live:
        return process.state
    return "running" if has_driver(settings) else "ended"


def _describe_command(process: Process) -> str:
    how = f" ({process.detail})" if process.detail else ""
    return shorten_line(f"{process.command}{how}", 300)
