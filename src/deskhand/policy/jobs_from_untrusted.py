"""Jobs run when nobody is there, so content from outside may not create or change one by itself."""

from __future__ import annotations

from ..types.marked_texts import mark_text
from .checks import AgentPolicy
from .information_flow import format_sources
from .rules import Case, Decision

JOB_TOOLS = frozenset({"manage_job", "cron"})


def jobs_from_outside(case: Case, policy: AgentPolicy) -> Decision | None:
    """Ask before a conversation that has read untrusted content changes a job. The job would run
    when the conversation is over, without its label."""
    if case.tool not in JOB_TOOLS or case.effect == "none":
        return None
    if case.context.integrity != "untrusted":
        return None
    return Decision(
        "ask",
        mark_text(
            "a job continues after this conversation, and this conversation has read {sources_text}"
        ).format(sources_text=format_sources(case.context)),
    )
