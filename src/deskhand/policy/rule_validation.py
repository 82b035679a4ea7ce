"""Rules that can never hold: who wrote one believes in it, so it is refused."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import get_args

import msgspec

from ..types.effects import Effect
from ..types.errors import ConfigError
from .argument_hosts import HOST_EFFECTS, find_host_problem
from .command_lists import find_commands_problem
from .rules import COMMAND_TOOLS, Rule

EFFECTS: tuple[str, ...] = get_args(Effect)


class KnownNames(msgspec.Struct, frozen=True):
    """The names that there are, where they are known: agents, channels, roles. `aliases` are other
    words for roles."""

    agents: Collection[str] | None = None
    channels: Collection[str] | None = None
    roles: Collection[str] | None = None
    aliases: Mapping[str, str] = {}


def check_rules(rules: Sequence[Rule], known: KnownNames | None = None) -> None:
    """Raises ConfigError, with its number, for a rule that can never hold."""
    for number, rule in enumerate(rules, 1):
        if wrong := _find_problem(rule, known or KnownNames()) or _find_covering_rule(
            rule, rules[: number - 1]
        ):
            raise ConfigError(f"rule {number} of the policy can never apply: {wrong}")


def _find_problem(rule: Rule, known: KnownNames) -> str:
    role = rule.who.removeprefix("role:") if rule.who.startswith("role:") else "*"
    if (ours := known.aliases.get(role)) is not None:
        return f"the role {role!r} is called {ours!r} here"
    for what, pattern, names in (
        ("effect", rule.effect, EFFECTS),
        ("agent", rule.agent, known.agents),
        ("channel", rule.channel, known.channels),
        ("role", role, known.roles),
    ):
        if names is not None and not any(fnmatchcase(name, pattern) for name in names):
            near = get_close_matches(pattern, names, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names)}"
            return f"there is no {what} {pattern!r}; {hint}"
    if rule.host != "*":
        if wrong := find_host_problem(rule.host):
            return wrong
        if not any(fnmatchcase(effect, rule.effect) for effect in HOST_EFFECTS):
            return (
                f"only {' and '.join(sorted(HOST_EFFECTS))} go to a host, and its effect is "
                f"{rule.effect!r}"
            )
    if rule.commands:
        if not any(fnmatchcase(tool, rule.tool) for tool in COMMAND_TOOLS):
            return (
                f"{rule.tool!r} runs no commands; those that do: {', '.join(sorted(COMMAND_TOOLS))}"
            )
        return find_commands_problem(rule.commands, rule.verdict)
    return ""


def _find_covering_rule(rule: Rule, before: Sequence[Rule]) -> str:
    """The earlier rule that decides otherwise wherever this one would."""
    for number, first in enumerate(before, 1):
        if (
            first.verdict != rule.verdict
            and all(
                _covers(getattr(first, field), getattr(rule, field))
                for field in ("agent", "tool", "effect", "who", "channel", "host")
            )
            and first.group in (None, rule.group)
            and first.commands in ((), rule.commands)
        ):
            return f"rule {number} comes before it and matches everything that it matches"
    return ""


def _covers(first: str, later: str) -> bool:
    """Whether the first pattern surely fits all that the later one fits."""
    if first in ("*", later):
        return True
    return not any(sign in later for sign in "*?[") and fnmatchcase(later, first)
