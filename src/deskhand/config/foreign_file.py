"""Turns the configuration of another system into ours, as a file that a person can read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import yaml

from ..types.private_files import write_private_file
from . import keys
from .config import parse_config, translate_config
from .parse import read_data, read_env_file
from .yaml_edit import dump_yaml


class ImportedSettings(msgspec.Struct, frozen=True):
    """The text of our file, what was not understood, and secrets for `.env`."""

    text: str
    left: tuple[str, ...]
    secrets: dict[str, str]


def read_foreign_settings(path: Path) -> ImportedSettings:
    """Read the configuration of another system. Raises ConfigError."""
    is_env = path.suffix == ".env" or path.name == ".env"
    data = dict(read_env_file(path)) if is_env else read_data(path)
    found = translate_config(data, path)
    config: dict[str, Any] = found.config
    keys.normalize(config)
    checked = msgspec.to_builtins(parse_config(config, path))
    text = f"# From {path.name}.\n{dump_yaml(checked)}"

    left = found.translation.left
    if left:
        text += "\n# Not used here yet, kept as it stood:\n"
    for key, value in left:
        text += _comment_out(key, value)
    return ImportedSettings(text, tuple(key for key, _ in left), found.secrets)


def _comment_out(key: str, value: Any) -> str:
    text = str(yaml.safe_dump({key: value}, allow_unicode=True, width=10_000))
    return "".join(f"#   {line}\n" for line in text.splitlines())


def add_secrets(path: Path, secrets: dict[str, str]) -> list[str]:
    """Append those that the file does not have yet. Returns the names that were added."""
    try:
        known = read_env_file(path)
        text = path.read_text("utf-8")
    except FileNotFoundError:
        known = {}
        text = ""
    added = [name for name in secrets if name not in known]
    if not added:
        return []

    if text and not text.endswith("\n"):
        text += "\n"
    text += "".join(f"{name}={_quote(secrets[name])}\n" for name in added)
    write_private_file(path, text)
    return added


def _quote(value: str) -> str:
    if "'" in value:
        return value
    needs_quotes = not set(value).isdisjoint(' #"')
    return f"'{value}'" if needs_quotes else value
