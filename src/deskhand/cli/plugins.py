"""`deskhand plugins`: what there is, and which of it is loaded."""

from __future__ import annotations

from collections.abc import Sequence

import click
from msgspec.structs import replace

from ..assembly.plugins import FailedPlugin, LoadedPlugins, edit_plugin_names, list_plugins
from ..assembly.tools import load_configured_plugins
from ..config.config import Settings
from ..config.parse import read_text
from ..config.private_files import write_private_file
from ..config.yaml_edit import set_key
from ..types.errors import DeskhandError
from .plain import escape_control
from .run import USAGE, Group, config_option, fail, limit_option, load_settings
from .table import print_table


@click.group(cls=Group)
def plugins() -> None:
    """List, enable and disable plugins.

    \b
    Examples:
      deskhand plugins list
      deskhand plugins enable weather
      deskhand plugins disable weather
    """


@plugins.command("list")
@limit_option()
@config_option
def list_(limit: int | None, config: str | None) -> None:
    """List loaded and available plugins. Available plugins are not imported.

    \b
    Example:
      deskhand plugins list
    """
    settings = load_settings(config)
    here = load_configured_plugins(settings)
    on = {plugin.name for plugin in here.loaded} | {failed.name for failed in here.failed}
    rows = [(plugin.name, "on", _describe_contents(plugin), plugin.place) for plugin in here.loaded]
    rows += [
        (name, "off", "", place)
        for name, place in list_plugins(settings.home).items()
        if name not in on
    ]
    if rows:
        print_table(("plugin", "state", "gives", "where"), rows[:limit])
    elif not here.failed:
        click.echo(
            f"No plugins yet. A plugin is a Python file in {settings.home.plugins}, or an "
            "installed package."
        )
    for failed in here.failed:
        click.echo(f"deskhand: {escape_control(str(failed))}", err=True)


@plugins.command()
@click.argument("name")
@config_option
def enable(name: str, config: str | None) -> None:
    """Enable a plugin, now and at every start. It runs with your permissions: enable only plugins
    that you have read or trust.

    \b
    Example:
      deskhand plugins enable weather
    """
    settings = load_settings(config)
    wanted = edit_plugin_names(settings, add=name)
    tried = load_configured_plugins(_with_plugins(settings, wanted))
    failed = next((each for each in tried.failed if each.name == name), None)
    if failed is not None:
        fail(_describe_failure(failed, settings), USAGE)
    _write_plugins(settings, wanted)
    plugin = next(each for each in tried.loaded if each.name == name)
    click.echo(
        f"Enabled {name}: {_describe_contents(plugin)}. If Deskhand is running, it loads the "
        "plugin now."
    )


@plugins.command()
@click.argument("name")
@config_option
def disable(name: str, config: str | None) -> None:
    """Disable a plugin. Its file or package stays.

    \b
    Example:
      deskhand plugins disable weather
    """
    settings = load_settings(config)
    if name not in settings.config.plugins:
        fail(f"{name!r} is not enabled; list plugins with: deskhand plugins list")
    _write_plugins(settings, edit_plugin_names(settings, drop=name))
    click.echo(f"Disabled {name}. If Deskhand is running, it unloads the plugin now.")


def _describe_contents(plugin: LoadedPlugins) -> str:
    pieces = [tool.spec.name for tool in plugin.tools]
    pieces += ["a prompt"] if plugin.prompt else []
    pieces += [f"{len(plugin.hooks)} hook{'s' * (len(plugin.hooks) > 1)}"] if plugin.hooks else []
    return ", ".join(pieces) or "nothing"


def _describe_failure(failed: FailedPlugin, settings: Settings) -> str:
    there = ", ".join(list_plugins(settings.home)) or "none"
    return (
        f"{failed.name!r} is not enabled: {failed.place}: {failed.why}. Available plugins: {there}"
    )


def _with_plugins(settings: Settings, names: Sequence[str]) -> Settings:
    return replace(settings, config=replace(settings.config, plugins=tuple(names)))


def _write_plugins(settings: Settings, names: Sequence[str]) -> None:
    try:
        text = read_text(settings.file) if settings.file.exists() else ""
        write_private_file(settings.file, set_key(text, ("plugins",), list(names)))
    except DeskhandError as error:
        fail(str(error), USAGE)
