"""`deskhand completion`: completion of commands by the Tab key."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

VARIABLE = "_DESKHAND_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script that completes commands and options by the Tab key.

    Load it where your shell starts.

    \b
    Examples:
      deskhand completion bash >> ~/.bashrc
      deskhand completion zsh >> ~/.zshrc
      deskhand completion fish > ~/.config/fish/completions/deskhand.fish
    """
    made = get_completion_class(shell)
    if made is None:
        raise click.UsageError(f"there is no completion for {shell}")
    root = ctx.find_root().command
    click.echo(made(root, {}, "deskhand", VARIABLE).source())
