"""Rules that can never hold are refused, with their number and why."""

from __future__ import annotations

import pytest

from deskhand.policy.rule_validation import KnownNames, check_rules
from deskhand.policy.rules import Rule
from deskhand.types.errors import ConfigError

KNOWN = KnownNames(
    ("main", "kids"),
    ("terminal", "web", "telegram"),
    ("owner", "member", "family"),
    {"admin": "owner"},
)


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        (Rule("deny", effect="sends"), "there is no effect 'sends'; "),
        (Rule("deny", effect="networks"), "did you mean 'network'?"),
        (Rule("deny", agent="kid"), "there is no agent 'kid'; did you mean 'kids'?"),
        (
            Rule("deny", channel="slack"),
            "there is no channel 'slack'; there are: terminal, web, telegram",
        ),
        (Rule("deny", who="role:famly"), "there is no role 'famly'; did you mean 'family'?"),
        (Rule("allow", who="role:admin"), "the role 'admin' is called 'owner' here"),
        (Rule("deny", host="https://example.org/x"), "is not a host name; write 'example.org'"),
        (Rule("deny", host="Example.ORG."), "write 'example.org'"),
        (Rule("deny", host="*.*.org"), "is not a host name"),
        (Rule("deny", host="0x7f.1"), "write '127.0.0.1'"),
        (
            Rule("deny", effect="local_write", host="example.org"),
            "only fetch and network go to a host",
        ),
        (
            Rule("deny", tool="read_*", commands=("rm",)),
            "'read_*' runs no commands; those that do: background_run,",
        ),
        (
            Rule("deny", commands=("@mine",)),
            "there is no list of commands '@mine'; there are: @looking",
        ),
        (Rule("allow", commands=("@openagent",)), "says nothing about what may run"),
        (Rule("allow", commands=("git status",)), "'git status' is not the name of a program"),
    ],
)
def test_a_rule_that_can_never_hold(rule: Rule, why: str) -> None:
    with pytest.raises(ConfigError, match=r"^rule 2 of the policy can never apply: ") as raised:
        check_rules((Rule("ask", tool="x"), rule), KNOWN)
    assert why in str(raised.value)


@pytest.mark.parametrize(
    ("first", "later", "covered"),
    [
        (Rule("allow"), Rule("deny", who="bob"), True),
        (Rule("allow"), Rule("allow", who="bob"), False),
        (Rule("allow", tool="s*"), Rule("deny", tool="shell"), True),
        (Rule("allow", tool="shell"), Rule("deny", tool="s*"), False),
        (Rule("allow", who="role:owner"), Rule("deny", who="ann"), False),
        (Rule("allow", channel="web"), Rule("deny"), False),
        (Rule("allow", group=True), Rule("deny"), False),
        (Rule("allow", group=True), Rule("deny", group=True), True),
        (Rule("allow"), Rule("deny", group=True), True),
        (Rule("allow", tool="shell", commands=("ls",)), Rule("deny", tool="shell"), False),
        (Rule("allow", host="*.example.org"), Rule("deny", host="a.example.org"), True),
        (Rule("allow", host="example.org"), Rule("deny", host="*.example.org"), False),
    ],
)
def test_a_rule_behind_one_that_decides_otherwise(first: Rule, later: Rule, covered: bool) -> None:
    if covered:
        with pytest.raises(
            ConfigError, match="rule 2 of the policy can never apply: rule 1 comes before it"
        ):
            check_rules((first, later))
    else:
        check_rules((first, later))


def test_what_is_known_is_fine() -> None:
    rules = (
        Rule("deny", agent="kids", who="role:family", channel="telegram", group=True),
        Rule("allow", effect="fetch", host="*.example.org"),
        Rule("allow", effect="fetch", host="10.0.0.1", who="role:*"),
        Rule("deny", tool="shell", commands=("rm", "@operator-use")),
        Rule("allow", tool="sh*", commands=("@looking", "git")),
    )
    check_rules(rules, KNOWN)
