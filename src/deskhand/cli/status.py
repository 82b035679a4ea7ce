"""`deskhand status`: whether it works, what waits for a person, and what is wrong; or how each part
is."""

from __future__ import annotations

import sys
from datetime import datetime
from zoneinfo import ZoneInfo

import anyio
import click

from ..config.clock import SystemClock
from ..config.config import Settings
from ..config.database import has_database, open_store
from ..gateway.terminal_socket import ask_health
from ..runtime.held_files import Approving
from ..supervision.lock import read_holder
from ..types.errors import DeskhandError
from ..types.health import Health, HealthFact
from ..users.users import open_people
from .encoded import to_json
from .failed import list_failed
from .plain import escape_control
from .run import FAILED, ME, config_option, load_service_settings
from .times import format_age

COLORS = {"ok": "green", "starting": "cyan", "degraded": "yellow", "down": "red"}
STATE_WORDS = {
    "ok": "is working",
    "starting": "is starting",
    "degraded": "is partly working",
    "down": "is not working",
}
QUIET_WHEN_OK = frozenset({"watch", "sweep", "anchor", "health", "socket"})
"""Parts of which nobody wants to hear while they are well."""
NOT_RUNNING = """Deskhand is not running: it works only while a terminal is open. To start it: deskhand serve
To start it at every login: deskhand service install"""  # noqa: E501


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing; only set the exit code.")
@click.option(
    "--verbose", "-v", is_flag=True, help="Show the state of each part and of the process."
)
@config_option
def status(as_json: bool, quiet: bool, verbose: bool, config: str | None) -> None:
    """Show the state of Deskhand, open requests and problems.

    Exit codes: 0 working, at least in part; 1 not running, not responding, or down.

    \b
    Examples:
      deskhand status
      deskhand status --verbose
      deskhand status --json | jq .facts
    """
    settings = load_service_settings(config, quiet=True)
    health = anyio.run(ask_health, settings.home.socket)
    if as_json:
        click.echo(to_json(health))
    elif not quiet:
        _print_status(settings, health, verbose=verbose)
    sys.exit(FAILED if health is None or health.state == "down" else 0)


def _print_status(settings: Settings, health: Health | None, *, verbose: bool) -> None:
    zone = ZoneInfo(settings.config.timezone)
    if health is None:
        click.echo(_describe_unreachable(settings))
    else:
        state = click.style(
            f"Deskhand {STATE_WORDS[health.state]}.", fg=COLORS[health.state], bold=True
        )
        click.echo(
            f"{state} Web page: {escape_control(health.address)}" if health.address else state
        )
    waits = anyio.run(_list_waiting, settings)
    for line in waits:
        click.echo(f"  {line}")
    if health is None:
        return
    wrong = [fact for fact in health.facts if fact.state in ("degraded", "down")]
    for fact in wrong if not verbose else ():
        click.echo(_render_problem(fact, zone))
    if not (waits or wrong):
        click.echo("No open requests, no problems.")
    if verbose:
        _print_parts(settings, health, zone)


def _describe_unreachable(settings: Settings) -> str:
    runs = read_holder(settings.home.serve_lock) or read_holder(settings.home.lock)
    if runs is None:
        return NOT_RUNNING
    who = f"Process {runs.pid}" if runs.pid else "A process"
    if settings.config.store:
        return (
            f"{who} is running. It stands by while another service of this database works, or does "
            "not respond. See the log: deskhand logs"
        )
    return f"{who} is running, but does not respond. See the log: deskhand logs"


async def _list_waiting(settings: Settings) -> list[str]:
    """What waits for whoever sits here, a line for each kind; nothing where that cannot be read."""
    if not has_database(settings):
        return []
    store = open_store(settings)
    try:
        asks = await store.open_asks(ME)
        people = open_people(store, SystemClock(), dict, dict)
        strangers = await people.pairings()
        letters = await list_failed(store)
        held = await Approving(settings, store).list_held(SystemClock().now())
    except (DeskhandError, OSError):
        return []
    finally:
        await store.close()
    approvals = sum(bool(ask.tool) for ask in asks)
    questions = len(asks) - approvals
    lines = (
        _count(approvals, "approval request", "approval requests", "approvals"),
        _count(questions, "open question", "open questions", "approvals"),
        _count(
            len(strangers), "person waiting for approval", "people waiting for approval", "pair"
        ),
        _count(len(held), "file held back from prompts", "files held back from prompts", "held"),
        _count(len(letters), "permanent failure", "permanent failures", "failed"),
    )
    return [line for line in lines if line]


def _count(number: int, one: str, many: str, command: str) -> str:
    """A line with the command that shows them; '' for none."""
    if not number:
        return ""
    return f"{number} {one if number == 1 else many}: deskhand {command}"


def _render_problem(fact: HealthFact, zone: ZoneInfo) -> str:
    """What is wrong with a part, and what to do, in one line."""
    mark = click.style(escape_control(fact.name), fg=COLORS[fact.state])
    said = [
        escape_control(" ".join(each.split())) for each in (fact.detail, fact.last_error) if each
    ]
    since = f" (since {_format_time(fact.last_error_at, zone)})" if fact.last_error_at else ""
    return f"  {mark}: {'. '.join(said) or fact.state}{since}"


def _print_parts(settings: Settings, health: Health, zone: ZoneInfo) -> None:
    how = "works" if read_holder(settings.home.serve_lock) is not None else "runs in a terminal"
    click.echo(
        f"\nVersion {health.version}. Process {health.pid} {how} since "
        f"{_format_time(health.since, zone)}"
    )
    for fact in health.facts:
        if fact.name in QUIET_WHEN_OK and fact.state == "ok":
            continue
        for line in render_health_fact(fact, health.at, zone):
            click.echo(line)


def render_health_fact(fact: HealthFact, now: float, zone: ZoneInfo) -> list[str]:
    """A part in one line, and what is wrong with it in another."""
    mark = click.style(f"{fact.state:<8}", fg=COLORS[fact.state])
    said = [escape_control(fact.detail)] if fact.detail else []
    if fact.restarts:
        said.append(f"restarted {fact.restarts} times" if fact.restarts > 1 else "restarted once")
    if fact.last_success_at is not None and fact.name != "store":
        said.append(f"last success {format_age(now - fact.last_success_at)}")
    if not said and fact.since is not None:
        said = [f"since {_format_time(fact.since, zone)}"]
    found = [f"{mark}  {escape_control(fact.name):<20} {', '.join(said)}".rstrip()]
    if fact.last_error and fact.state != "ok":
        at = f" ({_format_time(fact.last_error_at, zone)})" if fact.last_error_at else ""
        found.append(f"{'':<31}{escape_control(' '.join(fact.last_error.split()))}{at}")
    return found


def _format_time(at: float, zone: ZoneInfo) -> str:
    return datetime.fromtimestamp(at, zone).strftime("%Y-%m-%d %H:%M")
