"""`deskhand jobs`, its part that runs them: now, again after a pause, and what became of them."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import TypeVar
from zoneinfo import ZoneInfo

import anyio
import click

from ..config.config import Settings
from ..jobs.ledger import RunEntry
from ..jobs.text import STATE_TEXTS, describe_outcome, format_time
from ..jobs.wiring import JobWiring
from ..runtime.app import App
from ..store.queries import last_event_number
from ..supervision.lock import read_holder
from ..types.events import ApprovalAsked, MessageReceived, QuestionAsked, Recorded, TurnEnded
from ..types.identity import OWN_SURFACES
from ..types.jobs import OPEN_STATES, Job, Run, RunState
from .ask import PlainText, Question, ask_person
from .asks import has_driver
from .encoded import to_json
from .plain import escape_control
from .run import FAILED, ME, NEEDS_APPROVAL, config_option, fail, limit_option, load_settings
from .table import print_table
from .temporary_app import with_app

T = TypeVar("T")
RUN_POLL_S = 0.2
DRIVER_POLL_S = 0.02
OUTPUT_GRACE_S = 5.0
SUCCESS_STATES: tuple[RunState, ...] = ("done", "gated")

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def with_jobs(settings: Settings, use: Callable[[JobWiring], Awaitable[T]]) -> T:
    """Do this with the jobs of this home, whoever runs them."""

    async def main(app: App) -> T:
        return await use(app.features.jobs)

    return with_app(settings, main, drive=False)


def warn_if_no_driver(settings: Settings) -> None:
    """That nothing runs jobs now, where that is so."""
    if not has_driver(settings):
        click.echo("deskhand: jobs are not running; start Deskhand with: deskhand serve", err=True)


@click.command()
@click.argument("name")
@click.option(
    "--wait", "-w", is_flag=True, help="Wait until it has finished, if the service runs it."
)
@config_option
def run(name: str, wait: bool, config: str | None) -> None:
    """Run a job once, now. The service runs it if it is running; otherwise this terminal does.

    Exit codes: 0 done, or its prerun found nothing to do; 1 failed; 3 waiting for an approval.

    \b
    Examples:
      deskhand jobs run brief
      deskhand jobs run brief --wait
    """
    settings = load_settings(config)
    shown = False
    if read_holder(settings.home.serve_lock) is not None:
        ran = with_jobs(settings, lambda here: _run_in_service(here, settings, name, wait=wait))
        if ran is None:
            click.echo(
                f"{escape_control(name)} is running; see: deskhand jobs runs {escape_control(name)}"
            )
            sys.exit(0)
    elif has_driver(settings):
        fail(
            "another terminal is using Deskhand, and terminals do not run jobs: close it, or "
            "start the service with: deskhand serve"
        )
    else:
        ran = with_app(settings, lambda app: run_here(app, name))
        shown = bool(ran.session)
    if ran.state in OPEN_STATES:
        click.echo(
            f"{escape_control(name)} continues when Deskhand is running: deskhand serve", err=True
        )
        sys.exit(NEEDS_APPROVAL)
    said = STATE_TEXTS["done"] if shown and ran.state == "done" else describe_outcome(ran)
    click.echo(
        f"{escape_control(name)}: {escape_control(said)}", err=ran.state not in SUCCESS_STATES
    )
    sys.exit(0 if ran.state in SUCCESS_STATES else FAILED)


async def _run_in_service(
    here: JobWiring, settings: Settings, name: str, *, wait: bool
) -> Run | None:
    """Have the service run it. Returns how it ended, None where that is not waited for."""
    slot = await here.pages.run(ME, name)
    while wait and has_driver(settings):
        ran = next((each for each in await here.api.runs(ME, name, 20) if each.slot == slot), None)
        if ran is not None and ran.state not in OPEN_STATES:
            return ran
        await anyio.sleep(RUN_POLL_S)
    return None


async def run_here(app: App, name: str) -> Run:
    """Run it in this process, and show what it does: what the agent says on stdout, its calls on
    stderr."""
    jobs = app.features.jobs
    entry = await jobs.api.prepare_run(ME, name)
    while not app.dispatch.is_driving:  # noqa: ASYNC110 -- it is on its way
        await anyio.sleep(DRIVER_POLL_S)
    ran = [entry.run]
    async with anyio.create_task_group() as tasks:
        shown = anyio.Event()
        if entry.job.kind == "prompt":
            tasks.start_soon(_print_run, app, entry, shown, tasks.cancel_scope)
        ran[0] = await jobs.runs.run_to_completion(entry)
        if ran[0].state in ("done", "error"):
            with anyio.move_on_after(OUTPUT_GRACE_S):
                await shown.wait()
        tasks.cancel_scope.cancel()
    to = entry.job.to
    if to is not None and ran[0].state in ("done", "error") and to.channel not in OWN_SURFACES:
        click.echo(
            (
                f"Its messages to {escape_control(to.channel)} are sent when Deskhand is "
                "running: deskhand serve"
            ),
            err=True,
        )
    return ran[0]


async def _print_run(
    app: App, entry: RunEntry, shown: anyio.Event, all_: anyio.CancelScope
) -> None:
    """Print what happens in its conversation until its turn ends."""
    session = entry.run.session
    after = await last_event_number(app.store, session)
    output = PlainText(progress=True, zone=ZoneInfo(app.settings.config.timezone))
    question = Question("", session.partition("/")[0], session, interactive=sys.stdin.isatty())
    begun = False
    async with aclosing(app.door.follow(session, ME, after)) as items:
        async for item in items:
            event = item.event if isinstance(item, Recorded) else None
            begun = begun or (isinstance(event, MessageReceived) and event.external_id == entry.key)
            if not begun:  # what somebody else's turn says in the same conversation
                continue
            output(item)
            if isinstance(event, ApprovalAsked | QuestionAsked):
                if await ask_person(app, session, event, question) is not None:
                    all_.cancel()
            elif isinstance(event, TurnEnded):
                shown.set()
                return


@click.command()
@click.argument("name")
@limit_option(20, most=200)
@json_option
@config_option
def runs(name: str, limit: int, as_json: bool, config: str | None) -> None:
    """List a job's runs, latest first.

    \b
    Example:
      deskhand jobs runs brief -n 5
    """
    settings = load_settings(config)
    found = with_jobs(settings, lambda here: here.pages.runs(ME, name, limit))
    if as_json:
        click.echo(to_json(found))
    elif not found:
        click.echo(f"{escape_control(name)} has not run yet.")
    else:
        zone = settings.config.timezone
        rows = [(format_time(each.due_at, zone), each.result, each.name) for each in found]
        print_table(("when", "result", "conversation"), rows)


@click.command()
@click.argument("name")
@config_option
def forecast(name: str, config: str | None) -> None:
    """Forecast how often a job runs and what it costs.

    \b
    Example:
      deskhand jobs forecast brief
    """
    settings = load_settings(config)

    async def use(here: JobWiring) -> str:
        view = await here.api.get(ME, name)
        return (await here.api.forecast(view.job or Job(name))).summary

    click.echo(with_jobs(settings, use))


@click.command()
@click.argument("why", default="paused by hand")
@config_option
def pause(why: str, config: str | None) -> None:
    """Pause all jobs until `deskhand jobs resume`. Jobs that are running are not stopped.

    \b
    Example:
      deskhand jobs pause "on holiday"
    """

    async def use(app: App) -> None:
        await app.features.jobs.api.pause(ME, why)

    with_app(load_settings(config), use, drive=False)
    click.echo("Jobs are paused. Resume them with: deskhand jobs resume")


@click.command()
@config_option
def resume(config: str | None) -> None:
    """Resume jobs after a pause, or after too many restarts in a short time.

    \b
    Example:
      deskhand jobs resume
    """

    async def use(app: App) -> str:
        return await app.features.jobs.api.resume(ME)

    why = with_app(load_settings(config), use, drive=False)
    if why:
        click.echo(f"Jobs resumed. The reason for the pause was: {escape_control(why)}")
    else:
        click.echo("Jobs were not paused.")


COMMANDS = (run, runs, forecast, pause, resume)
