"""The judge of an agent's calls: a list of checks, of which the strictest answer wins."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from ..config.config import Settings, normalize_rules, workspace_of
from ..policy.checks import (
    AgentPolicy,
    Check,
    CheckResult,
    approval_mode,
    commands_need_names,
    configured_rules,
    information_flow,
    private_data,
    strictest,
)
from ..policy.jobs_from_untrusted import jobs_from_outside
from ..policy.permission_modes import PermissionMode, mode_rules, role_rules
from ..policy.plan import plan_approval, plan_mode
from ..policy.rules import Case, Decision, Rule
from ..tools.aliases import normalize_arguments
from ..tools.command_line import SHELL, get_command_line
from ..tools.define import decode_json
from ..types.marked_texts import mark_text
from ..users.tool import is_refused_by_tool, left_to_tool, user_changes
from .models import is_small
from .small_models import unnamed_files

_log = logging.getLogger(__name__)


class PolicyJudge:
    """Implements `agent.protocols.Judge`."""

    def __init__(self, policy: AgentPolicy) -> None:
        self._policy = policy

    def judge(self, case: Case) -> Decision:
        return judge(case, self._policy)


def make_judge(settings: Settings, agent: str) -> PolicyJudge:
    """The judge of this agent's calls. Raises ConfigError for an unknown agent."""
    return PolicyJudge(policy_of(settings, agent))


def policy_of(settings: Settings, agent: str) -> AgentPolicy:
    """What the checks need to know of this agent. Raises ConfigError for an unknown one."""
    config = settings.agent(agent)
    may_be_small = any(is_small(settings, model) for model in config.models)
    return AgentPolicy(
        rules=rules_of(settings, agent),
        commands=tuple(config.commands or ()),
        guarded_workspace=workspace_of(settings, agent) if may_be_small else None,
    )


def rules_of(settings: Settings, agent: str) -> tuple[Rule, ...]:
    """The rules for an agent: those of the configuration, then those of roles, then those of its
    permission mode."""
    mode = settings.permission_mode(agent)
    return (
        *normalize_rules(settings.config.policy),
        *role_rules(_role_modes(settings), mode),
        *mode_rules(mode),
    )


def _role_modes(settings: Settings) -> Mapping[str, PermissionMode]:
    return {
        name: role.permission_mode
        for name, role in settings.config.roles.items()
        if role.permission_mode is not None
    }


def commands_as_shell(case: Case, policy: AgentPolicy) -> Decision | None:
    """What holds for `shell` holds for every tool that runs a command, and for what is typed into a
    running one. Plan mode is left out: it looks at the call as it is."""
    command = None if case.tool == SHELL else get_command_line(case.tool, case.arguments)
    if command is None:
        return None
    arguments = msgspec.json.encode({"command": command})
    return judge(replace(case, tool=SHELL, arguments=arguments, planning=False), policy)


CHECKS: tuple[Check, ...] = (
    plan_approval,  # a plan is always shown to a person
    information_flow,  # untrusted content and private data act outward only with a person's yes
    configured_rules,  # what the owner wrote, then the permission mode: the first match decides
    approval_mode,  # this conversation asks before every tool
    unnamed_files,  # a small model may pick the wrong file
    commands_need_names,  # programs that are not on the agent's list
    user_changes,  # who may use Deskhand
    jobs_from_outside,  # jobs that untrusted content could have suggested
    private_data,  # only the owner may send it outward
    commands_as_shell,  # the same command as a call of `shell`
    plan_mode,  # nothing but reading until the plan is approved
)
"""The strictest answer wins, and of equally strict ones the first: people read its reason. So
checks whose question is more important than that of a rule stand before the rules, and checks that
only deny stand behind them."""

LEFT_TO_TOOL: tuple[Check, ...] = (left_to_tool, plan_mode)
"""The checks for a call that the tool itself refuses: a question would bother the owner for
nothing."""


def judge(case: Case, policy: AgentPolicy) -> Decision:
    """The strictest decision of all checks. Never raises: a check that fails asks."""
    results = []
    for result in check_call(case, policy):
        results.append(result)
        if result.decision.verdict == "deny":
            break  # nothing is stricter
    return strictest(results).decision


def check_call(
    case: Case, policy: AgentPolicy, checks: Sequence[Check] = CHECKS
) -> Iterator[CheckResult]:
    """The answer of each check that has something to say about this call. Never raises."""
    try:
        case = normalize_case(case)
    except Exception as error:  # noqa: BLE001 -- a call that cannot be read is asked about
        _log.exception("The arguments of a call of %s cannot be read", case.tool)
        yield CheckResult("arguments", _ask_because_of(error))
        return

    if is_refused_by_tool(case):
        checks = LEFT_TO_TOOL

    for check in checks:
        try:
            decision = check(case, policy)
        except Exception as error:  # noqa: BLE001 -- whatever it raises, it is no yes
            _log.exception("The check %r failed on a call of %s", name_of(check), case.tool)
            decision = _ask_because_of(error)
        if decision is not None:
            yield CheckResult(name_of(check), decision)


def _ask_because_of(error: Exception) -> Decision:
    return Decision(
        "ask",
        mark_text("the rules could not be checked ({error})").format(error=type(error).__name__),
    )


def name_of(check: Check) -> str:
    """The name of a check as `policy why` prints it."""
    return getattr(check, "__name__", repr(check)).replace("_", " ")


def normalize_case(case: Case) -> Case:
    """The case with the arguments as the tool will read them, whichever way the model wrote them:
    what is judged is what is done. Arguments that the tool refuses stay as they are."""
    if not case.arguments:
        return case

    given = _parse_object(case.arguments)
    is_plain = given is not None
    if given is None:
        try:
            lenient = decode_json(case.arguments)
        except (ValueError, RecursionError):
            return case
        if not isinstance(lenient, dict):
            return case
        given = lenient

    ours = normalize_arguments(case.tool, given)
    arguments = case.arguments
    if not is_plain or ours != given:
        arguments = msgspec.json.encode(ours)
    return replace(case, arguments=arguments, command=get_command_line(case.tool, arguments) or "")


def _parse_object(arguments: bytes) -> dict[str, Any] | None:
    """The arguments, if they are a JSON object; else None."""
    try:
        given = msgspec.json.decode(arguments)
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, dict) else None
