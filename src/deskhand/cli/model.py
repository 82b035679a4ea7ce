"""`deskhand model`: which models there are, and which one is used."""

from __future__ import annotations

import click

from ..config.config import Settings
from ..types.errors import DeskhandError
from .run import (
    USAGE,
    Listing,
    agent_option,
    config_option,
    fail,
    json_option,
    limit_option,
    load_settings,
)
from .table import print_json_rows, print_table
from .weights import pull, test


@click.group(cls=Listing)
def model() -> None:
    """List, choose, download and test models.

    \b
    Examples:
      deskhand model list
      deskhand model use anthropic/claude-sonnet-5
      deskhand model pull
    """


@model.command("list")
@click.argument("provider", default="")
@limit_option()
@json_option
@config_option
def list_(provider: str, limit: int | None, as_json: bool, config: str | None) -> None:
    """List providers, or the known models of one. Others can be used too.

    \b
    Examples:
      deskhand model list
      deskhand model list anthropic
    """
    from ..assembly.model_offers import format_gigabytes
    from ..assembly.models import Models, build_catalogue
    from ..models.weights import PROVIDER, WeightsFolder

    settings = load_settings(config)
    catalogue = build_catalogue(settings)
    models = Models(settings)
    try:
        if provider:
            known = catalogue.provider(provider).models
            windows = [(f"{provider}/{name}", facts.window) for name, facts in known.items()]
            if as_json:
                print_json_rows(("model", "window"), windows[:limit])
                return
            rows = [(name, f"{window:,}") for name, window in windows]
            print_table(("model", "window"), rows[:limit])
            return
    except DeskhandError as error:
        fail(str(error), USAGE)
    providers = []
    for name, found in catalogue.providers.items():
        if name != PROVIDER:
            needs = f"needs {found.keys[0]}" if found.keys else "needs base_url"
            if found.local:
                needs = "runs on this machine"
            ready = "key found" if models.key(name) else needs
            providers.append((name, ready, found.base_url))
    shelf = WeightsFolder(settings.cache_folder / "models")
    for name, weights in shelf.known.items():
        ready = "here"
        if not shelf.has(name):
            ready = f"{format_gigabytes(weights.size_bytes)}: deskhand model pull {name}"
        providers.append((PROVIDER, ready, f"{PROVIDER}/{name}"))
    providers.append(("scripted", "to try Deskhand without a model", "scripted/echo"))
    if as_json:
        print_json_rows(("provider", "ready", "where"), providers[:limit])
        return
    print_table(("provider", "ready?", "where"), providers[:limit])
    click.echo(f"Chosen: {', '.join(settings.config.defaults.models) or 'none'}")


@model.command()
@click.argument("name", metavar="PROVIDER/NAME")
@agent_option
@config_option
def use(name: str, agent: str, config: str | None) -> None:
    """Choose the model for all agents, or for one.

    \b
    Examples:
      deskhand model use openai/gpt-5.4
      deskhand model use ollama/qwen3 --agent careful
    """
    settings = load_settings(config)
    try:
        set_model(settings, name, agent)
    except DeskhandError as error:
        fail(str(error), USAGE)
    click.echo(f"{agent or 'Every agent'} now uses {name}.")


def set_model(settings: Settings, name: str, agent: str = "") -> None:
    """Write the model into the configuration. Raises DeskhandError where it cannot be used, with
    the next step."""
    from ..assembly.models import Models
    from ..config.parse import read_text
    from ..config.yaml_edit import set_key
    from ..types.private_files import write_private_file

    missing = Models(settings).check(name)
    if missing:
        click.echo(f"deskhand: {missing}", err=True)
    path = ["agents", agent, "models"] if agent else ["defaults", "models"]
    try:
        text = read_text(settings.file)
    except FileNotFoundError:
        text = ""
    write_private_file(settings.file, set_key(text, path, [name]))


model.add_command(pull)
model.add_command(test)
