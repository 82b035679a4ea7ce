"""The checks that a call passes before it runs: what each one allows, asks about or denies."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from ..types.effects import OUTWARD
from ..types.marked_texts import mark_text
from .commands import find_doubt
from .information_flow import find_objection
from .rules import COMMAND_TOOLS, Case, Decision, Rule, Verdict, apply_rules

STRICTNESS: dict[Verdict, int] = {"allow": 0, "ask": 1, "deny": 2}

SAFE_TOOLS = frozenset(
    {
        "think",
        "read_file",
        "list_skills",
        "read_skill",
        "ask_user",
        "compact",
        "enter_plan_mode",
        "exit_plan_mode",
        "tool_search",
        "survey_files",
        "rehearse_program",
        "list_changes",
        "todo_list",
        "task_list",
        "task_get",
        "check_background",
        "read_inbox",
        "list_teammates",
        "check_protocol",
    }
)
"""Tools that only look, think or ask. They run without a question even in a conversation that asks
before every tool."""


class AgentPolicy(msgspec.Struct, frozen=True):
    """What the configuration of one agent says about its calls.

    `rules` apply from the top. `commands` are the programs that run without a question; empty means
    any. `guarded_workspace` is the agent's folder if it may run on a small model, whose slips are
    asked about; otherwise None.
    """

    rules: tuple[Rule, ...] = ()
    commands: tuple[str, ...] = ()
    guarded_workspace: Path | None = None


Check = Callable[[Case, AgentPolicy], Decision | None]
"""Looks at one call; None if it has nothing to say about it."""
STRICT_REASON = mark_text("this conversation asks before every tool; /approval off ends that")


class CheckResult(msgspec.Struct, frozen=True):
    """What one check said about a call: the name of the check, and its decision."""

    check: str
    decision: Decision


def strictest(results: Iterable[CheckResult]) -> CheckResult:
    """The strictest of these results, which must not be empty; the first of equally strict ones."""
    return max(results, key=lambda result: STRICTNESS[result.decision.verdict])


def configured_rules(case: Case, policy: AgentPolicy) -> Decision:
    """The first rule that matches decides, or the default where none does."""
    return apply_rules(policy.rules, case)


def information_flow(case: Case, policy: AgentPolicy) -> Decision | None:
    """Ask before untrusted content or private data acts outward or steers the agent. No rule allows
    it."""
    why = _find_objection(case)
    return Decision("ask", why) if why else None


def private_data(case: Case, policy: AgentPolicy) -> Decision | None:
    """Deny sending private data outward unless the owner asked for it: only the owner could say
    yes."""
    if case.context.readers is None or case.effect not in OUTWARD or case.by_owner:
        return None
    why = _find_objection(case)
    return Decision("deny", why) if why else None


def _find_objection(case: Case) -> str:
    return find_objection(
        case.effect, case.arguments, case.context, known=case.known, owner=case.by_owner
    )


def approval_mode(case: Case, policy: AgentPolicy) -> Decision | None:
    """Ask before every tool but the safe ones, in a conversation with `/approval on`."""
    if not case.strict or case.tool in SAFE_TOOLS:
        return None
    return Decision("ask", STRICT_REASON)


def commands_need_names(case: Case, policy: AgentPolicy) -> Decision | None:
    """Ask before a command runs a program that is not listed in the agent's `commands`."""
    if not policy.commands or case.tool not in COMMAND_TOOLS:
        return None
    why = find_doubt(case.command or "", policy.commands, strict=case.effect != "local_write")
    return Decision("ask", why) if why else None
