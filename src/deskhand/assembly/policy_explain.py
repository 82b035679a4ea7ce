"""What the policy says about a call that nobody makes: why it would be allowed, and whether it is
as expected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from ..config.config import Settings, workspace_of
from ..policy.approval import CallSetting
from ..policy.checks import CheckResult
from ..policy.consent import find_grant
from ..policy.explain import ExplainedRules, explain_rules
from ..policy.rules import Case, Decision, Rule, Verdict
from ..store.base import Store
from ..tools.aliases import TOOL_ALIASES
from ..tools.base import Tool, Tools, get_effect_function
from ..types.errors import ConfigError
from ..types.identity import Address, Principal
from ..types.labels import OWNER, Label
from ..types.messages import ToolCall
from ..types.people import OWNER_NAME, ROLE_SCOPES, User
from ..users.user_cache import OWNER as OWNER_HERE
from .judge import check_call, judge, make_judge, normalize_case, policy_of

DRY_RUN_CHAT = "here"
"""The chat of a call that nobody makes."""


class ExplainedCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call, and where it would be made. `arguments` may be JSON, or the one text that the tool
    needs. `as_` is a user, a role, or NAME:ROLE; `untrusted` that something from outside was read,
    or what."""

    tool: str
    arguments: dict[str, Any] | str = ""
    agent: str = ""
    as_: str = msgspec.field(name="as", default=OWNER_NAME)
    channel: str = "terminal"
    group: bool = False
    untrusted: bool | str = False
    host: str = ""
    planning: bool = False


class Expected(ExplainedCall, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A call and its verdict. `because` is part of the reason."""

    expect: Verdict
    because: str = ""


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on a case and everything that led to it.

    `checks` are the answers of all checks that had one. `grant` is the standing answer of a person
    to exactly this call, where it counts. `opens` is a rule that would allow the call, if there can
    be one.
    """

    case: Case
    decision: Decision
    rules: tuple[ExplainedRules, ...]
    checks: tuple[CheckResult, ...]
    grant: Decision | None = None
    opens: Rule | None = None


def parse_principal(settings: Settings, who: str, users: Sequence[User] = ()) -> Principal:
    """Who is meant: a user, NAME:ROLE, or a role alone."""
    name, _, role = who.partition(":")
    if role:
        return Principal(name, tuple(role.split(",")))
    known = next((user for user in users if user.name == name), None)
    if known is not None:
        return Principal(name, known.roles)
    if name == OWNER_NAME:
        return OWNER_HERE
    return (
        Principal("somebody", (name,))
        if name in ROLE_SCOPES or name in settings.config.roles
        else Principal(name)
    )


def make_case(
    settings: Settings, tools: Tools, call: ExplainedCall, users: Sequence[User] = ()
) -> Case:
    """The call as the judge would get it. Raises ConfigError for a tool that the agent does not
    have."""
    agent = settings.resolve_agent(call.agent)
    tool = tools.get(call.tool) or tools.get(TOOL_ALIASES.get(call.tool, call.tool))
    if tool is None:
        raise ConfigError(f"{agent} has no tool {call.tool!r}; it has: {', '.join(tools)}")
    arguments = encode_arguments(tool, call.arguments)
    effect = tool.spec.effect
    if arguments and (judged := get_effect_function(tool)) is not None:
        effect = judged(
            msgspec.Raw(arguments), Address(call.channel, chat=DRY_RUN_CHAT, group=call.group)
        )
    label = OWNER
    if call.untrusted:
        label = Label("untrusted", source=call.untrusted if isinstance(call.untrusted, str) else "")
    case = Case(
        agent, tool.spec.name, effect, parse_principal(settings, call.as_, users), label, arguments
    )
    place = replace(
        case, channel=call.channel, group=call.group, host=call.host, planning=call.planning
    )
    return normalize_case(place)


def encode_arguments(tool: Tool, given: dict[str, Any] | str) -> bytes:
    """The arguments as JSON; a text alone is that of the first parameter."""
    if isinstance(given, dict):
        return msgspec.json.encode(given)
    if not given or given.lstrip().startswith("{"):
        return given.encode()
    first = next(iter(tool.spec.parameters.get("properties", {})), "")
    if not first:
        raise ConfigError(f"{tool.spec.name} takes no arguments")
    return msgspec.json.encode({first: given})


async def explain_case(settings: Settings, case: Case, store: Store | None = None) -> Why:
    """The verdict on this case and all that led to it. Without a `store`, standing approvals are
    not looked up."""
    policy = policy_of(settings, case.agent)
    decision = judge(case, policy)
    grant = None
    if store is not None and decision.verdict == "ask" and case.arguments:
        grant = await _find_grant(settings, case, store)
    if grant is not None:
        decision = grant

    opens = None
    if grant is None and decision.verdict != "allow":
        opens = _find_allowing_rule(settings, case)

    return Why(
        case=case,
        decision=decision,
        rules=tuple(explain_rules(policy.rules, case)),
        checks=tuple(check_call(case, policy)),
        grant=grant,
        opens=opens,
    )


async def _find_grant(settings: Settings, case: Case, store: Store) -> Decision | None:
    call = ToolCall("", case.tool, msgspec.Raw(case.arguments))
    setting = CallSetting(
        session="",
        agent=case.agent,
        cwd=str(workspace_of(settings, case.agent)),
        profile="default",
        untrusted=case.context.integrity == "untrusted",
    )
    return await find_grant(store, call, setting, case.principal)


def _find_allowing_rule(settings: Settings, case: Case) -> Rule | None:
    """The rule for exactly this tool and person that allows it, if there can be one."""
    rule = Rule("allow", case.agent, case.tool, who=case.principal.id)
    config = replace(settings.config, policy=(rule, *settings.config.policy))
    decision = judge(case, policy_of(replace(settings, config=config), case.agent))
    return rule if decision.verdict == "allow" else None


def check_expectation(
    settings: Settings, tools: Tools, expected: Expected, users: Sequence[User] = ()
) -> str:
    """What is other than expected, in a sentence; '' where it is as it should be."""
    try:
        case = make_case(settings, tools, expected, users)
    except ConfigError as error:
        return str(error)
    decision = make_judge(settings, case.agent).judge(case)
    if decision.verdict != expected.expect:
        return f"expected {expected.expect}, but it is {decision.verdict}: {decision.reason}"
    if expected.because not in decision.reason:
        return f"it is {decision.verdict} as expected, but because {decision.reason}"
    return ""
