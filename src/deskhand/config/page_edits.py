"""Changes one key of the configuration from the page: checked before it is written, and taken up at
once."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import yaml

from ..types.errors import ConfigError
from ..types.private_files import write_private_file
from . import keys
from .config import Config, Settings, parse_config, translate_config
from .parse import read_text
from .yaml_edit import set_key, unset_key

LOCKED_KEYS = (
    "web.*",
    "plugins",
    "store",
    "backup.*",
    "env_file",
    "skills_folder",
    "compat",
    "policy",
    "roles.*",
    "providers.*",
    "channels.*",
    "mcp.*",
    "remote_agents.*",
    "agent_server.*",
    "desktop.*",
    "speech.voice",
    "*.desktop",
    "*.workspace",
    "*.sandbox",
    "*.commands",
)
"""What opens this machine, or decides who may: whoever sits at it sets that, and not whoever has a
browser's cookie."""


def list_writable_keys() -> Iterator[str]:
    """The keys that can be set here, `NAME` standing for a name."""
    for key in keys.iter_paths(Config):
        if not any(fnmatchcase(key, locked) for locked in LOCKED_KEYS):
            yield key


def edit_config_text(settings: Settings, key: str, value: Any) -> str:
    """The text of the configuration with this key set; None goes back to the default. Raises
    ConfigError."""
    key = keys.current_path(key)
    if not keys.exists(key, Config):
        near = keys.find_similar(key, Config)
        hint = f"; did you mean {near!r}?" if near else ""
        raise ConfigError(f"there is no key {key!r}{hint}")
    if not any(_matches(key, each) for each in list_writable_keys()):
        raise ConfigError(
            f"{key!r} is not set from here: use `deskhand config set {key} …` on the machine itself"
        )
    text = _read_config_text(settings)
    path = key.split(".")
    try:
        new = set_key(text, path, value) if value is not None else unset_key(text, path, Config)
    except KeyError:
        return text
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{str(settings.file)!r} cannot be changed: {error}") from error
    found = translate_config(yaml.safe_load(new) or {}, settings.file).config
    keys.normalize(found)
    parse_config(found, settings.file)
    return new


def write_config_text(settings: Settings, text: str) -> str:
    """Write it. Returns what stood there."""
    before = _read_config_text(settings)
    write_private_file(settings.file, text)
    return before


def _matches(key: str, pattern: str) -> bool:
    given = key.split(".")
    wanted = pattern.split(".")
    if len(given) != len(wanted):
        return False
    pairs = zip(given, wanted, strict=True)
    return all(allowed in (name, "NAME") for name, allowed in pairs)


def _read_config_text(settings: Settings) -> str:
    try:
        return read_text(settings.file)
    except FileNotFoundError:
        return ""
