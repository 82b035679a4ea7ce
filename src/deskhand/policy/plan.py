"""Plan mode: the agent looks and makes a plan, and does nothing else until a person has said yes to
it."""

from __future__ import annotations

from .rules import Case, Decision, is_read_only

ENTER_PLAN_MODE = "enter_plan_mode"
EXIT_PLAN_MODE = "exit_plan_mode"


def apply_plan_mode(case: Case, decision: Decision) -> Decision:
    """The decision, as plan mode leaves it. It never allows what was asked or refused."""
    if decision.verdict == "deny":
        return decision
    if case.tool == EXIT_PLAN_MODE:
        if not case.planning:
            return Decision(
                "deny", "plan mode is not on, so there is no plan to approve: do what was asked"
            )
        return Decision("ask", "this is the plan; with a yes plan mode ends, and it is carried out")
    if not case.planning:
        return decision
    if case.tool == ENTER_PLAN_MODE:
        return Decision(
            "deny",
            (
                "plan mode is on already: look at what you need, then show the plan with "
                f"{EXIT_PLAN_MODE}"
            ),
        )
    if is_read_only(case.effect):
        return decision
    return Decision(
        "deny",
        (
            f"plan mode is on, and {case.tool} does more than look: show the plan with "
            f"{EXIT_PLAN_MODE} first"
        ),
    )
