"""The line at the foot of the chat, as much of it as there is room for."""

from __future__ import annotations

from collections.abc import Mapping

from .plain import cell_width, shorten_line

SHOWN = ("model", "effort", "context", "cost", "mode", "elsewhere")
"""The facts in the order in which they stand."""
DROPPED_FIRST = ("elsewhere", "effort", "cost", "mode", "context", "model")
"""The facts in the order in which they are left out where the line is too short."""


def render_status(state: str, facts: Mapping[str, str], width: int) -> str:
    """`state`, then the facts that fit beside it."""
    shown = {name: facts[name] for name in SHOWN if facts.get(name)}
    for name in ("", *DROPPED_FIRST):
        shown.pop(name, None)
        line = "  ".join(filter(None, (state, " · ".join(shown.values()))))
        if cell_width(line) <= width:
            return line
    return shorten_line(state, width)


def format_duration(seconds: float) -> str:
    """So long, as people say it: `8 s`, `2 min 5 s`, `1 h 3 min`."""
    whole = int(seconds)
    minutes, rest = divmod(whole, 60)
    if whole < 60:
        return f"{whole} s"
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
