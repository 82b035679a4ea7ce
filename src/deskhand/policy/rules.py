"""Who may do what, as pure rules: a call and what has been read go in, a verdict with its reason comes out."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Literal, get_args

import msgspec

from ..types.effects import Effect
from ..types.errors import ConfigError
from ..types.identity import Principal
from ..types.labels import Label
from .gate import Given, objection

Verdict = Literal["allow", "ask", "deny"]


class Rule(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One line of the policy. Each field is a pattern (`*` and `?`); `who` is a principal's id or `role:NAME`.
    `because` is what people are told, in place of the rule itself."""

    verdict: Verdict
    agent: str = "*"
    tool: str = "*"
    effect: str = "*"
    who: str = "*"
    because: str = ""


class Case(msgspec.Struct, frozen=True):
    """What is to be judged. `context` is the lowest label of everything that the model has read, `arguments` the call's
    JSON, `said` what people wrote in this turn, `known` the words whose addresses the model did not put together.
    `strict`: a person is to be asked before every tool but the safe ones; `planning`: nothing is to be changed yet.
    `channel` is where the conversation takes place, in a `group` or not. `host` is where the call goes, if that does
    not stand in its arguments."""

    agent: str
    tool: str
    effect: Effect
    principal: Principal
    context: Label
    arguments: bytes = b""
    said: str = ""
    strict: bool = False
    known: tuple[Given, ...] = ()
    channel: str = ""
    group: bool = False
    planning: bool = False
    host: str = ""


class Decision(msgspec.Struct, frozen=True):
    """The verdict, and the sentence that a person can be told."""

    verdict: Verdict
    reason: str


FREE: frozenset[Effect] = frozenset({"none", "local_write", "send_owner", "fetch"})
"""Effects that need nobody's yes by default: they stay on this machine, or with the person who asked."""

SAFE = frozenset(
    {
        *(
            "think",
            "read_file",
            "list_skills",
            "read_skill",
            "ask_user",
            "compact",
            "enter_plan_mode",
            "exit_plan_mode",
        ),
        *("todo_list", "task_list", "task_get", "check_background", "read_inbox", "list_teammates", "check_protocol"),
    }
)
"""Tools that only look, think or ask: they run also where a conversation asks before everything."""


def looks(effect: Effect) -> bool:
    """Whether a tool of this effect only looks: it may be used while a plan is made."""
    return effect in ("none", "fetch")


def check_rules(rules: Sequence[Rule]) -> None:
    """Raises ConfigError for a rule that can never hold: who wrote it believes in it."""
    for number, rule in enumerate(rules, 1):
        if not any(fnmatchcase(effect, rule.effect) for effect in get_args(Effect)):
            names = ", ".join(get_args(Effect))
            raise ConfigError(f"rule {number} of the policy: no effect is called {rule.effect!r}; there are: {names}")


def decide(rules: Sequence[Rule], case: Case) -> Decision:
    """The first matching rule wins, but no rule lets untrusted content act outward without a person.

    Without a match, effects that stay within the workspace and the conversation are free, and all else is asked.
    """
    decision = _by_rule(rules, case)
    if decision.verdict == "deny":
        return decision
    if why := objection(case.effect, case.arguments, case.context, case.known):
        if case.context.readers is not None and "owner" not in case.principal.roles:
            return Decision("deny", why)  # only the owner could allow it, and they did not ask for it
        return Decision("ask", why)
    if decision.verdict == "allow" and case.strict and case.tool not in SAFE:
        return Decision("ask", "this conversation asks before every tool; /approval off ends that")
    return decision


def _by_rule(rules: Sequence[Rule], case: Case) -> Decision:
    names = (case.principal.id, *(f"role:{role}" for role in case.principal.roles))
    for number, rule in enumerate(rules, 1):
        if (
            fnmatchcase(case.agent, rule.agent)
            and fnmatchcase(case.tool, rule.tool)
            and fnmatchcase(case.effect, rule.effect)
            and any(fnmatchcase(name, rule.who) for name in names)
        ):
            told = rule.because or f"rule {number}: {rule.verdict} {rule.tool} ({rule.effect})"
            return Decision(rule.verdict, told)
    if case.effect in FREE:
        return Decision("allow", f"{case.tool} stays within the workspace and this conversation")
    return Decision("ask", f"{case.tool} has the effect {case.effect!r}, and no rule allows it")
