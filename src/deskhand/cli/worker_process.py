"""The process that works, of `deskhand serve` and of `deskhand worker`. Its parent imports none of
this: it only looks after it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from itertools import chain

import anyio
import click

from ..assembly.models import Models
from ..config.clock import SystemClock
from ..config.config import Settings
from ..runtime.app import App, Parts, open_app, with_channels
from ..runtime.http_server import AppServer
from ..runtime.onboarding import DEMO_MODEL
from ..runtime.worker import die_with_parent, note_start, run_guarded, run_worker
from ..supervision.allocator import tune_malloc
from ..supervision.rollback import roll_back_plugins
from ..supervision.start_log import WorkerReady, read_startup_error
from ..supervision.supervise import CRASHED
from .asks import has_driver
from .plain import escape_control
from .run import open_log


def make_page_server(models: Models) -> Callable[[App], Awaitable[None]]:
    """The page of an App, for ever; where the configuration has none, nothing, for ever."""

    async def serve(app: App) -> None:
        if app.settings.config.web.enabled:
            await AppServer(app, models).run()
        else:
            app.vitals.record_ready("web", "switched off (web.enabled)")
            await anyio.sleep_forever()

    return serve


def keep_parts(parts: Parts) -> Parts:
    return parts


def run_worker_process(
    settings: Settings, parent: int, other: Callable[[Parts], Parts] = keep_parts
) -> int:
    """Work for this parent, and return the exit code. `other`: what is replaced by who tries it
    out."""
    if not die_with_parent(parent):
        return 0
    tune_malloc()
    now = SystemClock().now
    ready = WorkerReady(settings.environment)

    async def use(app: App) -> int:
        if has_driver(settings) and not settings.home.worker:
            click.echo(
                "Another Deskhand process is active; this one takes over when it ends.", err=True
            )
        return await run_worker(app, partial(note_start, settings, now), ready)

    async def main() -> int:
        async with Models(settings, demo=DEMO_MODEL) as models:
            parts = Parts(
                models.open,
                serve=make_page_server(models),
                renew=models.renew,
                meaning=models.open_meaning,
            )
            parts = with_channels(other(parts), settings)
            async with open_app(settings, parts) as app:
                broken = [each.place for each in app.current.plugins.failed]
                if broken and await roll_back_plugins(settings, app.store, app.effects, broken):
                    await app.current.try_reload()
                agents = map(settings.agent, settings.agents)
                models.warm(chain.from_iterable(agent.models for agent in agents))
                return await use(app)

    with open_log(settings):
        code = anyio.run(run_guarded, settings, main, now)
    if code == CRASHED:
        error = read_startup_error(settings.home)
        why = f"{error.type}: {error.message}" if error else "the disk may be full"
        said = f"deskhand: the worker crashed: {escape_control(why)}"
        click.echo(f"{said}. To find the cause: deskhand doctor, deskhand logs", err=True)
    return code
