"""`deskhand jobs`, its part that runs them: now, again after a pause, and what became of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import click
import msgspec

from ..runtime.app import App
from ..runtime.automation import Automation
from ..runtime.config import Settings
from ..runtime.jobs.told import became, moment
from ..types.jobs import OPEN, Job
from .asks import somebody_drives
from .live import with_app
from .plain import plain
from .run import ME, config_option, settings_of
from .table import table

T = TypeVar("T")
WAIT_S = 0.2

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def with_jobs(settings: Settings, use: Callable[[Automation], Awaitable[T]]) -> T:
    """Do this with the jobs of this home, whoever runs them."""

    async def main(app: App) -> T:
        return await use(app.works.automation)

    return with_app(settings, main, drive=False)


def say_if_nobody(settings: Settings) -> None:
    """That nothing runs jobs now, where that is so."""
    if not somebody_drives(settings):
        click.echo("deskhand: nobody runs jobs now; start Deskhand with `deskhand serve`", err=True)


@click.command()
@click.argument("name")
@click.option("--wait", "-w", is_flag=True, help="Stay until it is over, and say how it went.")
@config_option
def run(name: str, wait: bool, config: str | None) -> None:
    """Run a job now, once.

    \b
    Example:
      deskhand jobs run brief --wait
    """
    settings = settings_of(config)

    async def use(here: Automation) -> str:
        slot = await here.desk.run(ME, name)
        while wait and somebody_drives(settings):
            ran = next((each for each in await here.using.own.runs(ME, name, 20) if each.slot == slot), None)
            if ran is not None and ran.state not in OPEN:
                return became(ran)
            await anyio.sleep(WAIT_S)
        return ""

    ended = with_jobs(settings, use)
    click.echo(
        f"{plain(name)}: {plain(ended)}" if ended else f"{plain(name)} runs now; see: deskhand jobs runs {plain(name)}"
    )
    say_if_nobody(settings)


@click.command()
@click.argument("name")
@click.option("-n", "limit", type=click.IntRange(1, 200), default=20, show_default=True, help="So many.")
@json_option
@config_option
def runs(name: str, limit: int, as_json: bool, config: str | None) -> None:
    """What became of a job, the latest first.

    \b
    Example:
      deskhand jobs runs brief -n 5
    """
    settings = settings_of(config)
    found = with_jobs(settings, lambda here: here.desk.runs(ME, name, limit))
    if as_json:
        click.echo(msgspec.json.encode(found))
    elif not found:
        click.echo(f"{plain(name)} has not run yet.")
    else:
        zone = settings.config.timezone
        table(
            ("when", "what became of it", "conversation"), [(moment(r.due_at, zone), r.result, r.name) for r in found]
        )


@click.command()
@click.argument("name")
@config_option
def forecast(name: str, config: str | None) -> None:
    """What a job will come to: how often it runs, and what that takes.

    \b
    Example:
      deskhand jobs forecast brief
    """
    settings = settings_of(config)

    async def use(here: Automation) -> str:
        view = await here.using.own.found(ME, name)
        return (await here.using.forecast(view.job or Job(name))).said

    click.echo(with_jobs(settings, use))


@click.command()
@click.argument("why", default="paused by hand")
@config_option
def pause(why: str, config: str | None) -> None:
    """Run no job any more, until `deskhand jobs resume`. What goes on is not stopped.

    \b
    Example:
      deskhand jobs pause "on holiday"
    """

    async def use(app: App) -> None:
        await app.works.jobs.pause(why)

    with_app(settings_of(config), use, drive=False)
    click.echo("No job runs now. Let them go on with: deskhand jobs resume")


@click.command()
@config_option
def resume(config: str | None) -> None:
    """Let jobs run again after a pause, or after too many starts in a short time.

    \b
    Example:
      deskhand jobs resume
    """

    async def use(app: App) -> str:
        return await app.works.jobs.resume()

    why = with_app(settings_of(config), use, drive=False)
    click.echo(f"They go on. They were paused: {plain(why)}" if why else "They were not paused.")


COMMANDS = (run, runs, forecast, pause, resume)
