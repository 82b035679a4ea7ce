"""Turns the configuration of another system into ours, as a file that a person can read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import yaml

from . import keys
from .config import parse_config, translate_config
from .parse import read_data, read_env_file
from .private_files import write_private_file
from .yaml_edit import dump_yaml


class ImportedSettings(msgspec.Struct, frozen=True):
    """The text of our file, what was not understood, and secrets for `.env`."""

    text: str
    left: tuple[str, ...]
    secrets: dict[str, str]


def read_foreign_settings(path: Path) -> ImportedSettings:
    """Read the configuration of another system. Raises ConfigError."""
    is_env = path.suffix == ".env" or path.name == ".env"
    found = translate_config(dict(read_env_file(path)) if is_env else read_data(path), path)
    config: dict[str, Any] = found.config
    keys.normalize(config)
    checked = msgspec.to_builtins(parse_config(config, path))
    text = f"# From {path.name}.\n{dump_yaml(checked)}"
    if found.translation.left:
        text += "\n# Not used here yet, kept as it stood:\n"
        text += "".join(
            f"#   {line}\n"
            for key, value in found.translation.left
            for line in _dump_lines(key, value)
        )
    return ImportedSettings(text, tuple(key for key, _ in found.translation.left), found.secrets)


def _dump_lines(key: str, value: Any) -> list[str]:
    return str(yaml.safe_dump({key: value}, allow_unicode=True, width=10_000)).splitlines()


def add_secrets(path: Path, secrets: dict[str, str]) -> list[str]:
    """Append those that the file does not have yet. Returns the names that were added."""
    try:
        known, text = read_env_file(path), path.read_text("utf-8")
    except FileNotFoundError:
        known = {}
        text = ""
    added = [name for name in secrets if name not in known]
    if added:
        text = text + ("\n" if text and not text.endswith("\n") else "")
        write_private_file(
            path, text + "".join(f"{name}={_quote(secrets[name])}\n" for name in added)
        )
    return added


def _quote(value: str) -> str:
    return (
        f"'{value}'"
        if any(character in value for character in " #\"'") and "'" not in value
        else value
    )
