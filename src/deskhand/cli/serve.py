"""`deskhand serve`: stay and work, with a process beside it that starts it again."""

from __future__ import annotations

import os
import signal
import sys
from datetime import datetime
from zoneinfo import ZoneInfo

import anyio
import click

from ..config.address import read_address, remove_address
from ..config.clock import SystemClock
from ..config.config import Settings, worker_environment
from ..supervision.lock import Holder, acquire_lock, read_holder
from ..supervision.rollback import can_roll_back, roll_back_failed_start
from ..supervision.site_packages import describe_unexpected_pth, find_unexpected_pth
from ..supervision.start_log import read_last_start
from ..supervision.supervise import Supervisor
from ..types.errors import ConfigError
from ..web.settings import check_exposure
from .open import show_page_when_ready
from .plain import escape_control
from .run import USAGE, config_option, fail, is_verbose, load_service_settings, open_log


@click.command()
@click.option(
    "--worker",
    type=int,
    hidden=True,
    metavar="PID",
    help="Run as the worker process of this parent.",
)
@click.option(
    "--open", "-o", "open_", is_flag=True, help="Open the web page in a browser, signed in."
)
@config_option
def serve(worker: int | None, open_: bool, config: str | None) -> None:
    """Run the server until Ctrl+C or SIGTERM.

    The server runs in a worker process, which is restarted when needed. It reloads the
    configuration when the file changes, or on SIGHUP. You can chat in terminals at the same time.
    Only one server can use a home folder.

    \b
    Examples:
      deskhand serve
      deskhand serve --open
      deskhand -v serve
    """
    settings = load_service_settings(config, quiet=worker is not None)
    if worker is not None:
        from .worker_process import run_worker_process

        sys.exit(run_worker_process(settings, worker))
    try:
        check_exposure(settings.config.web)
    except ConfigError as error:
        fail(str(error), USAGE)
    acquire_service_lock(settings)
    for each in find_unexpected_pth():
        click.echo(f"deskhand: warning: {escape_control(describe_unexpected_pth(each))}", err=True)
    click.echo(f"Deskhand is running. Press Ctrl+C to stop it. Log: {settings.home.log}")
    sys.exit(anyio.run(_run_supervisor, make_supervisor(settings, config), settings, open_))


def make_supervisor(settings: Settings, config: str | None) -> Supervisor:
    """What runs the process that works, with the configuration file of this command."""
    command = [
        sys.executable,
        "-P",
        "-m",
        "deskhand",
    ]  # -P: what lies in this folder is not ours to import
    command += [
        *(("-v",) if is_verbose(settings) else ()),
        *(("--config", config) if config else ()),
    ]
    command += ["serve", "--worker", str(os.getpid())]
    now = SystemClock().monotonic
    reload = not sys.stdin.isatty()
    return Supervisor(command, worker_environment(), now, reload=reload, repair=RollBack(settings))


class RollBack:
    """Undoes what agents changed in Deskhand's own code when the service does not start with it.

    The code of the repair is loaded when this process starts, before an agent could break it.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @property
    def start_s(self) -> float:
        return self._settings.config.start_s

    def last_start(self) -> float | None:
        return read_last_start(self._settings.home)

    async def can_repair(self) -> bool:
        with open_log(self._settings):
            return await can_roll_back(self._settings)

    async def repair(self, code: int, why: str) -> bool:
        with open_log(self._settings):
            return await roll_back_failed_start(self._settings, code, why)


async def _run_supervisor(parent: Supervisor, settings: Settings, open_: bool) -> int:
    """Run the parent, and say where the page is as soon as it is there."""
    async with anyio.create_task_group() as tasks:
        if settings.config.web.enabled:
            remove_address(settings.home)  # what stands there is of an earlier life
            tasks.start_soon(show_page_when_ready, settings, open_)
        code = await parent.run()
        tasks.cancel_scope.cancel()
    return code


def acquire_service_lock(settings: Settings) -> None:
    """Hold the lock of the service until this process ends. Ends the command where another one
    holds it. Whoever reads there who we are may send SIGUSR1 before the supervisor handles it."""
    signal.signal(signal.SIGUSR1, lambda *_: None)
    home = settings.home
    now = SystemClock().now()
    try:
        home.make_folder(home.process)
        if acquire_lock(home.serve_lock, Holder(os.getpid(), now)) is not None:
            return
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}; check the installation with: deskhand doctor")
    holder = read_holder(home.serve_lock) or Holder()
    if home.worker:
        fail(
            f"process {holder.pid} is the worker {home.worker!r} of {home.root} already; choose "
            "another name: deskhand worker NAME"
        )
    since = datetime.fromtimestamp(holder.since, ZoneInfo(settings.config.timezone)).strftime(
        "%Y-%m-%d %H:%M"
    )
    who = (
        f"process {holder.pid} has served {home.root} since {since}"
        if holder.pid
        else f"{home.root} is already being served"
    )
    url = read_address(home)
    where = f", at {url}" if url else ""
    fail(
        f"{who}{where}. See it with `deskhand status`; for a second Deskhand, set "
        "DESKHAND_HOME to another folder."
    )
