"""Loads the plugins that the configuration names. No other plugin is imported."""

from __future__ import annotations

import logging
import os
import re
import stat
import sys
from collections.abc import Collection, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from ..config.config import Home, Settings
from ..tools.aliases import TOOL_ALIASES
from ..tools.base import Tool
from ..tools.documents.invisible_characters import escape_invisible
from ..tools.hooks import HOOKS, Handler, HookName, PluginHooks
from ..tools.plugin import Plugin
from ..types.errors import ConfigError

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
            else getattr(_run(source), "plugin", None)
        )
        return _validate_plugin(name, place, made, taken)
    except ConfigError as error:
        return FailedPlugin(name, place, str(error))
    except (Exception, SystemExit) as error:
        log.exception("The plugin %r could not be loaded.", name)
        return FailedPlugin(
            name, place, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        )


def find_plugin(name: str, home: Home) -> Path | EntryPoint:
    """The file of this plugin in the home, or its installed package. Raises ConfigError."""
    if not NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} is not a valid plugin name: use letters, digits, - and _, and begin with a "
            "letter"
        )
    file = home.plugins / f"{name}.py"
    if os.path.lexists(file):
        return file
    for entry in entry_points(group=ENTRY_POINTS, name=name):
        return entry
    raise ConfigError(
        f"there is no file {file.name}, and no installed package has a plugin {name!r}"
    )


def list_plugins(home: Home) -> dict[str, str]:
    """name -> place of every plugin that is available. None of them is imported."""
    found = {entry.name: entry.value for entry in entry_points(group=ENTRY_POINTS)}
    files = sorted(home.plugins.glob("*.py")) if home.plugins.is_dir() else []
    return found | {file.stem: str(file) for file in files if NAME.fullmatch(file.stem)}


def _run(file: Path) -> ModuleType:
    """Run the file as a module. It is compiled from the bytes that were checked, never from a
    cache."""
    module = ModuleType(f"deskhand_plugin_{file.stem.replace('-', '_')}")
    module.__file__ = str(file)
    source = _read(file)
    sys.modules[module.__name__] = module  # dataclasses and get_type_hints look their module up
    try:
        exec(compile(source, str(file), "exec"), module.__dict__)
    except BaseException:
        del sys.modules[module.__name__]
        raise
    return module


def _read(file: Path) -> bytes:
    """The source, unless somebody else could have written it. Raises ConfigError."""
    _check_permissions(file.parent, os.stat(file.parent))  # noqa: PTH116 -- beside fstat, the same kind of answer
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        reason = (
            "it is a link; replace it with the file itself"
            if file.is_symlink()
            else str(error.strerror)
        )
        raise ConfigError(reason) from error
    with os.fdopen(fd, "rb") as opened:
        _check_permissions(file, os.fstat(fd))
        return opened.read()


def _check_permissions(path: Path, found: os.stat_result) -> None:
    what = "the folder" if stat.S_ISDIR(found.st_mode) else "it"
    if found.st_uid != os.getuid():
        raise ConfigError(
            f"{what} belongs to another user; if you trust it, run: sudo chown $(id -u) {path}"
        )
    if found.st_mode & 0o022:
        raise ConfigError(
            f"others can write {what if what == 'it' else 'its folder'}; run: chmod go-w {path}"
        )


def _validate_plugin(name: str, place: str, made: Any, taken: Collection[str]) -> LoadedPlugins:
    """What a plugin gives, checked as far as possible. Raises ConfigError, or what its methods
    raise."""
    plugin = made() if isinstance(made, type) else made
    if not isinstance(plugin, Plugin):
        raise ConfigError("it has no variable `plugin` that is a deskhand.tools.plugin.Plugin")
    tools = tuple(plugin.get_tools())
    prompt = plugin.get_system_prompt()
    hooks = dict(plugin.get_hooks())
    names = [tool.spec.name for tool in tools]
    if clash := [each for each in names if each in taken or names.count(each) > 1]:
        raise ConfigError(f"there is already a tool {clash[0]!r}; give it another name")
    if unknown := [each for each in hooks if each not in HOOKS]:
        raise ConfigError(f"there is no hook {unknown[0]!r}; there are: {', '.join(HOOKS)}")
    if not isinstance(prompt, str) or not all(map(callable, hooks.values())):
        raise ConfigError("get_system_prompt must return text, and get_hooks async functions")
    return LoadedPlugins(name, place, tools, escape_invisible(prompt.strip())[:PROMPT_CHARS], hooks)


def edit_plugin_names(settings: Settings, add: str = "", drop: str = "") -> Sequence[str]:
    """The configured names, with one added or removed."""
    names = [name for name in dict.fromkeys(settings.config.plugins) if name != drop]
    return [*names, add] if add and add not in names else names
