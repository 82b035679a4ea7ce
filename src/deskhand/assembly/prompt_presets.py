"""Prompts to choose from: `prompts/NAME/PROMPT.md` in the home, or one that comes with Deskhand."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from ..skills.skill import parse_front_matter, split_front_matter
from ..types.errors import ConfigError
from .file_cache import Texts

FILE_NAME = "PROMPT.md"
BUNDLED = Path(__file__).parent / "prompts"
_NAME = re.compile(r"[A-Za-z0-9][\w-]{0,63}")


class Preset(msgspec.Struct, frozen=True):
    """A preset that can be chosen. `source` is `bundled` or `home`."""

    name: str
    description: str
    source: str


def list_presets(folder: Path) -> list[Preset]:
    """The presets in `folder` and the bundled ones, by name. One in `folder` replaces a bundled one
    with its name."""
    found = {}
    for source, place in (("bundled", BUNDLED), ("home", folder)):
        for file in sorted(place.glob(f"*/{FILE_NAME}")):
            if file.is_file() and _NAME.fullmatch(file.parent.name):
                front, _ = parse_front_matter(file.read_text(errors="replace"))
                found[file.parent.name] = Preset(
                    file.parent.name, front.get("description", ""), source
                )
    return [found[name] for name in sorted(found)]


class Body:
    """The text of a preset, as it is now. Raises ConfigError when there is no preset with that
    name."""

    def __init__(self, folder: Path, name: str, workspace: Path) -> None:
        names = [preset.name for preset in list_presets(folder)] if name else []
        if name and name not in names:
            wanted = f"choose one of: {', '.join(names)}, or write {folder}/{name}/{FILE_NAME}"
            raise ConfigError(f"there is no preset {name!r}; {wanted}")
        self._texts = Texts(folder, links=True)
        self._file = f"{name}/{FILE_NAME}" if name else ""
        self._bundled, self._workspace = Texts(BUNDLED, links=True)(self._file), str(workspace)

    def __call__(self) -> str:
        """The text without its front matter. `{workspace}` is replaced by the folder of the
        agent."""
        text = self._texts(self._file) or self._bundled if self._file else ""
        return split_front_matter(text)[1].strip().replace("{workspace}", self._workspace)
