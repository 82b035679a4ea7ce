"""The tool with which a model makes room in its own context."""

from __future__ import annotations

from ..types.labels import LOCAL
from ..types.messages import Text
from ..types.options import FOCUS_ALL, FOCUS_CHARS, SessionOptions
from .base import Done
from .define import tool


@tool(hint="sum up")
async def compact(focus: str = "") -> Done:
    """Sum up what was said before and take it out of view, when much of it does not matter any
    more.

    focus: what the summary must keep above all else
    """
    wanted = " ".join(focus.split())[:FOCUS_CHARS] or FOCUS_ALL
    said = "What was said before this request is summed up before you go on."
    return Done((Text(said, LOCAL),), options=SessionOptions(compact=wanted))


TOOLS = (compact,)
