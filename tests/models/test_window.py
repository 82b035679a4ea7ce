"""What a model has no room for is never sent to it, whatever a conversation consists of."""

from __future__ import annotations

from itertools import count

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskhand.models.base import ContextMessage, Request, ToolSchema
from deskhand.models.meter import UsageMeter
from deskhand.models.token_estimate import estimate_tokens, text_size
from deskhand.models.window import (
    KEPT_STEPS,
    estimate_fresh_tokens,
    estimate_request_tokens,
    fit_messages,
    fit_request,
    message_budget,
    request_room,
)
from deskhand.types.errors import ContextOverflow
from deskhand.types.labels import LOCAL, Label
from deskhand.types.limits import Limits
from deskhand.types.messages import Message, Part, Text, ToolCall, ToolResult

from ..examples import examples

OWNER = Label("owner")


def person(text: str) -> Message:
    return Message("user", (Text(text, OWNER),))


def step(number: int, result: str, text: str = "") -> list[Message]:
    call = ToolCall(f"c{number}", "look", msgspec.Raw(b"{}"))
    said: tuple[Part, ...] = (Text(text), call) if text else (call,)
    return [Message("assistant", said), Message("tool", (ToolResult(call.id, (Text(result),)),))]


def request(messages: list[Message], system: str = "", tools: int = 0) -> Request:
    schemas = tuple(ToolSchema(f"t{i}", "does it", {"type": "object"}) for i in range(tools))
    return Request(
        "m",
        (system,),
        tuple(ContextMessage(4 * i, each) for i, each in enumerate(messages, 1)),
        schemas,
    )


words = st.integers(0, 30_000).map(lambda n: "w" * n) | st.text(max_size=200)
turn = st.tuples(words, st.lists(st.tuples(words, words), max_size=12))


@settings(deadline=None, max_examples=examples(200))
@given(
    st.lists(turn, min_size=1, max_size=8),
    st.integers(500, 60_000),
    words,
    st.floats(0.6, 4.0),
    st.booleans(),
)
def test_no_request_is_larger_than_its_window(
    turns: list[tuple[str, list[tuple[str, str]]]],
    window: int,
    system: str,
    scale: float,
    known: bool,
) -> None:
    messages = [message for said, steps in turns for message in [person(said), *_steps(steps)]]
    asked = request(messages, system, 5)
    limits = Limits(window=window)
    context = (
        max(
            int(estimate_request_tokens(asked) * scale)
            - int(scale * estimate_fresh_tokens(asked.messages)),
            1,
        )
        if known
        else 0
    )
    try:
        sent = fit_request(asked, limits, context, scale)
    except ContextOverflow:
        least = estimate_request_tokens(request([person(turns[-1][0][:120])], system, 5))
        assert (least + (KEPT_STEPS + 1) * 200 + 300) * scale > request_room(window, None), (
            "that much would have fitted"
        )
        return
    assert estimate_request_tokens(sent) * scale <= request_room(window, None) + 4 * scale, (
        "it is larger than what there is room for"
    )
    ids = [call.id for shown in sent.messages for call in shown.message.calls]
    results = [
        p.call_id
        for shown in sent.messages
        for p in shown.message.parts
        if isinstance(p, ToolResult)
    ]
    assert ids == results, "a call has lost its result"
    last = next(
        shown.message.text for shown in reversed(sent.messages) if shown.message.role == "user"
    )
    assert last[:50] == turns[-1][0][:50], "what the person said last is gone"


def _steps(steps: list[tuple[str, str]]) -> list[Message]:
    return [message for i, (text, result) in enumerate(steps) for message in step(i, result, text)]


def test_a_long_turn_loses_its_oldest_steps_and_keeps_what_was_asked() -> None:
    steps = [message for i in range(60) for message in step(i, f"result {i} " + "x" * 500)]
    cut = fit_messages(
        [person("old"), Message("assistant", (Text("yes"),)), person("the task"), *steps], 2_000
    )
    kept = [message for _, message in cut.kept]
    assert kept[0].text == "the task" and kept[1].role == "assistant" and kept[-1] == steps[-1]
    assert (
        len(fit_messages([person("the task"), *steps], 1, 1_000_000).kept) == 1 + 2 * KEPT_STEPS
    ), "the last steps stay"
    assert (
        sum(map(estimate_tokens, kept)) <= 2_000
        and len(kept) >= 2 * KEPT_STEPS
        and len(cut.kept) + len(cut.dropped) == 123
    )
    assert all(
        "cut to fit" not in part.text
        for m in kept
        for part in m.parts
        if isinstance(part, ToolResult)
    )


def answer(text: str = "done") -> Message:
    return Message("assistant", (Text(text),))


def test_a_focus_keeps_the_last_exchange_whole() -> None:
    first = [person("one"), *step(1, "r" * 5_000), answer()]
    last = [person("two"), *step(2, "s" * 5_000), answer()]
    cut = fit_messages(first + last, 1, 10_000)
    assert [message for _, message in cut.kept] == last and cut.dropped == (0, 1, 2, 3)


OMISSION = Message("user", (Text("[9 earlier messages are summed up here]\n", LOCAL), Text("so")))


@settings(max_examples=examples(200))
@given(
    st.lists(st.integers(0, 3), max_size=4),
    st.lists(st.integers(0, 3), min_size=1, max_size=6),
    st.integers(1, 3_000),
    st.booleans(),
    st.sampled_from(["", "hint", "interrupted"]),
)
def test_what_people_add_to_a_turn_stays_until_it_is_answered(
    before: list[int], added: list[int], room: int, summed_up: bool, broken_off: str
) -> None:
    """All that they said since the last answer stays, however little of the steps does. A reply
    that was broken off is no answer."""
    numbers = count(1)

    def steps(many: int) -> list[Message]:
        return [message for _ in range(many) for message in step(next(numbers), "r" * 900)]

    messages = [OMISSION] if summed_up else []
    for many in before:
        messages += [person("an old matter"), *steps(many), answer()]
    asked = [person(f"please do m{i}") for i in range(len(added))]
    for said, many in zip(asked, added, strict=True):
        messages += [said, *steps(many)]
        if broken_off:
            messages.append(answer("I will first lo"))
        if broken_off == "hint":
            messages.append(Message("user", (Text("go on", LOCAL),)))
    in_turn = len(asked) if broken_off == "interrupted" else 0

    budget = sum(map(estimate_tokens, asked)) + 200 + 40 * len(asked) + room
    kept = [message for _, message in fit_messages(messages, budget, in_turn=in_turn).kept]
    assert [message for message in kept if message in asked] == asked
    assert sum(map(estimate_tokens, kept)) <= budget


def test_a_prompt_that_fills_the_window_is_refused_in_words() -> None:
    with pytest.raises(ContextOverflow, match=r"prompt and the tools take about .*\(/model\)"):
        fit_request(request([person("hi")], "p" * 40_000), Limits(window=8_000), 0, 1.0)


def test_what_is_only_guessed_refuses_nothing() -> None:
    """Ollama says nowhere how much it was started with."""
    asked = request([person("hi " * 900), *step(1, "x" * 900), person("now")], "p" * 40_000)
    sent = fit_request(asked, Limits(window=8_000, guessed=True), 0, 1.0)
    assert [each.message.text for each in sent.messages] == ["now"] and sent.system == asked.system


def test_the_room_of_the_model_itself_counts() -> None:
    asked = request([person("w" * 9_000), *step(1, "x" * 9_000), person("now")])
    assert fit_request(asked, Limits(window=100_000), 0, 1.0) is asked
    assert (
        estimate_request_tokens(
            fit_request(asked, Limits(window=100_000, model_window=4_000), 0, 1.0)
        )
        <= 3_000
    )


def test_other_scripts_count_by_their_bytes() -> None:
    assert text_size("word") == 4 and text_size("слово") == 10 and text_size("漢字") == 6


def test_how_a_model_counts_is_learned() -> None:
    meter = UsageMeter()
    asked = request([person("w" * 3_500)])
    assert meter.scale("m") == 1.0
    meter.learn("m", asked, 2 * estimate_request_tokens(asked))
    assert 1.9 < meter.scale("m") <= 2.0, "too low is learned at once"
    meter.learn("m", asked, estimate_request_tokens(asked))
    assert 1.7 < meter.scale("m") < 1.9 and meter.scale("other") == 1.0, (
        "too high is learned slowly"
    )
    meter.learn("m", asked, 0)
    meter.learn("m", asked, 10**9)
    assert meter.scale("m") == 4.0


@pytest.mark.parametrize("times", [1, 2, 4, 10])
def test_what_is_full_by_the_providers_count_is_shortened_for_good(times: int) -> None:
    """Also where it counts far more than we estimate: else each turn would shorten it in vain, and
    write all that stays once more."""
    limits = Limits(window=100_000)
    messages = [each for n in range(800) for each in (person(f"{n} " + "w" * 400), *step(n, "ok"))]
    while sum(map(estimate_tokens, messages)) * times > 0.82 * limits.window:
        messages = messages[3:]
    before = sum(map(estimate_tokens, messages))
    budget = message_budget(messages, limits.window * 2 // 5, before * times, limits)
    kept = [message for _, message in fit_messages(messages, budget).kept]
    assert sum(map(estimate_tokens, kept)) <= max(0.6 * before, 300)
