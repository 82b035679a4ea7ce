"""Plan mode: the agent only looks and makes a plan until a person approves it."""

from __future__ import annotations

from ..types.marked_texts import mark_text
from .checks import AgentPolicy
from .rules import Case, Decision, is_read_only

ENTER_PLAN_MODE = "enter_plan_mode"
EXIT_PLAN_MODE = "exit_plan_mode"


def plan_approval(case: Case, policy: AgentPolicy) -> Decision | None:
    """Ask a person to approve the plan that the agent shows."""
    if case.tool != EXIT_PLAN_MODE or not case.planning:
        return None
    return Decision(
        "ask",
        mark_text(
            "this is the plan; if you approve it, plan mode ends and the plan is carried out"
        ),
    )


def plan_mode(case: Case, policy: AgentPolicy) -> Decision | None:
    """Deny everything but reading while a plan is made, and the tools of plan mode at the wrong
    time."""
    if case.tool == EXIT_PLAN_MODE:
        if case.planning:
            return None
        return Decision(
            "deny", "plan mode is not on, so there is no plan to approve: do what was asked"
        )
    if not case.planning:
        return None
    if case.tool == ENTER_PLAN_MODE:
        return Decision(
            "deny",
            "plan mode is on already: look at what you need, then show the plan with "
            f"{EXIT_PLAN_MODE}",
        )
    if is_read_only(case.effect):
        return None
    return Decision(
        "deny",
        f"plan mode is on, and {case.tool} does more than look: show the plan with "
        f"{EXIT_PLAN_MODE} first",
    )
