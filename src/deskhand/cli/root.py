"""The top of the command line: names and help stand here, the rest is imported when it is called."""

from __future__ import annotations

import importlib

import click

COMMANDS = {
    "ask": ("deskhand.cli.ask:ask", "Ask one thing and print the answer."),
    "model": ("deskhand.cli.model:model", "Choose, fetch and try models."),
}
"""name -> (module:function, one line of help)"""


class LazyGroup(click.Group):
    """A group whose commands are imported only when they run, so that `--help` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), name)
        if not isinstance(command, click.Command):
            raise TypeError(f"{module}:{name} is not a command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_, help_line) in sorted(COMMANDS.items())])


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="deskhand")
def cli() -> None:
    """A personal AI agent on your own machine.

    It loses no message, repeats no effect, and asks before it does what matters.
    """
