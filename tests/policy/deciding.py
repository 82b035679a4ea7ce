"""The judge of an agent with nothing but rules."""

from __future__ import annotations

from collections.abc import Sequence

from deskhand.assembly.judge import judge
from deskhand.policy.checks import AgentPolicy
from deskhand.policy.rules import Case, Decision, Rule


def decide(rules: Sequence[Rule], case: Case) -> Decision:
    return judge(case, AgentPolicy(tuple(rules)))
