"""`deskhand plugins`: what there is, and which of it is loaded."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import click
from msgspec.structs import replace

from ..assembly.plugin_files import INIT
from ..assembly.plugins import (
    NAME,
    FailedPlugin,
    LoadedPlugins,
    edit_plugin_names,
    list_plugins,
)
from ..assembly.tools import load_configured_plugins
from ..config.config import Settings
from ..config.parse import read_text
from ..config.yaml_edit import set_key
from ..types.errors import DeskhandError
from ..types.private_files import write_private_file
from .plain import escape_control, shorten_line
from .plugin_templates import make_package_files, make_plugin_file
from .run import USAGE, Group, config_option, fail, json_option, limit_option, load_settings
from .table import print_json_rows, print_table


@click.group(cls=Group)
def plugins() -> None:
    """List, make, check, enable and disable plugins.

    \b
    Examples:
      deskhand plugins list
      deskhand plugins new weather
      deskhand plugins enable weather
    """


@plugins.command("list")
@limit_option()
@json_option
@config_option
def list_(limit: int | None, as_json: bool, config: str | None) -> None:
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
    if as_json:
        print_json_rows(("plugin", "state", "gives", "where"), rows[:limit])
    elif rows:
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
@click.option("--package", is_flag=True, help="A package for pip, in the current folder.")
@config_option
def new(name: str, package: bool, config: str | None) -> None:
    """Make a plugin that works, to be changed: a file in the folder of plugins, or with --package a
    package that others can install.

    \b
    Examples:
      deskhand plugins new weather
      deskhand plugins new weather --package
    """
    settings = load_settings(config)
    if not NAME.fullmatch(name) or name in list_plugins(settings.home):
        fail(f"{name!r} is taken, or no name of letters, digits, - and _", USAGE)
    if package:
        made = [Path(f"deskhand-{name}") / inner for inner in make_package_files(name)]
        if made[0].parent.exists():
            fail(f"there is a folder {made[0].parent} already", USAGE)
        for place, text in zip(made, make_package_files(name).values(), strict=True):
            place.parent.mkdir(exist_ok=True)
            place.write_text(text, encoding="utf-8")
            click.echo(f"Made {place}")
        click.echo(f"Install it with: pip install -e {made[0].parent}")
    else:
        place = settings.home.plugins / f"{name}.py"
        write_private_file(place, make_plugin_file(name))
        click.echo(f"Made {place}")
    click.echo(f"Then: deskhand plugins check {name}, and: deskhand plugins enable {name}")


@plugins.command()
@click.argument("name")
@config_option
def check(name: str, config: str | None) -> None:
    """Load a plugin without enabling it, and show what it gives. Its code runs with your
    permissions.

    \b
    Example:
      deskhand plugins check weather
    """
    settings = load_settings(config)
    plugin = _try_plugin(settings, name)
    for tool in plugin.tools:
        parameters = ", ".join(tool.spec.parameters.get("properties", {}))
        said = shorten_line(tool.spec.description, 80)
        click.echo(
            escape_control(f"tool {tool.spec.name}({parameters}), {tool.spec.effect}: {said}")
        )
    for hook in plugin.hooks:
        click.echo(f"hook {hook}")
    if plugin.prompt:
        said = shorten_line(plugin.prompt, 60)
        click.echo(escape_control(f"prompt, {len(plugin.prompt)} characters: {said}"))
    click.echo(f"{name} can be enabled: deskhand plugins enable {name}")


@plugins.command()
@click.argument("source", type=click.Path(exists=True, path_type=Path))
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@config_option
def add(source: Path, yes: bool, config: str | None) -> None:
    """Add a plugin from a file or a folder, and enable it. It runs with your permissions: add only
    what you have read or trust.

    \b
    Example:
      deskhand plugins add ~/Downloads/weather.py
    """
    settings = load_settings(config)
    name = source.resolve().stem
    if not NAME.fullmatch(name) or (source.is_dir() and not (source / INIT).is_file()):
        fail(f"{source} is no plugin: a Python file, or a folder with {INIT}", USAGE)
    if name in list_plugins(settings.home):
        fail(f"there is a plugin {name!r} already, in {settings.home.plugins}", USAGE)
    files = sorted(source.rglob("*.py")) if source.is_dir() else [source]
    lines = sum(len(each.read_bytes().splitlines()) for each in files)
    click.echo(f"{name}: {len(files)} files, {lines} lines of Python, outside the sandbox")
    if not yes and not click.confirm("Have you read it, and is it to run?", default=False):
        fail("nothing was changed")
    place = settings.home.plugins / source.name
    for file in files:
        target = place / file.relative_to(source) if source.is_dir() else place
        write_private_file(target, file.read_text(encoding="utf-8"))
    try:
        plugin = _try_plugin(settings, name)
    except SystemExit:
        shutil.rmtree(place) if place.is_dir() else place.unlink()
        raise
    _write_plugins(settings, edit_plugin_names(settings, add=name))
    click.echo(f"Added {name}: {_describe_contents(plugin)}. A running Deskhand loads it now.")


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
    plugin = _try_plugin(settings, name)
    _write_plugins(settings, edit_plugin_names(settings, add=name))
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


def _try_plugin(settings: Settings, name: str) -> LoadedPlugins:
    """The plugin, loaded beside the others. Ends the command where it cannot be."""
    wanted = edit_plugin_names(settings, add=name)
    tried = load_configured_plugins(_with_plugins(settings, wanted))
    failed = next((each for each in tried.failed if each.name == name), None)
    if failed is not None:
        fail(_describe_failure(failed, settings), USAGE)
    return next(each for each in tried.loaded if each.name == name)


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
