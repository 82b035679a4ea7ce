"""Folders of skills, as commands change them."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from ..config.clock import SystemClock
from ..config.config import Settings
from ..skills.skill import Skill, SkillSource
from .run import USAGE, fail

CHANGED_FOLDER = ".changed"
"""Where changed skills are put, beside them: no skill is looked for there."""


def move_away(settings: Settings, source: SkillSource, skill: Skill) -> str:
    """Move it to where no skill is looked for. Returns the new place."""
    if skill.root != source.root:
        fail(f"{skill.name} is a link to {skill.folder}: remove the link from {source.root}", USAGE)
    when = datetime.fromtimestamp(SystemClock().now(), ZoneInfo(settings.config.timezone)).strftime(
        "%Y%m%d-%H%M%S"
    )
    folder = source.root / source.inner / CHANGED_FOLDER
    try:
        folder.mkdir(exist_ok=True, mode=0o700)
        names = (
            f"{skill.name}-{when}",
            *(f"{skill.name}-{when}-{number}" for number in range(2, 1000)),
        )
        place = next(folder / each for each in names if not (folder / each).exists())
        skill.folder.rename(place)
    except OSError as error:
        fail(f"cannot move {skill.folder}: {error.strerror}")
    return str(place)
