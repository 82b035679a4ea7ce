"""What a model is shown stays a conversation: each call is followed by its results."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand.tools.context_strategies import (
    MASKED,
    CompactionStrategy,
    ContextStrategy,
    ObservationMaskingStrategy,
    SlidingWindowStrategy,
)
from deskhand.types.messages import Message, Text, ToolCall, ToolResult

STRATEGIES = (
    SlidingWindowStrategy(4),
    CompactionStrategy(6),
    ObservationMaskingStrategy(2),
)


def talk(turns: Sequence[int]) -> list[Message]:
    """A turn for each number, with so many calls."""
    messages = []
    for turn, calls in enumerate(turns):
        messages.append(Message("user", (Text(f"question {turn}"),)))
        for n in range(calls):
            id_ = f"{turn}.{n}"
            call = ToolCall(id_, "look", msgspec.Raw(b"{}"))
            messages.append(Message("assistant", (call,)))
            messages.append(Message("tool", (ToolResult(id_, (Text(f"seen {id_}"),)),)))
        messages.append(Message("assistant", (Text(f"answer {turn}"),)))
    return messages


@given(st.lists(st.integers(0, 6), max_size=8), st.sampled_from(STRATEGIES))
def test_every_call_keeps_its_results(turns: list[int], strategy: ContextStrategy) -> None:
    messages = talk(turns)
    shown = strategy.shorten(messages)
    assert shown[-1:] == messages[-1:]
    calls = [call.id for each in shown for call in each.calls]
    results = [p.call_id for each in shown for p in each.parts if isinstance(p, ToolResult)]
    assert calls == results
    assert not shown or shown[0].role == "user"


def test_the_last_messages_are_shown() -> None:
    shown = SlidingWindowStrategy(2).shorten(talk([0, 0, 0]))
    assert [each.text for each in shown] == ["question 2", "answer 2"]


def test_older_results_are_masked() -> None:
    shown = ObservationMaskingStrategy(1).shorten(talk([3]))
    results = [p.text for each in shown for p in each.parts if isinstance(p, ToolResult)]
    assert results == [MASKED, MASKED, "seen 0.2"]


def test_earlier_messages_are_one() -> None:
    shown = CompactionStrategy(4).shorten(talk([0, 1, 0]))
    assert shown[0].text.splitlines()[:3] == [
        "[6 earlier messages, in short]",
        "- user: question 0",
        "- assistant: answer 0",
    ]
    assert [each.text for each in shown[1:]] == ["question 2", "answer 2"]
    assert CompactionStrategy(20).shorten(talk([1])) == talk([1])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_is_a_plugin(strategy: ContextStrategy) -> None:
    assert list(strategy.get_hooks()) == ["before_llm_call"]
