"""Which calls share a question, as lists; and what no text in a call can do to such a question."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskhand.policy.approval import ASKS_PER_TURN, interpret_answer, render_arguments
from deskhand.policy.rules import Case
from deskhand.policy.together import (
    MAX_QUESTION_CHARS,
    SHAREABLE_EFFECTS,
    JointAsk,
    join_reasons,
    render_joint_context,
    select_joint_asks,
)
from deskhand.types.effects import OUTWARD, Effect
from deskhand.types.events import ApprovalAsked, BoundCall
from deskhand.types.identity import Principal
from deskhand.types.labels import UNTRUSTED
from deskhand.types.messages import ToolCall
from deskhand.types.turn import make_pending_ask

from ..examples import examples

ANN = Principal("ann", ("owner",))
EFFECTS: tuple[Effect, ...] = get_args(Effect)


def wanted(
    effect: Effect = "send_other",
    text: str = "hi",
    *,
    tool: str = "send",
    alone: bool = False,
    strict: bool = False,
) -> JointAsk:
    case = Case("main", tool, effect, ANN, UNTRUSTED, strict=strict)
    call = ToolCall("c", tool, msgspec.Raw(msgspec.json.encode({"text": text})))
    return JointAsk(
        BoundCall("c", "hash"),
        f"{tool} {render_arguments(call)}",
        f"it would {effect}",
        case,
        alone,
    )


def sizes(*asked: JointAsk, room: int = ASKS_PER_TURN) -> list[int]:
    """How many calls each question is about, where one question follows the other."""
    left = list(asked)
    found = []
    while left:
        found.append(len(select_joint_asks(left, room)))
        left = left[found[-1] :]
    return found


@pytest.mark.parametrize(
    ("effects", "questions"),
    [
        (("send_other",), [1]),
        (("send_other", "send_other", "send_other"), [3]),
        (("send_other", "network", "fetch"), [3]),
        (("irreversible", "irreversible"), [1, 1]),
        (("send_other", "irreversible", "send_other", "send_other"), [1, 1, 2]),
        (("host", "host"), [1, 1]),
        (("local_write", "local_write"), [1, 1]),
        (("none", "none", "send_owner"), [1, 1, 1]),
    ],
)
def test_what_cannot_be_undone_is_asked_about_by_itself(
    effects: tuple[Effect, ...], questions: list[int]
) -> None:
    assert sizes(*(wanted(effect) for effect in effects)) == questions


def test_what_is_not_of_the_same_tool_does_not_hide_among_others() -> None:
    assert sizes(wanted(), wanted(), wanted(tool="post"), wanted()) == [2, 1, 1]
    assert sizes(wanted(tool="post"), wanted(tool="post"), wanted(), wanted()) == [2, 2]


def test_who_wants_to_be_asked_about_each_is() -> None:
    assert sizes(wanted(), wanted(alone=True), wanted(), wanted()) == [1, 1, 2]
    assert sizes(wanted(alone=True), wanted(alone=True)) == [1, 1]
    assert sizes(wanted(strict=True), wanted(strict=True)) == [1, 1], (
        "this conversation asks before every tool"
    )


def test_a_turn_asks_about_no_more_calls_than_before() -> None:
    assert len(select_joint_asks([wanted()] * 9, 5)) == 5
    assert len(select_joint_asks([wanted()] * 9, 2)) == 2
    assert len(select_joint_asks([wanted()] * 9, 0)) == 1, (
        "one that was asked about before is asked again"
    )


def test_a_question_is_taken_in_at_one_look() -> None:
    long = wanted(text="x" * (MAX_QUESTION_CHARS // 2))
    assert sizes(long, long, wanted()) == [1, 2]
    assert sizes(wanted(text="x" * MAX_QUESTION_CHARS), wanted()) == [1, 1], (
        "what is too long alone is asked about alone"
    )


def test_each_reason_is_said_once() -> None:
    asked = [wanted(), wanted(), wanted("fetch")]
    assert join_reasons(asked) == "it would send_other; it would fetch"
    assert render_joint_context(asked) == (
        "Asked because it would send_other; it would fetch.\nFor ann. It sends something to "
        "others, and this cannot be undone. It fetches a page; the address alone can reveal "
        "information to the site."
    )


def test_to_several_nothing_is_said_for_good() -> None:
    several = make_pending_ask(
        ApprovalAsked("a", "c1", "b1", "x\ny", "r", 1.0, others=(BoundCall("c2", "b2"),)), "b1"
    )
    one = make_pending_ask(ApprovalAsked("a", "c1", "b1", "x", "r", 1.0), "b1")
    words = ("yes", "always", "each", "one by one", "no", "never", "perhaps")
    assert [interpret_answer(several, word) for word in words] == [
        "once",
        "once",
        "each",
        "each",
        "no",
        "no",
        None,
    ]
    assert [interpret_answer(one, word) for word in words] == [
        "once",
        "always",
        None,
        None,
        "no",
        "never",
        None,
    ]


@settings(max_examples=examples(500), deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(EFFECTS), st.text(max_size=40), st.booleans()),
        min_size=1,
        max_size=8,
    )
)
def test_no_text_forges_hides_or_moves_a_call(drawn: list[tuple[Effect, str, bool]]) -> None:
    """Whatever stands in the arguments, a question has one line for each call that its yes binds,
    which is the line that this call would have alone; and only effects that may share one do."""
    asked = [wanted(effect, text, alone=alone) for effect, text, alone in drawn]
    taken = select_joint_asks(asked, ASKS_PER_TURN)
    assert taken == asked[: len(taken)] and 1 <= len(taken) <= ASKS_PER_TURN
    question = "\n".join(each.question for each in taken)
    assert question.splitlines() == [each.question for each in taken]
    texts = [text for _, text, _ in drawn[: len(taken)]]
    assert len(set(question.splitlines())) == len(set(texts)), "two calls look alike"
    if len(taken) > 1:
        assert {each.case.effect for each in taken} <= SHAREABLE_EFFECTS
        assert not any(each.alone for each in taken)


def test_what_may_share_a_question_is_asked_about_at_all() -> None:
    """None of it is free once something from outside was read, and nothing that cannot be undone is
    among it."""
    assert OUTWARD | {"fetch"} >= SHAREABLE_EFFECTS and not SHAREABLE_EFFECTS & {
        "irreversible",
        "host",
        "local_write",
    }
