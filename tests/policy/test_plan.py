"""Plan mode as a table: it refuses what does more than look, and lets nothing through that was
asked or refused."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand.policy.approval import render_arguments
from deskhand.policy.plan import ENTER_PLAN_MODE, EXIT_PLAN_MODE
from deskhand.policy.rules import Case, Rule, Verdict, is_read_only
from deskhand.types.effects import Effect
from deskhand.types.identity import Principal
from deskhand.types.labels import OWNER
from deskhand.types.messages import ToolCall

from .deciding import decide

ANN = Principal("ann", ("owner",))
RANK = {"deny": 0, "ask": 1, "allow": 2}


def case(tool: str, effect: Effect = "none", *, planning: bool = True) -> Case:
    return Case("main", tool, effect, ANN, OWNER, planning=planning)


@pytest.mark.parametrize(
    ("judged", "verdict", "reason"),
    [
        (case("read_file"), "allow", ""),
        (case("web_fetch", "fetch"), "allow", ""),
        (case("shell", "local_write"), "deny", "plan mode is on, and shell does more than look"),
        (case("send_message", "send_owner"), "deny", "show the plan with exit_plan_mode first"),
        (case(ENTER_PLAN_MODE), "deny", "plan mode is on already"),
        (case(EXIT_PLAN_MODE), "ask", "this is the plan"),
        (case(EXIT_PLAN_MODE, planning=False), "deny", "plan mode is not on"),
        (case(ENTER_PLAN_MODE, planning=False), "allow", ""),
        (case("shell", "local_write", planning=False), "allow", ""),
    ],
)
def test_what_may_be_done(judged: Case, verdict: Verdict, reason: str) -> None:
    decision = decide([Rule("allow")], judged)
    assert decision.verdict == verdict and reason in decision.reason
    assert decide([Rule("deny", because="no")], judged).reason == "no"


@given(
    st.sampled_from(["shell", "read_file", ENTER_PLAN_MODE, EXIT_PLAN_MODE]),
    st.sampled_from(get_args(Effect)),
    st.booleans(),
    st.sampled_from(["allow", "ask", "deny"]),
)
def test_it_only_takes_away(tool: str, effect: Effect, planning: bool, verdict: Verdict) -> None:
    decision = decide([Rule(verdict)], case(tool, effect, planning=planning))
    assert RANK[decision.verdict] <= RANK[verdict]
    assert not (
        planning
        and decision.verdict != "deny"
        and not is_read_only(effect)
        and tool != EXIT_PLAN_MODE
    )


def test_a_plan_is_shown_as_it_was_written() -> None:
    def of(arguments: bytes, name: str = EXIT_PLAN_MODE) -> str:
        return render_arguments(ToolCall("c", name, msgspec.Raw(arguments)))

    assert of(b'{"plan": "1. look\\n2. write \\u202e"}') == "\n1. look\n2. write \\u202e"
    for other in (b'{"plan": "a", "x": 1}', b'{"plan": 5}', b"[", b'"a"'):
        assert of(other) == other.decode()
    assert of(b'{"plan": "a\\nb"}', "shell") == '{"plan": "a\\nb"}'
