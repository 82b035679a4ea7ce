"""The tools that begin and end plan mode. The policy sees to it that a plan ends it only with a
person's yes."""

from __future__ import annotations

from ..types.errors import ToolError
from ..types.labels import LOCAL
from ..types.messages import Text
from ..types.options import SessionOptions
from .base import Done
from .define import tool

MAX_PLAN_CHARS = 15_000
"""More than this nobody reads before they say yes."""


@tool
async def enter_plan_mode() -> Done:
    """Begin to plan, before something large or risky: from here on you only look, until a person
    approved the plan."""
    said = "Plan mode is on. Look at what you need, then show the plan with exit_plan_mode."
    return Done((Text(said, LOCAL),), options=SessionOptions(plan_mode=True))


@tool
async def exit_plan_mode(plan: str) -> Done:
    """Show the plan to the person. With their yes plan mode ends, and you carry it out.

    plan: what you will do, step by step, in Markdown
    """
    if not plan.strip():
        raise ToolError("the plan is empty: say what you will do")
    if len(plan) > MAX_PLAN_CHARS:
        raise ToolError(f"the plan has {len(plan):,} characters; the maximum is {MAX_PLAN_CHARS:,}")
    return Done(
        (Text("The plan is approved. Carry it out.", LOCAL),),
        options=SessionOptions(plan_mode=False),
    )


TOOLS = (enter_plan_mode, exit_plan_mode)
