"""Which tools this Deskhand has: one place that decides."""

from __future__ import annotations

from ..tools.base import Tools
from .config import Settings


def toolbox(settings: Settings) -> Tools:
    """The tools by name, as the settings want them. There are none yet."""
    return {}
