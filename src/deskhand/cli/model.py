"""`deskhand model`: which models there are, and which one is chosen."""

from __future__ import annotations

from pathlib import Path

import anyio
import click

from ..models.catalogue import parse
from ..models.weights import PROVIDER, Shelf
from ..runtime.choose import choose_model
from ..runtime.first_run import gigabytes, look_around, offers_of
from ..runtime.models import catalogue_of
from ..types.errors import DeskhandError
from .run import USAGE, fail, settings_of
from .weights import pull, test


@click.group()
def model() -> None:
    """Choose, fetch and try models."""


@model.command("list")
@click.option("--config", help="Use this configuration file.")
def list_models(config: str | None) -> None:
    """Show what can be used here, and what is chosen."""
    settings = settings_of(config)
    shelf = Shelf(settings.cache / "models")
    machine = anyio.run(look_around)
    chosen = settings.config.defaults.models
    click.echo(f"Chosen: {', '.join(chosen) or 'none'}")
    click.echo("Found here:")
    for offer in offers_of(settings, machine, shelf):
        click.echo(f"  {offer.title}\n      {offer.detail}\n      {offer.todo}")
    click.echo("Embedded models:")
    for name, weights in shelf.known.items():
        state = "here" if shelf.has(name) else "not here"
        click.echo(f"  {PROVIDER}/{name}  {gigabytes(weights.size_bytes)}, {weights.licence}, {state}: {weights.about}")
    known = ", ".join(name for name in catalogue_of(settings).providers if name != PROVIDER)
    click.echo(f"Providers: {known}\n  Use any of their models as provider/name.")


@model.command("use")
@click.argument("name")
@click.option("--config", help="Use this configuration file.")
def use(name: str, config: str | None) -> None:
    """Choose NAME (provider/name) for all agents that have none of their own."""
    settings = settings_of(config)
    try:
        provider, own = parse(name)
        if provider == PROVIDER:
            shelf = Shelf(settings.cache / "models")
            if not shelf.has(own):
                click.echo(f"deskhand: its weights are not here yet: deskhand model pull {own}", err=True)
        elif provider not in catalogue_of(settings).providers:
            click.echo(f"deskhand: no provider {provider!r} is listed; an installed package must bring it", err=True)
        path = Path(config) if config else settings.home.config
        choose_model(path, name)
    except DeskhandError as error:
        fail(str(error), USAGE)
    click.echo(f"{name} is chosen in {path}.")


model.add_command(pull)
model.add_command(test)
