"""`deskhand subagents`: the tasks that agents have given to others, to look at and to stop."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import click

from ..config.config import Settings
from ..store.queries import stop_subagent, visible_subagents
from ..types.subagents import SubagentTask
from .asks import session_name
from .encoded import to_json
from .plain import shorten_line
from .run import ME, USAGE, Listing, config_option, fail, limit_option, load_settings, with_store
from .sessions import format_local_time
from .table import print_table

MAX_LISTED = 200


@click.group(cls=Listing)
def subagents() -> None:
    """List and stop sub-agents.

    \b
    Examples:
      deskhand subagents
      deskhand subagents list --all
      deskhand subagents stop 5f0c92ab
    """


@subagents.command("list")
@click.option("--all", "-a", "all_", is_flag=True, help="Include those that ended.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@limit_option()
@config_option
def list_(all_: bool, as_json: bool, limit: int | None, config: str | None) -> None:
    """List sub-agents at work, latest first.

    \b
    Example:
      deskhand subagents list --all
    """
    settings = load_settings(config)
    found = _find(settings, ended=all_)[:limit]
    if as_json:
        click.echo(to_json([_make_row(task) for task in found]))
    elif not found:
        more = "No sub-agents are at work. To include those that ended, add --all."
        click.echo("There are no sub-agents." if all_ else more)
    else:
        zone = ZoneInfo(settings.config.timezone)
        rows = [
            (
                task.id,
                task.state,
                format_local_time(task.at, zone),
                session_name(task.parent, settings),
                shorten_line(task.title, 200),
            )
            for task in found
        ]
        print_table(("id", "", "since", "conversation", "task"), rows)


@subagents.command()
@click.argument("subagent_id", metavar="ID")
@config_option
def stop(subagent_id: str, config: str | None) -> None:
    """Stop a sub-agent and all that it began. Its conversation is told. A unique prefix of the id
    is enough.

    \b
    Example:
      deskhand subagents stop 5f0c92ab
    """
    settings = load_settings(config)
    found = {task.id: task for task in _find(settings) if task.id.startswith(subagent_id)}
    if len(found) != 1:
        which = "several sub-agents match" if found else "no sub-agent at work matches"
        fail(f"{which} {subagent_id!r}; list them with: deskhand subagents", USAGE)
    ((id_, task),) = found.items()
    change = stop_subagent(id_, f"stopped by {ME.id}")
    with_store(settings, lambda store: store.change((change,)))
    click.echo(f"Stopped {id_}: {shorten_line(task.title, 200)}")


def _find(settings: Settings, *, ended: bool = False) -> list[SubagentTask]:
    return with_store(
        settings,
        lambda store: visible_subagents(store, ME, "", ended=ended, limit=MAX_LISTED),
    )


def _make_row(task: SubagentTask) -> dict[str, object]:
    return {
        "id": task.id,
        "title": task.title,
        "state": task.state,
        "parent": task.parent,
        "session": task.session,
        "at": task.at,
        "ended_at": task.ended_at,
    }
