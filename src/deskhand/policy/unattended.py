"""What goes on when nobody is there is not begun by words from outside."""

from __future__ import annotations

from collections.abc import Callable

from .gate import format_sources as sources_of
from .rules import Case, Decision

JOB_TOOLS = frozenset({"manage_job", "cron"})


def ask_before_jobs(judge: Callable[[Case], Decision]) -> Callable[[Case], Decision]:
    """The judge, for whom what untrusted words have touched makes no job without a person: it would
    act when this conversation is long over, and would not remember what it had read."""

    def judge_carefully(case: Case) -> Decision:
        decision = judge(case)
        if case.tool not in JOB_TOOLS or case.effect == "none" or decision.verdict != "allow":
            return decision
        if case.context.integrity == "untrusted":
            return Decision(
                "ask",
                (
                    "a job goes on when this is over, and this conversation has read "
                    f"{sources_of(case.context)}"
                ),
            )
        return decision

    return judge_carefully
