"""Shortening: whole exchanges go first, calls keep their results, and the person's last words
stay."""

from __future__ import annotations

from itertools import pairwise

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from deskhand.agent.context import show_messages
from deskhand.agent.fold import fold
from deskhand.agent.masking import MASKED_CHARS, next_mask_point
from deskhand.agent.state import State
from deskhand.models.token_estimate import estimate_tokens
from deskhand.testing.shorten import compact
from deskhand.types import events as e
from deskhand.types.identity import Address, Principal
from deskhand.types.labels import UNNAMED_SOURCE, Label
from deskhand.types.messages import File, Image, Message, Text, ToolCall, ToolResult, Usage

ANN = Principal("ann")
PLACE = Address("chat")
OWNER = Label("owner", source="ann")


def exchange(text: str, *results: str, hint: bool = False, done: bool = True) -> list[e.AnyEvent]:
    """A message, calls with these results one after the other, and the answer."""
    events: list[e.AnyEvent] = [
        e.MessageReceived(1, ANN, PLACE, Message("user", (Text(text, OWNER),)))
    ]
    for i, result in enumerate(results):
        call = ToolCall(f"c{i}", "look", msgspec.Raw(b"{}"))
        events.append(e.ModelReplied(Message("assistant", (call,)), "m", "calls", Usage(900, 0)))
        events.append(e.ToolFinished(ToolResult(call.id, (Text(result),))))
        events += [e.Hinted("wrap_up", "hurry")] if hint else []
    if done:
        events += [
            e.ModelReplied(Message("assistant", (Text("fine"),)), "m"),
            e.TurnEnded("done", (1,)),
        ]
    return events


def state_of(*events: e.AnyEvent) -> State:
    return fold(
        State("s"), (e.Recorded(0, "s", n, 0.0, event) for n, event in enumerate(events, 1))
    )


def size(short: e.Compacted) -> int:
    return sum(estimate_tokens(message) for _, message in short.kept)


def test_oldest_exchanges_go_whole() -> None:
    state = state_of(
        *exchange("one" * 500, "x" * 2000), *exchange("two", "y"), *exchange("three", done=False)
    )
    short = compact(state, 300)
    assert (
        short.kept[1][1].text == "two" and "4 earlier messages" in short.note and short.dropped == 4
    )
    roles = [message.role for _, message in short.kept]
    assert (
        roles == ["user", "user", "assistant", "tool", "assistant", "user"]
        and "4 earlier" in short.kept[0][1].text
    )
    assert size(short) <= 300
    assert compact(state, 100_000).kept[0][1].text.endswith("one"), "what fits stays"


def test_last_message_of_the_person_stays_whatever_we_hinted() -> None:
    state = state_of(
        *exchange("old"), *exchange("the task", *["r" * 900] * 5, hint=True, done=False)
    )
    for budget in (0, 1, 500, 2000):
        kept = [message for _, message in compact(state, budget).kept]
        assert any(
            message.role == "user" and message.text.endswith("the task") for message in kept
        ), budget


def test_long_texts_are_cut_in_the_middle() -> None:
    short = compact(state_of(*exchange("a" * 5000 + "MIDDLE" + "z" * 5000, done=False)), 500)
    (_, message), *_ = short.kept
    assert "a" * 50 in message.text and "z" * 50 in message.text and "cut to fit" in message.text
    assert "MIDDLE" not in message.text and size(short) <= 500 and short.dropped == 0


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 6000), st.lists(st.integers(0, 6000), max_size=4), st.booleans()),
        min_size=1,
        max_size=8,
    ),
    st.integers(0, 4000),
)
def test_pairs_stay_together_and_it_fits_where_it_can(
    shape: list[tuple[int, list[int], bool]], budget: int
) -> None:
    events = [
        event
        for text, results, hint in shape
        for event in exchange("q" * text, *("r" * n for n in results), hint=hint)
    ]
    state = state_of(*events)
    short = compact(state, budget)
    open_calls: list[str] = []
    for _, message in short.kept:
        if message.role == "tool":
            open_calls.remove(next(p.call_id for p in message.parts if isinstance(p, ToolResult)))
        else:
            assert not open_calls
            open_calls = [call.id for call in message.calls]
    assert not open_calls and short.kept[0][1].role == "user"
    budget = budget or sum(estimate_tokens(shown.message) for shown in state.messages) // 2
    last = 1 + 3 * len(shape[-1][1]) + 1
    assert size(short) <= max(budget, last * 80) + 20, (
        "the note, and at most its last exchange, cut as short as may be"
    )
    again = fold(State("s"), [e.Recorded(0, "s", len(events) + 1, 0.0, short)])
    assert [shown.message for shown in again.messages] == [message for _, message in short.kept]


def due(state: State, window: int) -> int:
    return next_mask_point(state.messages, state.masked_up_to, state.context_tokens, window)


def test_mask_moves_far_or_not_at_all() -> None:
    window = 1600
    long = "r" * 200
    state = State("s")
    marks = []
    events = exchange("go", *[long] * 60, done=False)
    for n, event in enumerate(events, 1):
        fold(state, [e.Recorded(0, "s", n, 0.0, event)])
        if isinstance(event, e.ToolFinished) and (up_to := due(state, window)):
            state.masked_up_to = up_to
            marks.append(len([s for s in state.messages if s.message.role == "tool"]))
    assert marks and min(b - a for a, b in pairwise(marks)) >= 2
    assert due(state_of(*exchange("go", *[long] * 3, done=False)), window) == 0, (
        "the last three are never masked"
    )
    assert due(state_of(*exchange("go", *[long] * 60, done=False)), 100_000) == 0, "there is room"


def test_masked_results_keep_their_place() -> None:
    state = state_of(
        *exchange("go", "long " * 100, "short", "long " * 100, done=False), e.Masked(6)
    )
    shown = [s.message for s in show_messages(state) if s.message.role == "tool"]
    texts = [
        part.text for message in shown for part in message.parts if isinstance(part, ToolResult)
    ]
    assert (
        texts[0].startswith("[an earlier result")
        and texts[1] == "short"
        and len(texts[2]) > MASKED_CHARS
    )


def test_only_the_newest_picture_has_pixels() -> None:
    state = state_of(*exchange("go", "a", "b"))
    picture = Image("sha256:" + "0" * 64, "image/png", "shot", Label("untrusted", source="page"))
    for n, call_id in ((100, "p1"), (103, "p2")):
        events = exchange("look", "x", done=False)[:2]
        fold(state, [e.Recorded(0, "s", n + i, 0.0, event) for i, event in enumerate(events)])
        fold(
            state,
            [
                e.Recorded(
                    0, "s", n + 2, 0.0, e.ToolFinished(ToolResult("c0", (Text(call_id), picture)))
                )
            ],
        )
    shown = [s for s in show_messages(state) if s.message.role == "tool"][-2:]
    old, new = (next(p for p in s.message.parts if isinstance(p, ToolResult)) for s in shown)
    assert isinstance(old.parts[1], Text) and old.parts[1].text == "[image: shot, shown earlier]"
    assert old.parts[1].label.source == "page" and isinstance(new.parts[1], Image)
    assert set(state.label.sources) == {"page", UNNAMED_SOURCE}


def test_of_the_pictures_that_a_person_sent_the_newest_has_pixels() -> None:
    """A picture is a picture, whoever it comes from; and two in one message are the newest
    together."""
    events: list[e.AnyEvent] = []
    for number, names in enumerate((("cat", "dog"), ("bird", "fish")), 1):
        pictures = [Image("sha256:" + "0" * 64, "image/png", name, OWNER) for name in names]
        events.append(
            e.MessageReceived(number, ANN, PLACE, Message("user", (Text("look", OWNER), *pictures)))
        )
        events += [
            e.ModelReplied(Message("assistant", (Text("nice"),)), "m"),
            e.TurnEnded("done", (number,)),
        ]
    first, second = (
        shown.message.parts[1:]
        for shown in show_messages(state_of(*events))
        if shown.message.role == "user"
    )
    assert [part.text for part in first if isinstance(part, Text)] == [
        "[image: cat, shown earlier]",
        "[image: dog, shown earlier]",
    ]
    assert [part.name for part in second if isinstance(part, Image)] == ["bird", "fish"]


def test_reactions_and_answers_survive_a_compaction() -> None:
    """A restart reads from the compaction on: it must know what is to be told, and which answers
    were delivered."""
    told: list[e.AnyEvent] = [e.MessageDelivered("s#3.0", "p1")]
    told.append(e.MessageEdited(2, "m1", Message("user", (Text("two", OWNER),))))
    warm = state_of(*exchange("one"), *told)
    short = e.decode_event(e.encode_event(compact(warm, 0)))
    after = [
        e.Recorded(0, "s", 6, 0.0, short),
        e.Recorded(0, "s", 7, 0.0, e.Reacted(3, ANN, "p1", "x", True)),
    ]
    cold = fold(State("s", n=5), after)
    fold(warm, after)
    assert (cold.asides, cold.sent) == (warm.asides, warm.sent) and set(cold.asides) == {
        "edit m1",
        "p1 ann x",
    }
    assert cold.asides["p1 ann x"].text == "[ann reacted x to your answer “fine”]\n"


def test_the_words_of_a_file_are_counted_and_cut() -> None:
    file = File("sha256:0", "a.txt", "text/plain", 8000, OWNER, "begin" + "x" * 7990 + "end")
    event = e.MessageReceived(1, ANN, PLACE, Message("user", (Text("see", OWNER), file)))
    state = state_of(event)
    assert estimate_tokens(event.message) > 2000
    ((_, kept),) = compact(state, 600).kept
    (short,) = [part for part in kept.parts if isinstance(part, File)]
    assert (
        short.shown.startswith("begin") and short.shown.endswith("end") and len(short.shown) < 2100
    )
    assert short.label == OWNER and estimate_tokens(kept) <= 600
