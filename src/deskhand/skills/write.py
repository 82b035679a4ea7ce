"""Writes a skill that a person hands in. Agents that may use it find it at their next step."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from ..tools.paths import Workspace
from ..types.errors import ConfigError, ToolError
from ..types.folders import make_private_folder
from ..types.messages import clean_text
from .skill import DESCRIPTION_CHARS, FILE_BYTES, FILE_NAME, NAME_CHARS

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def render_skill_file(name: str, description: str, body: str) -> bytes:
    """The SKILL.md of this skill. Raises ConfigError when it would not match the specification."""
    description = " ".join(clean_text(description).split())
    if not _NAME.fullmatch(name) or len(name) > NAME_CHARS:
        raise ConfigError(
            f"{name[:80]!r} cannot be the name of a skill: use lower case, digits and single "
            "hyphens, such as my-skill"
        )
    if not description or len(description) > DESCRIPTION_CHARS:
        raise ConfigError(
            f"a skill needs a description of at most {DESCRIPTION_CHARS} characters: when to use it"
        )
    front = yaml.safe_dump(
        {"name": name, "description": description},
        sort_keys=False,
        allow_unicode=True,
        width=10_000,
    )
    text = f"---\n{front}---\n\n{clean_text(body).strip()}\n".encode()
    if len(text) > FILE_BYTES:
        raise ConfigError(
            f"a skill has at most {FILE_BYTES // 1024} kB; put the rest into other files in its "
            "folder"
        )
    return text


def write_skill(folder: Path, name: str, description: str, body: str) -> None:
    """Write `folder/name/SKILL.md`. Raises ConfigError when it would not match the specification or
    exists already, ToolError when it cannot be written."""
    text = render_skill_file(name, description, body)
    make_private_folder(folder)
    with Workspace(str(folder)) as files:
        try:
            files.stat(f"{name}/{FILE_NAME}")
        except ToolError:
            files.write(f"{name}/{FILE_NAME}", text)
            return
    raise ConfigError(
        f"there is a skill {name!r} already; change its {FILE_NAME} in {folder / name}"
    )
