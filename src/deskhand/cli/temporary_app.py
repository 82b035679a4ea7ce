"""A short-lived Deskhand for one command: it drives if no other process does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import click

from ..assembly.models import Models
from ..config.config import Settings
from ..runtime.app import App, Parts, open_app
from .plain import escape_control
from .run import run

T = TypeVar("T")


def is_terminal_session(session: str) -> bool:
    """Whether it is talked in from terminals alone, by its key: see `session_key`."""
    _, _, place = session.partition("/")
    return place.partition(":")[0] == "terminal"


def with_app(settings: Settings, use: Callable[[App], Awaitable[T]], *, drive: bool = True) -> T:
    """Open a Deskhand, use it and close it. Ends the command with a sentence when something fails.

    It does not live long and has no channels, so that it drives the conversations of terminals, and
    whichever is asked for; all others wait for a Deskhand that stays.
    """

    async def main() -> T:
        async with (
            Models(settings) as models,
            open_app(
                settings, Parts(models.open, renew=models.renew, meaning=models.open_meaning)
            ) as app,
            anyio.create_task_group() as tasks,
        ):
            if drive:
                models.warm(
                    model for name in settings.agents for model in settings.agent(name).models
                )
                tasks.start_soon(lambda: app.run(takes=is_terminal_session))
            for failed in app.current.plugins.failed:
                click.echo(f"deskhand: {escape_control(str(failed))}", err=True)
            result = await use(app)
            tasks.cancel_scope.cancel()
        return result

    return run(settings, main)
