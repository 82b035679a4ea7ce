"""`deskhand serve`: stay and work, with a process beside it that starts it again."""

from __future__ import annotations

import os
import sys

import anyio
import click

from ..runtime.app import App, Parts, open_app
from ..runtime.channels import with_channels
from ..runtime.clock import SystemClock
from ..runtime.config import Settings, worker_environment
from ..runtime.models import Models
from ..runtime.starts import newer_startup_error
from ..runtime.supervise import Supervisor
from ..runtime.worker import CRASHED, end_with_parent, guarded, started_well, work
from .asks import somebody_drives
from .plain import plain
from .run import config_option, logging_of, settings_of, verbose

QUIET = "No channel is set up yet, so nobody can write from elsewhere: it drives the conversations that are open."


@click.command()
@click.option("--worker", type=int, hidden=True, metavar="PID", help="Be the process that works, for this parent.")
@config_option
def serve(worker: int | None, config: str | None) -> None:
    """Stay and work until you end it with Ctrl+C or SIGTERM.

    A second process does the work and is started again when it asks for that; SIGHUP makes it read the configuration
    anew. Terminals may talk beside it.

    \b
    Examples:
      deskhand serve
      deskhand -v serve
    """
    settings = settings_of(config)
    if worker is not None:
        sys.exit(_work(settings) if end_with_parent(worker) else 0)
    click.echo(f"Deskhand works until you end it (Ctrl+C). Talk to it: deskhand. Its log: {settings.home.log}")
    if not any(channel.enabled for channel in settings.config.channels.values()):
        click.echo(QUIET)
    command = [sys.executable, "-P", "-m", "deskhand"]  # -P: what lies in this folder is not ours to import
    command += [*(("-v",) if verbose(settings) else ()), *(("--config", config) if config else ())]
    command += ["serve", "--worker", str(os.getpid())]
    parent = Supervisor(command, worker_environment(), SystemClock().monotonic, reload=not sys.stdin.isatty())
    sys.exit(anyio.run(parent.run))


def _work(settings: Settings) -> int:
    now = SystemClock().now

    def started() -> None:
        started_well(settings, now)

    async def use(app: App) -> int:
        if somebody_drives(settings):
            click.echo("Another Deskhand drives now; this one takes over when it ends.", err=True)
        return await work(app, started)

    async def main() -> int:
        async with (
            Models(settings) as models,
            open_app(settings, with_channels(Parts(models.open), settings)) as app,
        ):
            models.warm(model for name in settings.agents for model in settings.agent(name).models)
            return await use(app)

    with logging_of(settings):
        code = anyio.run(guarded, settings, main, now)
    if code == CRASHED:
        error = newer_startup_error(settings.home)
        why = f"{error.type}: {error.message}" if error else "the disk may be full"
        click.echo(f"deskhand: it broke: {plain(why)}. What to do: deskhand doctor, deskhand logs", err=True)
    return code
