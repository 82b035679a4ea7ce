"""What the commands share: settings, errors as sentences, and a short-lived Deskhand."""

from __future__ import annotations

import logging
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import anyio
import click

from ..config.clock import SystemClock
from ..config.config import Settings, read_settings
from ..config.database import open_store
from ..config.last_good import read_settings_or_last_good
from ..store.sql_store import SqlStore
from ..supervision.logs import logging_to_file
from ..supervision.start_log import find_cause
from ..types.errors import ConfigError, DeskhandError
from ..types.identity import Principal
from ..users.queries import audit_note
from .colors import wants_color
from .plain import escape_control

FAILED = 1
USAGE = 2
NEEDS_APPROVAL = 3
INTERRUPTED = 130
MAX_SENTENCE_CHARS = 1_000
ME = Principal("owner", ("owner",))
"""Whoever can open the files of this home owns it."""

C = TypeVar("C", bound=Callable[..., Any])
T = TypeVar("T")


def _parent_option(ctx: click.Context, name: str) -> str:
    """The value of an option that stood before the command, nearest first; ''."""
    at = ctx.parent
    while at is not None and not at.params.get(name):
        at = at.parent
    return str(at.params[name]) if at is not None else ""


def config_option(command: C) -> C:
    """`--config FILE`, which may also stand before the command."""

    def inherit(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
        return value or _parent_option(ctx, "config") or None

    return click.option(
        "--config", metavar="FILE", callback=inherit, help="Use this configuration file."
    )(command)


def agent_option(command: C) -> C:
    """`--agent NAME`."""

    def inherit(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
        return value or _parent_option(ctx, "agent")

    text = "Agent to use. [default: the first one]"
    return click.option("--agent", "-a", default="", metavar="NAME", callback=inherit, help=text)(
        command
    )


def limit_option(
    default: int | None = None,
    *,
    least: int = 1,
    most: int | None = None,
    names: Sequence[str] = ("-n",),
) -> Callable[[C], C]:
    """`-n/--limit`, the same for every command that prints a list; without a default it prints all.
    `names` are those that the option has besides `--limit`."""
    return click.option(
        "--limit",
        *names,
        "limit",
        type=click.IntRange(least, most),
        default=default,
        show_default=default is not None,
        help="Maximum number of entries to show.",
    )


def json_option(command: C) -> C:
    """`--json`, the same for every command that prints a list."""
    return click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")(command)


class Group(click.Group):
    """A group that says of each command all of its first sentence, on as many lines as that
    takes."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        known = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [
            (name, each.get_short_help_str(MAX_SENTENCE_CHARS))
            for name, each in known
            if each and not each.hidden
        ]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


class Listing(Group):
    """A group that lists where no command is named: `deskhand sessions` is `deskhand sessions
    list`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            named = next((arg for arg in args if arg in self.commands), "")
            if named:  # options that were said before it are its own
                args.remove(named)
            args = [named or "list", *args]
        return super().parse_args(ctx, args)


def fail(message: str, code: int = FAILED) -> NoReturn:
    """End with a sentence on stderr."""
    click.echo(f"deskhand: {escape_control(message)}", err=True)
    sys.exit(code)


def load_settings(config: str | None) -> Settings:
    """The settings, with their warnings printed. Ends with exit code 2 when they cannot be used."""
    try:
        settings = read_settings(Path(config) if config else None)
    except DeskhandError as error:
        fail(f"{error}", USAGE)
    apply_color(settings)
    for warning in settings.warnings:
        click.echo(f"deskhand: {escape_control(warning)}", err=True)
    return settings


def apply_color(settings: Settings) -> None:
    """Let what this command prints have colours where they are wanted."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.color = wants_color(settings.environment, settings.config.terminal.theme)


def load_service_settings(config: str | None, *, quiet: bool) -> Settings:
    """The settings, or the last good ones: a mistake in the file is no reason for nobody to be
    there."""
    try:
        settings = read_settings_or_last_good(Path(config) if config else None)
    except DeskhandError as error:
        fail(str(error), USAGE)
    apply_color(settings)
    for warning in () if quiet else settings.warnings:
        click.echo(f"deskhand: {escape_control(warning)}", err=True)
    if settings.problem and not quiet:
        click.echo(f"deskhand: {escape_control(settings.problem)}", err=True)
        click.echo("deskhand: until it is fixed, the last valid configuration is used.", err=True)
    return settings


def resolve_agent(settings: Settings, agent: str) -> str:
    """The agent that is meant. Ends with exit code 2 for one that does not exist."""
    try:
        return settings.resolve_agent(agent)
    except ConfigError as error:
        fail(str(error), USAGE)


class Console(logging.Handler):
    """The log on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(escape_control(self.format(record)), err=True)


def is_verbose(settings: Settings) -> bool:
    """Whether the log is wanted on the console too: by `-v`, or by the environment. Never in a
    chat, which draws there."""
    context = click.get_current_context(silent=True)
    root = context.find_root() if context else None
    if root is not None and root.invoked_subcommand is None:
        return False
    return settings.verbose or bool(root and root.params.get("verbose"))


def open_log(settings: Settings) -> AbstractContextManager[None]:
    """The log of a command, in its file, and on the console where that is wanted."""
    return logging_to_file(settings, Console() if is_verbose(settings) else None)


def run(settings: Settings, main: Callable[[], Awaitable[T]], *, log: bool = True) -> T:
    """Run to the end, with a log; what goes wrong on purpose ends the command with its sentence."""
    try:
        with open_log(settings) if log else nullcontext():
            return anyio.run(main)
    except BaseExceptionGroup as group:
        error = find_cause(group)
        if isinstance(error, KeyboardInterrupt):
            sys.exit(INTERRUPTED)
        if isinstance(error, SystemExit):  # `fail` inside the task group
            sys.exit(error.code)
        if (
            isinstance(error, OSError) and error.filename is None
        ):  # the output is not taken: see `entry`
            raise error from None
        if not isinstance(error, DeskhandError | OSError):
            raise
        fail(_format_error(error))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except (DeskhandError, OSError) as error:
        if isinstance(error, OSError) and error.filename is None:
            raise
        fail(_format_error(error))


def with_store(settings: Settings, use: Callable[[SqlStore], Awaitable[T]]) -> T:
    """Open the database alone: for lists, and for rows that are not conversation."""

    async def main() -> T:
        settings.home.make_folder(settings.home.state)
        store = open_store(settings)
        try:
            return await use(store)
        finally:
            await store.close()

    return run(settings, main)


def add_audit_note(settings: Settings, what: str, subject: str) -> None:
    """A line of the audit trail: what the owner did to which subject."""

    async def use(store: SqlStore) -> None:
        await store.change([audit_note(SystemClock().now(), ME.id, what, subject)])

    with_store(settings, use)


def _format_error(error: BaseException) -> str:
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}; check the installation with: deskhand doctor"
    return str(error)
