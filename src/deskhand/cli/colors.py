"""Whether what is printed has colours."""

from __future__ import annotations

from collections.abc import Mapping

from ..config.sections import ThemeName


def wants_color(environment: Mapping[str, str], theme: ThemeName) -> bool | None:
    """Whether colours are wanted whatever the output is: False where they never are, None where
    they are in a terminal. See https://no-color.org and https://force-color.org."""
    if environment.get("NO_COLOR") or theme == "none":
        return False
    if environment.get("FORCE_COLOR"):
        return True
    return False if environment.get("TERM") == "dumb" else None
