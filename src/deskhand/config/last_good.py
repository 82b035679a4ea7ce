"""Which configuration holds: the one in the file, or the last that was good. It is followed while
we run."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from ..types.errors import ConfigError
from .config import Config, Home, Settings, environment_of, find_home, read_settings

log = logging.getLogger(__name__)

GOOD_PREFIX = "good-"
Stamp = tuple[tuple[int, int, int] | None, ...]


def good_copy_path(home: Home, file: Path) -> Path:
    """Where the last good content of this file lies."""
    digest = hashlib.sha256(str(file.absolute()).encode()).hexdigest()[:8]
    return home.state / f"{GOOD_PREFIX}{digest}-{file.name}"


def read_settings_or_last_good(
    file: Path | None = None, environment: Mapping[str, str] | None = None
) -> Settings:
    """The settings as `read_settings` gives them. Where they cannot be used, the last good ones, or
    else the defaults, with the reason as `problem`. Raises ConfigError where not even the home is
    known, or a file was named that is not there."""
    try:
        return check_usable(read_settings(file, environment))
    except ConfigError as error:
        home = find_home(environment)
        problem = str(error)
        path = file or home.config
        if file is not None and not file.exists():
            raise
    for copy in (good_copy_path(home, path), Path(os.devnull)):
        try:
            return replace(check_usable(read_settings(path, environment, copy)), problem=problem)
        except ConfigError:
            continue
    env = environment_of(environment)
    return Settings(home, Config(), (), env, path, problem=problem, started_with=env)


def reread_settings(settings: Settings) -> Settings:
    """The settings as the same files have them now, with the model that was chosen on the command
    line. Raises ConfigError."""
    is_named = settings.file != settings.home.config or settings.file.exists()
    named = settings.file if is_named else None
    found = check_usable(read_settings(named, settings.started_with or settings.environment))
    return found.with_model(settings.model) if settings.model else found


def check_usable(settings: Settings) -> Settings:
    """The settings. Raises ConfigError for what only shows when they are used."""
    _ = settings.skills_folder
    return settings


def save_good_copy(settings: Settings) -> None:
    """Keep what the file says now, for the day on which it is broken; readable by its owner alone,
    as it may hold secrets. Raises OSError, ConfigError for what is not good."""
    copy = good_copy_path(settings.home, settings.file)
    file = settings.file
    part = copy.with_name(f".{copy.name}.part{file.suffix}")
    if _read_content(copy) == _read_content(file):
        return
    settings.home.make_folder(settings.home.state)
    part.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            out.write(_read_content(file) or b"")
        check_usable(read_settings(file, settings.started_with or settings.environment, part))
        part.replace(copy)
    finally:
        part.unlink(missing_ok=True)


def _read_content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None


def stamp_settings(settings: Settings) -> Stamp:
    """Another one after every change of a file that the configuration is read from."""
    named = settings.config.env_file
    files = [settings.file, settings.home.env]
    if named:
        files.append(settings.file.parent / Path(named).expanduser())
    return tuple(map(_stamp_file, files))


def _stamp_file(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


def keys_needing_restart(began: Config, now: Config) -> tuple[str, ...]:
    """The keys that hold only from the next start on, and were changed since this one."""
    began, now = _all_on(began), _all_on(now)
    return tuple(
        name for name in ("web", "channels", "compat") if getattr(began, name) != getattr(now, name)
    )


def _all_on(config: Config) -> Config:
    """The configuration with every channel switched on: they are switched while it runs."""
    channels = {name: replace(each, enabled=True) for name, each in config.channels.items()}
    return replace(config, channels=channels)


def changed_keys(before: Config, after: Config) -> tuple[str, ...]:
    """The keys at the top that say something else now."""
    return tuple(
        name for name in Config.__struct_fields__ if getattr(before, name) != getattr(after, name)
    )
