"""`deskhand status`: what runs, since when, where, and how each part of it is."""

from __future__ import annotations

import sys
from datetime import datetime
from zoneinfo import ZoneInfo

import anyio
import click
import msgspec

from ..runtime.config import Settings
from ..runtime.lock import holder_of
from ..runtime.socket import ask_health
from ..types.health import Fact, Health
from .plain import plain
from .run import FAILED, config_option, service_settings

COLOURS = {"ok": "green", "starting": "cyan", "degraded": "yellow", "down": "red"}
CHORES = frozenset({"watch", "sweep", "anchor", "health", "socket"})
"""Parts of which nobody wants to hear while they are well."""
NOTHING = """Nothing runs: Deskhand works while a terminal is open. To have it stay: deskhand serve
For good: deskhand service install"""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing: the exit code tells.")
@config_option
def status(as_json: bool, quiet: bool, config: str | None) -> None:
    """What runs, since when, at which address, and how each part of it is.

    Exit codes: 0 it runs and works, in part at least; 1 nothing runs, it does not answer, or it is down.

    \b
    Examples:
      deskhand status
      deskhand status --json | jq .facts
    """
    settings = service_settings(config, quiet=True)
    health = anyio.run(ask_health, settings.home.socket)
    if as_json:
        click.echo(msgspec.json.encode(health))
    elif not quiet:
        _show(settings, health)
    sys.exit(FAILED if health is None or health.state == "down" else 0)


def _show(settings: Settings, health: Health | None) -> None:
    zone = ZoneInfo(settings.config.timezone)
    serving = holder_of(settings.home.serving)
    runs = serving or holder_of(settings.home.lock)
    if health is None and runs is None:
        click.echo(NOTHING)
    elif health is None:
        who = f"Process {runs.pid}" if runs and runs.pid else "A process"
        click.echo(f"{who} runs and does not answer. What it says: deskhand logs")
    if health is None:
        return
    state = click.style(health.state, fg=COLOURS[health.state], bold=True)
    how = "works" if serving is not None else "works in a terminal"
    click.echo(f"Deskhand {health.version}: {state}. Process {health.pid} {how} since {_when(health.since, zone)}")
    if health.address:
        click.echo(f"Its page: {plain(health.address)}")
    for fact in health.facts:
        if fact.name in CHORES and fact.state == "ok":
            continue
        for line in lines_of(fact, health.at, zone):
            click.echo(line)


def lines_of(fact: Fact, now: float, zone: ZoneInfo) -> list[str]:
    """A part in one line, and what is wrong with it in another."""
    mark = click.style(f"{fact.state:<8}", fg=COLOURS[fact.state])
    said = [plain(fact.detail)] if fact.detail else []
    if fact.restarts:
        said.append(f"started again {fact.restarts} times" if fact.restarts > 1 else "started again once")
    if fact.last_success_at is not None and fact.name != "store":
        said.append(f"last success {_ago(now - fact.last_success_at)}")
    if not said and fact.since is not None:
        said = [f"since {_when(fact.since, zone)}"]
    found = [f"{mark}  {plain(fact.name):<20} {', '.join(said)}".rstrip()]
    if fact.last_error and fact.state != "ok":
        at = f" ({_when(fact.last_error_at, zone)})" if fact.last_error_at else ""
        found.append(f"{'':<31}{plain(' '.join(fact.last_error.split()))}{at}")
    return found


def _when(at: float, zone: ZoneInfo) -> str:
    return datetime.fromtimestamp(at, zone).strftime("%Y-%m-%d %H:%M")


def _ago(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "just now"
