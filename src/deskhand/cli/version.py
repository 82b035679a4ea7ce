"""`deskhand version`."""

from __future__ import annotations

from importlib.metadata import version as version_of

import click


@click.command()
def version() -> None:
    """Show the version.

    \b
    Example:
      deskhand version
    """
    click.echo(f"deskhand {version_of('deskhand')}")
