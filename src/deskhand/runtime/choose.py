"""Writes the choice of a model into the configuration, leaving every other line of it as it is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from ..types.errors import ConfigError

_KEY = re.compile(r"^(?P<indent> *)(?P<key>[\w-]+):(?P<rest>.*)$")


def choose_model(file: Path, model: str) -> None:
    """Set `defaults.models` in the file to this one model; the file is made if it is missing. Raises ConfigError with
    the lines to write by hand where they cannot be changed without touching others."""
    text = file.read_text() if file.exists() else ""
    changed = with_model(text, model)
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(file.name + ".new")
    new.write_text(changed)
    if file.exists():
        new.chmod(file.stat().st_mode & 0o777)
    new.replace(file)


def with_model(text: str, model: str) -> str:
    """`text`, a YAML document, with `defaults.models` set; comments and order stay. Raises ConfigError."""
    try:
        before: Any = yaml.safe_load(text) or {}
        changed = _edited(text, model)
        after: Any = yaml.safe_load(changed)
    except yaml.YAMLError as error:
        raise ConfigError(f"the configuration is not valid YAML: {' '.join(str(error).split())}") from error
    wanted = dict(before) if isinstance(before, dict) else {}
    wanted["defaults"] = {**(wanted.get("defaults") or {}), "models": [model]}
    if after != wanted or changed.count("\ndefaults") + changed.startswith("defaults") != 1:
        raise ConfigError(f"this configuration has a form that is only changed by hand: set `models: [{model}]` there")
    return changed


def _edited(text: str, model: str) -> str:
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if re.match(r"defaults:\s*(#.*)?$", line)), -1)
    if start < 0:
        return "\n".join([*lines, "defaults:", f"  models: [{model}]", ""])
    end = start + 1
    while end < len(lines) and (not lines[end].strip() or lines[end][0] in " #"):
        end += 1
    inside = [(i, found) for i in range(start + 1, end) if (found := _KEY.match(lines[i]))]
    indent = inside[0][1]["indent"] if inside else "  "
    for i, found in inside:
        if found["key"] == "models" and found["indent"] == indent:
            comment = re.search(r"\s+#.*$", found["rest"])
            stop = i + 1
            while stop < end and _continues(lines[stop], indent):
                stop += 1
            return "\n".join(
                [*lines[:i], f"{indent}models: [{model}]{comment[0] if comment else ''}", *lines[stop:], ""]
            )
    return "\n".join([*lines[: start + 1], f"{indent}models: [{model}]", *lines[start + 1 :], ""])


def _continues(line: str, indent: str) -> bool:
    """Whether a line belongs to the value of the key before it: deeper, or an item of a list."""
    return line.startswith((f"{indent} ", f"{indent}- ")) and not line.strip().startswith("#")
