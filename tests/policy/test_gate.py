"""Rules in their order, for whom they are, and the label gate that no rule opens."""

from __future__ import annotations

import pytest

from deskhand.policy.rules import Case, Rule, decide
from deskhand.testing.effort import least_cpu_s
from deskhand.types.effects import OUTWARD, Effect
from deskhand.types.identity import Principal
from deskhand.types.labels import LOCAL, OWNER, UNTRUSTED, Label

ANN, BOB = Principal("ann", ("owner",)), Principal("bob", ("member", "family"))


def case(
    tool: str = "shell", effect: Effect = "host", who: Principal = ANN, label: Label = OWNER, agent: str = "a"
) -> Case:
    return Case(agent, tool, effect, who, label)


@pytest.mark.parametrize("label", [OWNER, LOCAL, UNTRUSTED])
@pytest.mark.parametrize("effect", ["none", "local_write", "send_owner", "fetch"])
def test_what_stays_is_free(effect: Effect, label: Label) -> None:
    assert decide((), case("any", effect, BOB, label)).verdict == "allow"


@pytest.mark.parametrize("effect", ["send_other", "network", "host", "irreversible"])
def test_what_reaches_out_is_asked(effect: Effect) -> None:
    decision = decide((), case("any", effect))
    assert decision.verdict == "ask" and decision.reason == f"any has the effect {effect!r}, and no rule allows it"


RULES = (
    Rule("deny", tool="shell", who="bob"),
    Rule("allow", tool="shell", who="role:owner"),
    Rule("ask", tool="s*"),
    Rule("allow", effect="network", who="role:family"),
    Rule("deny", agent="quiet", effect="send_*"),
    Rule("deny", who="role:nobody"),
)


@pytest.mark.parametrize(
    ("given", "verdict", "number"),
    [
        (case(), "allow", 2),
        (case(who=BOB), "deny", 1),
        (case("send", "send_owner"), "ask", 3),
        (case("SHELL"), "ask", None),
        (case("post", "network", BOB), "allow", 4),
        (case("post", "network"), "ask", None),
        (case("post", "send_owner", agent="quiet"), "deny", 5),
        (case("post", "send_owner"), "allow", None),
    ],
)
def test_the_first_rule_that_fits_decides(given: Case, verdict: str, number: int | None) -> None:
    decision = decide(RULES, given)
    assert decision.verdict == verdict
    assert decision.reason.startswith(f"rule {number}: {verdict}") is (number is not None)


@pytest.mark.parametrize("effect", sorted(OUTWARD))
def test_no_rule_opens_the_gate(effect: Effect) -> None:
    label = Label("untrusted", source="https://evil.test")
    decision = decide((Rule("allow"),), case("post", effect, label=label))
    assert (
        decision.verdict == "ask"
        and decision.reason == "post acts outward, and this conversation has read https://evil.test"
    )
    assert decide((Rule("deny"),), case("post", effect, label=label)).verdict == "deny"
    assert "content from outside" in decide((Rule("allow"),), case("post", effect, label=UNTRUSTED)).reason
    for trusted in (OWNER, LOCAL, Label("member")):
        assert decide((Rule("allow"),), case("post", effect, label=trusted)).verdict == "allow"


def test_a_pattern_takes_no_time() -> None:
    rules = (Rule("allow", tool="*a" * 30 + "b", agent="*?" * 1000),)
    assert least_cpu_s(lambda: decide(rules, case("a" * 5_000))) < 0.25
