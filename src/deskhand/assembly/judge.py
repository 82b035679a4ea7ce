"""Makes the judge of an agent's calls from the policy and the checks behind it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping

import msgspec
from msgspec.structs import replace

from ..config.config import Settings, normalize_rules, workspace_of
from ..policy.commands import find_doubt
from ..policy.plan import apply_plan_mode
from ..policy.postures import Posture, posture_rules, role_rules
from ..policy.rules import COMMAND_TOOLS, Case, Decision, Rule, decide
from ..policy.unattended import ask_before_jobs
from ..tools.aliases import canonical
from ..tools.command_line import SHELL
from ..tools.command_line import command_of as run_by
from ..tools.define import decoded
from ..users.tool import guard_user_changes
from .models import is_small
from .small_models import asking_about_unnamed

_log = logging.getLogger(__name__)

Judge = Callable[[Case], Decision]


def rules_of(settings: Settings, agent: str) -> tuple[Rule, ...]:
    """The rules of an agent: those of the configuration, then those of its posture and of the
    roles."""
    own = normalize_rules(settings.config.policy)
    posture = settings.posture(agent)
    return (*own, *role_rules(_role_postures(settings), posture), *posture_rules(posture))


def _role_postures(settings: Settings) -> Mapping[str, Posture]:
    return {
        name: role.posture
        for name, role in settings.config.roles.items()
        if role.posture is not None
    }


def make_judge(settings: Settings, agent: str) -> Judge:
    """Who judges the calls of this agent: what cannot be judged is asked about. Raises ConfigError
    for one that there is not."""
    config = settings.agent(agent)
    rules = rules_of(settings, agent)

    def apply_rules(case: Case) -> Decision:
        return decide(rules, case)

    judge: Judge = apply_rules
    if any(is_small(settings, model) for model in config.models):
        judge = asking_about_unnamed(judge, workspace_of(settings, agent))
    if config.commands:
        judge = asking_about_commands(judge, config.commands)
    whole = judging_commands_as_shell(ask_before_jobs(guard_user_changes(judge)))

    def judge_case(case: Case) -> Decision:
        case = normalize_case(case)
        return apply_plan_mode(case, whole(case))

    return asking_on_error(judge_case)


def asking_on_error(judge: Judge) -> Judge:
    """The judge, who asks where looking at the call failed: then nothing tells that it may run."""

    def judge_safely(case: Case) -> Decision:
        try:
            return judge(case)
        except Exception as error:  # noqa: BLE001 -- whatever it raises, it is no yes
            _log.exception("A call of %s could not be judged", case.tool)
            return Decision("ask", f"whether it may run could not be told ({type(error).__name__})")

    return judge_safely


def judging_commands_as_shell(judge: Judge) -> Judge:
    """The judge, for whom what holds for `shell` holds for every command, whichever tool runs it,
    and for what is typed into one that runs."""

    def strictest(case: Case) -> Decision:
        decision = judge(case)
        command = None if case.tool == SHELL else run_by(case.tool, case.arguments)
        if command is None or decision.verdict == "deny":
            return decision
        as_shell = judge(
            replace(case, tool=SHELL, arguments=msgspec.json.encode({"command": command}))
        )
        return as_shell if as_shell.verdict == "deny" or decision.verdict == "allow" else decision

    return strictest


def normalize_case(case: Case) -> Case:
    """The case with the arguments as the tool will take them, however the model wrote them: what is
    judged is what is done. What the tool refuses stays as it is."""
    if not case.arguments:
        return case
    try:
        given = msgspec.json.decode(case.arguments)
    except (ValueError, RecursionError):
        given = None
    plain = isinstance(given, dict)
    try:
        given = given if plain else decoded(case.arguments)
    except (ValueError, RecursionError):
        return case
    if not isinstance(given, dict):
        return case
    ours = canonical(case.tool, given)
    arguments = case.arguments if plain and ours == given else msgspec.json.encode(ours)
    return replace(case, arguments=arguments, command=run_by(case.tool, arguments) or "")


def asking_about_commands(judge: Judge, commands: Collection[str]) -> Judge:
    """The judge, who also asks before a program is run that is not one of these."""

    def careful(case: Case) -> Decision:
        decision = judge(case)
        if decision.verdict != "allow" or case.tool not in COMMAND_TOOLS:
            return decision
        if why := find_doubt(case.command or "", commands, strict=case.effect != "local_write"):
            return Decision("ask", why)
        return decision

    return careful
