"""What an agent is told of the other agents."""

from __future__ import annotations

from pathlib import Path

from ..config.config import Settings
from ..skills.skill import FRONT_CHARS, parse_front_matter
from ..tools.documents.invisible_characters import escape_invisible

MAX_AGENTS = 30
DESCRIPTION_CHARS = 200


def render_agents(settings: Settings, name: str) -> str:
    """The section of the prompt on the other agents, which may be given tasks: each with the
    description in the front matter of its AGENT.md. '' where there are none."""
    if not settings.config.subagents.depth:
        return ""
    others = [other for other in settings.agents if other != name][:MAX_AGENTS]
    lines = []
    for other in others:
        about = _read_description(settings.home.agent(other) / "AGENT.md")
        lines.append(f"- {other}{': ' if about else ''}{about}")
    return "\n".join(["# Agents", "spawn_agent gives a task to:", *lines]) if lines else ""


def _read_description(path: Path) -> str:
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            front, _ = parse_front_matter(file.read(FRONT_CHARS))
    except OSError:
        return ""
    return escape_invisible(" ".join(front.get("description", "").split()))[:DESCRIPTION_CHARS]
