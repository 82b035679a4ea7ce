"""Rules as a table: a case in, a verdict and its reason out."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from deskhand.policy.permission_modes import PERMISSION_MODES, PermissionMode, mode_rules
from deskhand.policy.rules import FREE_EFFECTS, Case, Rule, Verdict
from deskhand.types.effects import OUTWARD, Effect
from deskhand.types.identity import Principal
from deskhand.types.labels import LOCAL, OWNER, Label

from .deciding import decide

ANN = Principal("ann", ("owner", "dev"))
BOB = Principal("bob")
PAGE = Label("untrusted", source="https://evil.example")
SHELL = Rule("allow", tool="shell", who="role:dev")


def case(
    effect: Effect = "host", tool: str = "shell", who: Principal = ANN, context: Label = LOCAL
) -> Case:
    return Case("agent", tool, effect, who, context)


@pytest.mark.parametrize(
    ("rules", "judged", "verdict"),
    [
        ([], case("none"), "allow"),
        ([], case("local_write"), "allow"),
        ([], case("host"), "ask"),
        ([SHELL], case(), "allow"),
        ([SHELL], case(who=BOB), "ask"),
        ([SHELL], case(tool="shell2"), "ask"),
        ([Rule("deny", who="bob"), Rule("allow")], case(who=BOB), "deny"),
        ([Rule("allow"), Rule("deny", who="bob")], case(who=BOB), "allow"),
        ([Rule("deny", effect="send_*")], case("send_other"), "deny"),
        ([Rule("deny", agent="other")], case("none"), "allow"),
        ([Rule("deny", tool="Shell")], case("none"), "allow"),
        ([Rule("ask", tool="*")], case("none"), "ask"),
        ([Rule("deny", who="role:dev")], case("none"), "deny"),
        ([Rule("deny", who="role:*")], case("none", who=BOB), "allow"),
        ([SHELL], case(context=PAGE), "ask"),
        ([SHELL], case(context=OWNER), "allow"),
        ([Rule("allow")], case("none", context=PAGE), "allow"),
        ([Rule("deny")], case(context=PAGE), "deny"),
        ([], case(context=PAGE), "ask"),
    ],
)
def test_decide(rules: list[Rule], judged: Case, verdict: Verdict) -> None:
    decision = decide(rules, judged)
    assert decision.verdict == verdict and decision.reason


def test_every_effect_is_free_or_asked() -> None:
    for effect in get_args(Effect):
        assert decide([], case(effect)).verdict == ("allow" if effect in FREE_EFFECTS else "ask")
    assert not FREE_EFFECTS & OUTWARD and set(get_args(Effect)) == FREE_EFFECTS | OUTWARD


def test_the_person_is_told_what_was_read() -> None:
    for rules in ([], [Rule("allow")], [Rule("ask")]):
        assert "https://evil.example" in decide(rules, case(context=PAGE)).reason, rules
    assert "outside" in decide([], case(context=Label())).reason


patterns = st.sampled_from(["*", "shell", "sh*", "host", "ann", "role:*", "?gent", "send_*"])
rules = st.lists(
    st.builds(
        Rule, st.sampled_from(["allow", "ask", "deny"]), patterns, patterns, patterns, patterns
    )
)


@given(rules, st.sampled_from(sorted(OUTWARD)))
def test_no_rule_lets_untrusted_words_act_outward(policy: list[Rule], effect: Effect) -> None:
    assert decide(policy, case(effect, context=PAGE)).verdict != "allow"


@pytest.mark.parametrize(
    ("mode", "free", "asked", "denied"),
    [
        (
            "read-only",
            {"none", "fetch", "send_owner"},
            set(),
            {"local_write", "host", "network", "irreversible"},
        ),
        ("ask-me", {"none", "fetch", "send_owner"}, {"local_write", "host", "network"}, set()),
        (
            "workspace-free",
            {"none", "fetch", "send_owner", "local_write"},
            {"host", "network", "send_other"},
            set(),
        ),
        ("everything", {"none", "local_write", "host", "network", "irreversible"}, set(), set()),
    ],
)
def test_a_permission_mode_stands_behind_ones_own_rules(
    mode: PermissionMode, free: set[Effect], asked: set[Effect], denied: set[Effect]
) -> None:
    rules = mode_rules(mode)
    for verdict, effects in (("allow", free), ("ask", asked), ("deny", denied)):
        for effect in effects:
            decision = decide(rules, case(effect))
            assert decision.verdict == verdict, effect
            assert mode in decision.reason or mode == "workspace-free"
    assert decide([SHELL, *rules], case()).verdict == "allow"


def test_no_permission_mode_lets_what_was_read_outside_act_outward() -> None:
    for mode in PERMISSION_MODES:
        assert decide(mode_rules(mode), case("host", context=PAGE)).verdict in ("ask", "deny")


SAFE_TOOLS = [
    *(
        "think",
        "read_file",
        "list_skills",
        "read_skill",
        "todo_list",
        "task_list",
        "task_get",
        "check_background",
    ),
    "tool_search",
    *(
        "read_inbox",
        "list_teammates",
        "check_protocol",
        "compact",
        "enter_plan_mode",
        "ask_user",
    ),
]


@pytest.mark.parametrize("tool", SAFE_TOOLS)
def test_the_safe_tools_run_also_where_everything_is_asked(tool: str) -> None:
    case = Case("main", tool, "none", Principal("ann", ("owner",)), OWNER, strict=True)
    assert decide((), case).verdict == "allow"
    assert decide((Rule("deny", tool=tool),), case).verdict == "deny"


@pytest.mark.parametrize("tool", ["write_file", "shell", "list_files", "send_message", "anything"])
def test_everything_else_is_asked_there_and_never_less(tool: str) -> None:
    case = Case("main", tool, "none", Principal("ann", ("owner",)), OWNER, strict=True)
    assert decide((), case).verdict == decide((Rule("allow"),), case).verdict == "ask"
    assert decide((Rule("deny"),), case).verdict == "deny"
    assert decide((Rule("ask"),), replace(case, strict=False)).verdict == "ask"
