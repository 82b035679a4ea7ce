"""`deskhand alerts`: what owners were told unasked, and what reached nobody."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import click

from ..config.clock import SystemClock
from ..runtime.app import App
from ..store.sql_store import SqlStore
from ..users.owner_alerts import Alert, Alerts
from .encoded import to_json
from .jobs_running import json_option
from .plain import shorten_line
from .run import config_option, load_settings, with_store
from .sessions import format_local_time
from .table import print_table

MAX_LISTED = 5


@click.command()
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1, 200),
    default=20,
    show_default=True,
    help="Maximum number of alerts to show.",
)
@json_option
@config_option
def alerts(limit: int, as_json: bool, config: str | None) -> None:
    """Show alerts, latest first. Alerts shown here are marked as seen.

    \b
    Example:
      deskhand alerts
    """
    settings = load_settings(config)

    async def use(store: SqlStore) -> list[Alert]:
        told = Alerts(store, SystemClock())
        found = await told.latest(limit)
        await told.mark_seen()
        return found

    found = with_store(settings, use)
    if as_json:
        click.echo(to_json(found))
    elif not found:
        click.echo("No alerts.")
    else:
        zone = ZoneInfo(settings.config.timezone)
        print_table(
            ("when", "", "alert"),
            [(format_local_time(each.at, zone), _state(each), each.text) for each in found],
        )


async def show_alerts(app: App, zone: ZoneInfo) -> None:
    """Print what reached nobody; it counts as seen then."""
    found = await app.alerts.unreached()
    if not found:
        return
    for each in reversed(found[:MAX_LISTED]):
        click.echo(
            click.style(
                f"Alert ({format_local_time(each.at, zone)}): {shorten_line(each.text, 400)}",
                fg="yellow",
            )
        )
    if len(found) > MAX_LISTED:
        click.echo(f"{len(found) - MAX_LISTED} more: deskhand alerts")
    await app.alerts.mark_seen()


def _state(alert: Alert) -> str:
    return "not delivered" if alert.state == "unreached" else alert.state
