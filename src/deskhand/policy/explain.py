"""Why a case is decided as it is: each rule that was looked at, and what of it did not fit.
Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from .rules import UNCLEAR, Case, Rule, RuleTrace, find_mismatch


class ExplainedRules(msgspec.Struct, frozen=True):
    """A rule that was looked at. `misfit` says in words why it does not fit; '' for the one that
    decides."""

    number: int
    rule: Rule
    misfit: str = ""


def explain_rules(rules: Sequence[Rule], case: Case) -> Iterator[ExplainedRules]:
    """The rules from the top to the first that fits."""
    seen = RuleTrace(case)
    for number, rule in enumerate(rules, 1):
        field = find_mismatch(rule, seen)
        yield ExplainedRules(number, rule, _explain_mismatch(field, rule, seen) if field else "")
        if not field:
            return


def _explain_mismatch(field: str, rule: Rule, seen: RuleTrace) -> str:
    case = seen.case
    match field:
        case "who":
            return f"it is for {rule.who}, and this is {', '.join(seen.names)}"
        case "channel":
            return f"it is for {rule.channel}, and this is on {case.channel or 'no channel'}"
        case "group":
            return "it is for groups" if rule.group else "it is not for groups"
        case "host":
            hosts = ", ".join(
                host if host.isprintable() else "an address that cannot be read"
                for host in seen.hosts
            )
            return f"it is for {rule.host}, and this goes to {hosts or 'no host'}"
        case "commands" if not seen.command:
            return "it is for commands, and this runs none"
        case "commands":
            more = "other programs than" if rule.verdict == "allow" else "none of"
            return f"this runs {more} {', '.join(rule.commands)}"
        case _ if field == UNCLEAR and not rule.commands:
            return (
                f"it is not certain whether this goes to {rule.host}, so at least approval "
                "is needed"
            )
        case _ if field == UNCLEAR:
            return (
                f"it is not certain whether this runs {', '.join(rule.commands)}, so at least "
                "approval is needed"
            )
        case _:
            return f"it is for {field} {getattr(rule, field)}, and this is {getattr(case, field)}"
