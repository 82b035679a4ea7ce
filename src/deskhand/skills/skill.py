"""Finds skills: folders with a SKILL.md, by the public specification at agentskills.io.

Only name and description are in the prompt; the body is read when the skill is used. Nothing is cached but by the
file's time, so that a skill is there as soon as its file is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
import yaml

FILE_NAME = "SKILL.md"
FILE_BYTES = 256 * 1024
DESCRIPTION_CHARS = 1024
_FRONT = re.compile(r"\A---\s*\n(.*?)\n---\s*(?:\n|\Z)", re.DOTALL)


class Skill(msgspec.Struct, frozen=True):
    """A skill that was found. `source` says where: bundled, shared or agent; a later source hides an earlier one of the
    same name. `problem` is a sentence when the file is not quite as the specification wants it."""

    name: str
    description: str
    folder: Path
    source: str
    problem: str = ""


def find_skills(sources: Sequence[tuple[str, Path]]) -> dict[str, Skill]:
    """The skills in these (source, folder), by name in order. A file that cannot be read is left out."""
    found: dict[str, Skill] = {}
    for source, folder in sources:
        if not folder.is_dir():
            continue
        for path in sorted(folder.iterdir()):
            skill = read_skill_file(path / FILE_NAME, source)
            if skill is not None:
                found[skill.name] = skill
    return dict(sorted(found.items()))


class Skills:
    """The skills in some folders, looked at again only when a folder or a SKILL.md has changed."""

    def __init__(self, sources: Sequence[tuple[str, Path]]) -> None:
        self._sources = [(source, folder, str(folder)) for source, folder in sources]
        self._seen: dict[str, int] = {}
        self._found: dict[str, Skill] = {}

    def __call__(self) -> dict[str, Skill]:
        """The skills now, by name in order."""
        if not self._seen or any(_changed_at(path) != at for path, at in self._seen.items()):
            folders = [folder for _, folder, _ in self._sources if folder.is_dir()]
            inner = [path for folder in folders for path in folder.iterdir()]
            watched = [*(path for *_, path in self._sources), *map(str, inner), *(str(p / FILE_NAME) for p in inner)]
            self._seen = {path: _changed_at(path) for path in watched}
            self._found = find_skills([(source, folder) for source, folder, _ in self._sources])
        return self._found


def _changed_at(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 -- before every model call, and a third of the cost
    except OSError:
        return 0


def read_skill_file(path: Path, source: str) -> Skill | None:
    """The skill of a SKILL.md; lenient: without a name it is called like its folder."""
    try:
        with path.open(errors="replace") as file:
            text = file.read(FILE_BYTES)
    except OSError:
        return None
    front, problem = _front_matter(text)
    name = str(front.get("name") or path.parent.name)
    description = " ".join(str(front.get("description") or "").split())[:DESCRIPTION_CHARS]
    if name != path.parent.name:
        problem = problem or f"its name {name!r} is not that of its folder"
    if not description:
        problem = problem or "it has no description"
    return Skill(name, description, path.parent, source, problem)


def body(skill: Skill) -> str:
    """The instructions. Raises OSError when the file is gone."""
    with (skill.folder / FILE_NAME).open(errors="replace") as file:
        text = file.read(FILE_BYTES)
    return _FRONT.sub("", text, count=1).strip()


def _front_matter(text: str) -> tuple[dict[str, object], str]:
    match = _FRONT.match(text)
    if match is None:
        return {}, "it has no front matter"
    try:
        front = yaml.safe_load(match[1])
    except yaml.YAMLError:
        lines = [line.partition(":") for line in match[1].splitlines() if ":" in line]
        return {key.strip(): value.strip() for key, _, value in lines}, "its front matter is not valid YAML"
    return (front, "") if isinstance(front, dict) else ({}, "its front matter holds no keys")


def index(skills: dict[str, Skill]) -> str:
    """The lines for the prompt; '' without any skill."""
    if not skills:
        return ""
    lines = [f"- {skill.name}: {skill.description}" for skill in skills.values()]
    return "# Skills\nBefore you do something that one of these is for, read it with read_skill.\n" + "\n".join(lines)
