"""Who may do what, as pure rules: a call and what has been read go in, a verdict with its reason
comes out."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Literal

import msgspec
from msgspec.structs import replace

from ..types.effects import EFFECT_PHRASES, Effect
from ..types.identity import Address, Principal
from ..types.labels import Label
from ..types.marked_texts import mark_text
from ..types.options import SessionOptions
from . import command_lists as blocked
from .argument_hosts import HOST_EFFECTS, UNREADABLE_HOST, extract_hosts, is_host_match
from .commands import format_unclear
from .information_flow import Given
from .words import WordReader, parse_command

Verdict = Literal["allow", "ask", "deny"]


class Rule(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One line of the policy. Each field is a pattern (`*` and `?`); `who` is a principal's id or
    `role:NAME`. `because` is what people are told, in place of the rule itself.

    `group`: only in groups, or only elsewhere. `host` is a host or `*.host`. `commands` are names
    of programs and of lists of them: `allow` fits where certainly nothing else is run, `ask` and
    `deny` where one of them may be."""

    verdict: Verdict
    agent: str = "*"
    tool: str = "*"
    effect: str = "*"
    who: str = "*"
    because: str = ""
    channel: str = "*"
    group: bool | None = None
    host: str = "*"
    commands: tuple[str, ...] = ()


class Case(msgspec.Struct, frozen=True):
    """What is to be judged. `context` is the lowest label of everything that the model has read,
    `arguments` the call's JSON, `said` what people wrote in this turn, `known` the words whose
    addresses the model did not put together. `strict`: a person is to be asked before every tool
    but the safe ones; `planning`: nothing is to be changed yet. `channel` is where the conversation
    takes place, in a `group` or not. `host` is where the call goes, if that does not stand in its
    arguments; `command` the line that it runs, whatever the arguments call it."""

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
    command: str | None = None

    @property
    def by_owner(self) -> bool:
        """Whether an owner asks for it, or something that acts for an owner."""
        return "owner" in self.principal.roles

    def with_conversation(self, place: Address, options: SessionOptions) -> Case:
        """The same in a conversation at this place that is held so."""
        how = (bool(options.approval), bool(options.plan_mode))
        return replace(
            self, channel=place.channel, group=place.group, strict=how[0], planning=how[1]
        )


class Decision(msgspec.Struct, frozen=True):
    """The verdict, and the sentence that a person can be told."""

    verdict: Verdict
    reason: str


FREE_EFFECTS: frozenset[Effect] = frozenset({"none", "local_write", "send_owner", "fetch"})
"""Effects that need nobody's yes by default: they stay on this machine, or with the person who
asked."""


RULE_REASON = mark_text("rule {number}: {rule}")
FREE_REASON = mark_text("{tool_name} stays within the workspace and this conversation")
DEFAULT_REASON = mark_text("{tool_name} would {effect_text}, and no rule allows it")


def is_read_only(effect: Effect) -> bool:
    """Whether a tool of this effect only looks: it may be used while a plan is made."""
    return effect in ("none", "fetch")


def apply_rules(rules: Sequence[Rule], case: Case) -> Decision:
    """The decision of the first rule that matches.

    Without a match, effects that stay within the workspace and the conversation are allowed, and
    all others are asked about. A rule that may match, where this cannot be told, turns an allow
    into an ask.
    """
    seen = RuleTrace(case)
    doubt = ""
    for number, rule in enumerate(rules, 1):
        mismatch = find_mismatch(rule, seen)
        if not mismatch:
            reason = rule.because or RULE_REASON.format(number=number, rule=summarize_rule(rule))
            decision = Decision(rule.verdict, reason)
            break

        if mismatch == UNCLEAR and not doubt:
            because = RULE_REASON.format(number=number, rule=summarize_rule(rule))
            doubt = f"{_explain_doubt(rule, seen)}; {because}"
    else:
        decision = decide_by_default(case)

    if doubt and decision.verdict == "allow":
        return Decision("ask", doubt)
    return decision


def _explain_doubt(rule: Rule, seen: RuleTrace) -> str:
    if rule.commands:
        return format_unclear(seen.reading.unclear)
    return mark_text("it is not certain where this goes")


def decide_by_default(case: Case) -> Decision:
    """What holds where no rule fits."""
    if case.effect in FREE_EFFECTS:
        return Decision(
            "allow",
            FREE_REASON.format(tool_name=case.tool),
        )
    return Decision(
        "ask",
        DEFAULT_REASON.format(tool_name=case.tool, effect_text=EFFECT_PHRASES[case.effect]),
    )


def summarize_rule(rule: Rule) -> str:
    """The rule in a few words: what stands in it beside the defaults."""
    place = "" if rule.group is None else " in groups" if rule.group else " outside groups"
    more = "".join(
        f" {word} {value}"
        for word, value in (
            ("on", rule.channel),
            ("at", rule.host),
            ("with", ", ".join(rule.commands) or "*"),
        )
        if value != "*"
    )
    return f"{rule.verdict} {rule.tool} ({rule.effect}){more}{place}"


SHELL = "shell"
COMMAND_TOOLS = frozenset({SHELL, "background_run", "process"})
"""Tools that run commands. A rule for `shell` holds for all of them."""
UNCLEAR = "unclear"
"""A misfit: what the command runs, or where the call goes, cannot be told, so it may be what the
rule refuses."""


class RuleTrace:
    """A case as rules look at it: who it is, where it goes and what it runs are worked out once,
    and only where a rule asks for it."""

    __slots__ = ("_hosts", "_reading", "case", "command", "names")

    def __init__(self, case: Case) -> None:
        self.case = case
        who = case.principal
        self.names = (
            who.id,
            *(f"role:{role}" for role in who.roles),
            *((who.on_behalf_of,) * bool(who.on_behalf_of)),
        )
        self._hosts: tuple[str, ...] | None = None
        self.command = extract_command(case) if case.command is None else case.command
        self._reading: WordReader | None = None

    @property
    def hosts(self) -> tuple[str, ...]:
        if self._hosts is None:
            case = self.case
            known = (case.host,) if case.host else None
            self._hosts = (
                ()
                if case.effect not in HOST_EFFECTS
                else known or extract_hosts(case.arguments or b"{}")
            )
        return self._hosts

    @property
    def reading(self) -> WordReader:
        if self._reading is None:
            self._reading = parse_command(self.command)
        return self._reading


def extract_command(case: Case) -> str:
    """The command that a call of the shell runs, by our name of its argument; '' where it runs
    none."""
    if case.tool != SHELL or not case.arguments:
        return ""
    try:
        given = msgspec.json.decode(case.arguments)
    except (ValueError, RecursionError):
        return ""  # the tool refuses it
    found = given.get("command") if isinstance(given, dict) else None
    return found if isinstance(found, str) else ""


def find_mismatch(rule: Rule, seen: RuleTrace) -> str:
    """The first field of the rule that does not fit, '' where all do."""
    case = seen.case
    tool = rule.tool
    if tool != "*" and not _fits(tool, case.tool) and not (seen.command and tool == SHELL):
        return "tool"
    if rule.effect != "*" and not _fits(rule.effect, case.effect):
        return "effect"
    if rule.agent != "*" and not _fits(rule.agent, case.agent):
        return "agent"
    if rule.who != "*" and not any(_fits(rule.who, name) for name in seen.names):
        return "who"
    if rule.channel != "*" and not _fits(rule.channel, case.channel):
        return "channel"
    if rule.group is not None and rule.group != case.group:
        return "group"
    if rule.host != "*" and not is_host_match(rule.host, seen.hosts, every=rule.verdict == "allow"):
        return UNCLEAR if rule.verdict != "allow" and UNREADABLE_HOST in seen.hosts else "host"
    return _find_command_mismatch(rule, seen) if rule.commands else ""


def _find_command_mismatch(rule: Rule, seen: RuleTrace) -> str:
    if not seen.command:
        return "commands"
    if rule.verdict == "allow":
        wide = seen.case.effect != "local_write"
        return "" if blocked.is_limited_to(rule.commands, seen.reading, strict=wide) else "commands"
    if blocked.may_run_any(rule.commands, seen.command, seen.reading):
        return ""
    return (
        UNCLEAR
        if seen.reading.unclear and not blocked.has_only_text_lists(rule.commands)
        else "commands"
    )


def _fits(pattern: str, value: str) -> bool:
    """Whether the value is the pattern, or falls under its `*` and `?`."""
    if pattern == "*" or pattern == value:
        return True
    return ("*" in pattern or "?" in pattern or "[" in pattern) and fnmatchcase(value, pattern)
