"""What the commands share: settings, errors as sentences, and a short-lived Deskhand."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NoReturn

import anyio
import click

from ..runtime.app import App, Parts, open_app
from ..runtime.config import Settings, read_settings
from ..runtime.models import Models
from ..types.errors import DeskhandError

FAILED, USAGE, NEEDS_APPROVAL = 1, 2, 3


def fail(message: str, code: int = FAILED) -> NoReturn:
    """End with a sentence on stderr."""
    click.echo(f"deskhand: {message}", err=True)
    sys.exit(code)


def settings_of(config: str | None, model: str = "") -> Settings:
    """The settings, with their warnings printed. Ends with exit code 2 when they cannot be used."""
    try:
        settings = read_settings(Path(config) if config else None)
    except DeskhandError as error:
        fail(str(error), USAGE)
    for warning in settings.warnings:
        click.echo(f"deskhand: {warning}", err=True)
    return settings.with_model(model) if model else settings


def with_app(settings: Settings, use: Callable[[App], Awaitable[int]]) -> NoReturn:
    """Open a Deskhand, use it, and exit with the code that `use` returned. It drives if no other process does."""

    async def main() -> int:
        async with (
            Models(settings) as models,
            open_app(settings, Parts(models.open, {})) as app,
            anyio.create_task_group() as tasks,
        ):
            models.warm(model for name in settings.agents for model in settings.agent(name).models)
            tasks.start_soon(app.run)
            code = await use(app)
            tasks.cancel_scope.cancel()
        return code

    try:
        code = anyio.run(main)
    except BaseExceptionGroup as group:
        error = _first(group)
        if not isinstance(error, DeskhandError):
            raise
        fail(str(error))
    except DeskhandError as error:
        fail(str(error))
    sys.exit(code)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The exception that a task group wrapped, where it is but one."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
