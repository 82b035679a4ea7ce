"""`deskhand sessions undo`, `retry`, `branch`: going back in a conversation from the shell."""

from __future__ import annotations

import sys
from typing import NoReturn

import click

from .ask import Question, converse
from .live import with_app
from .run import config_option, settings_of
from .sessions import events_of, key_of, sessions

__all__ = ["sessions"]


@sessions.command()
@click.argument("name")
@click.argument("turns", default=1, type=click.IntRange(1))
@config_option
def undo(name: str, turns: int, config: str | None) -> None:
    """Take back the last turn of a conversation, or as many as you say. Files and sent messages stay as they are.

    What was taken back stays in the log, and what is running is interrupted.

    \b
    Examples:
      deskhand sessions undo nov21-0930
      deskhand sessions undo nov21-0930 3
    """
    _run(name, f"/undo {turns}", config)


@sessions.command()
@click.argument("name")
@config_option
def retry(name: str, config: str | None) -> None:
    """Take back the last turn, send its message again, and print the new answer.

    \b
    Example:
      deskhand sessions retry nov21-0930
    """
    _run(name, "/retry", config)


@sessions.command()
@click.argument("name")
@config_option
def branch(name: str, config: str | None) -> None:
    """Go on from here in a second conversation; the first stays as it is.

    \b
    Example:
      deskhand sessions branch nov21-0930
    """
    _run(name, "/branch", config)


def _run(name: str, command: str, config: str | None) -> NoReturn:
    settings = settings_of(config)
    events_of(settings, name)
    key = key_of(settings, name)
    sys.exit(with_app(settings, lambda app: converse(app, Question(command, key.partition("/")[0], key))))
