"""Loads the plugins that the configuration names. No other plugin is imported."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Collection, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import msgspec

from ..config.config import Home, Settings
from ..tools.aliases import TOOL_ALIASES
from ..tools.base import Tool
from ..tools.documents.invisible_characters import escape_invisible
from ..tools.hooks import HOOKS, Handler, HookName, PluginHooks
from ..tools.plugin import Gathered, Plugin
from ..types.errors import ConfigError
from .plugin_files import INIT, describe_error, run_file

log = logging.getLogger(__name__)

ENTRY_POINTS = "deskhand.plugins"
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
PROMPT_CHARS = 20_000


class LoadedPlugins(msgspec.Struct, frozen=True):
    """A loaded plugin. `place` is its file, or the entry point of its package."""

    name: str
    place: str
    tools: tuple[Tool, ...] = ()
    prompt: str = ""
    hooks: dict[HookName, Handler] = {}
    plugin: Any = None


class FailedPlugin(msgspec.Struct, frozen=True):
    """A plugin that could not be loaded. `why` is a sentence, with the next step if there is
    one."""

    name: str
    place: str
    why: str

    def __str__(self) -> str:
        return f"the plugin {self.name!r} is not loaded: {self.place}: {self.why}"


class Plugins(msgspec.Struct, frozen=True):
    """What all plugins give together, in the order of the configuration."""

    loaded: tuple[LoadedPlugins, ...] = ()
    failed: tuple[FailedPlugin, ...] = ()

    @property
    def tools(self) -> tuple[Tool, ...]:
        return tuple(tool for plugin in self.loaded for tool in plugin.tools)

    @property
    def prompt(self) -> str:
        return "\n\n".join(f"# Plugin {p.name}\n{p.prompt}" for p in self.loaded if p.prompt)

    def hooks(self, agent: str) -> PluginHooks | None:
        """The hooks for this agent, or None when no plugin has any."""
        by_name = {name: [p.hooks[name] for p in self.loaded if name in p.hooks] for name in HOOKS}
        return PluginHooks(agent, by_name) if any(by_name.values()) else None


def load_plugins(settings: Settings, taken: Collection[str], known: Plugins) -> Plugins:
    """Load the configured plugins. One that fails is left out and says why. No plugin may have a
    tool with a name in `taken`. Plugins that are `known` are not loaded again."""
    kept = {plugin.name: plugin for plugin in known.loaded}
    for gone in kept.keys() - set(settings.config.plugins):
        _leave(kept[gone].plugin)
    loaded: list[LoadedPlugins] = []
    failed: list[FailedPlugin] = []
    names = {
        *taken,
        *TOOL_ALIASES,
    }  # a rule for `bash` is one for `shell`, so a plugin may not have a `bash` beside it
    for name in dict.fromkeys(settings.config.plugins):
        found = kept.get(name) or load_plugin(name, settings.home, names)
        if isinstance(found, FailedPlugin):
            log.warning("%s", found)
            failed.append(found)
        else:
            loaded.append(found)
            names |= {tool.spec.name for tool in found.tools}
    return Plugins(tuple(loaded), tuple(failed))


def load_plugin(name: str, home: Home, taken: Collection[str]) -> LoadedPlugins | FailedPlugin:
    """Load one plugin. Never raises, whatever its code does."""
    place = str(home.plugins)
    try:
        source = find_plugin(name, home)
        place = source.value if isinstance(source, EntryPoint) else str(source)
        made = (
            source.load()
            if isinstance(source, EntryPoint)
            else getattr(run_file(source), "plugin", None)
        )
        return _validate_plugin(name, place, made, taken)
    except ConfigError as error:
        return FailedPlugin(name, place, str(error))
    except (Exception, SystemExit) as error:
        log.exception("The plugin %r could not be loaded.", name)
        return FailedPlugin(name, place, describe_error(error, place))


def find_plugin(name: str, home: Home) -> Path | EntryPoint:
    """The file of this plugin in the home, or its installed package. Raises ConfigError."""
    if not NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} is not a valid plugin name: use letters, digits, - and _, and begin with a "
            "letter"
        )
    for file in (home.plugins / f"{name}.py", home.plugins / name / INIT):
        if os.path.lexists(file):
            return file
    for entry in entry_points(group=ENTRY_POINTS, name=name):
        return entry
    raise ConfigError(f"there is no file {name}.py, and no installed package has a plugin {name!r}")


def list_plugins(home: Home) -> dict[str, str]:
    """name -> place of every plugin that is available. None of them is imported."""
    found = {entry.name: entry.value for entry in entry_points(group=ENTRY_POINTS)}
    here = sorted(home.plugins.iterdir()) if home.plugins.is_dir() else []
    for place in here:
        name = place.stem if place.suffix == ".py" else place.name
        is_plugin = place.suffix == ".py" or (place / INIT).is_file()
        if is_plugin and NAME.fullmatch(name):
            found[name] = str(place)
    return found


def _validate_plugin(name: str, place: str, made: Any, taken: Collection[str]) -> LoadedPlugins:
    """What a plugin gives, checked as far as possible. Raises ConfigError, or what its methods
    raise."""
    plugin = made() if isinstance(made, type) else made
    if not isinstance(plugin, Plugin):
        raise ConfigError("it has no variable `plugin` that is a deskhand.tools.plugin.Plugin")
    gathered = Gathered()
    plugin.register_tools(gathered)
    plugin.register_hooks(gathered)
    plugin.attach_prompt(gathered)
    tools = tuple(gathered.tools)
    names = [tool.spec.name for tool in tools]
    if clash := [each for each in names if each in taken or names.count(each) > 1]:
        raise ConfigError(f"there is already a tool {clash[0]!r}; give it another name")
    hooks: dict[HookName, Handler] = {
        name: h for name, h in gathered.hooks.items() if name in HOOKS
    }
    if unknown := [each for each in gathered.hooks if each not in HOOKS]:
        raise ConfigError(f"there is no hook {unknown[0]!r}; there are: {', '.join(HOOKS)}")
    said_right = all(isinstance(each, str) for each in gathered.prompts)
    if not said_right or not all(map(callable, hooks.values())):
        raise ConfigError("get_system_prompt must return text, and get_hooks async functions")
    prompt = "\n\n".join(filter(None, (each.strip() for each in gathered.prompts)))
    shown = escape_invisible(prompt)[:PROMPT_CHARS]
    return LoadedPlugins(name, place, tools, shown, hooks, plugin)


def _leave(plugin: Any) -> None:
    """Tell a plugin that it is disabled. Whatever it raises is logged."""
    try:
        plugin.unregister_tools(Gathered())
        plugin.detach_prompt(Gathered())
    except Exception:
        log.exception("A plugin that was disabled has failed.")


def edit_plugin_names(settings: Settings, add: str = "", drop: str = "") -> Sequence[str]:
    """The configured names, with one added or removed."""
    names = [name for name in dict.fromkeys(settings.config.plugins) if name != drop]
    return [*names, add] if add and add not in names else names
