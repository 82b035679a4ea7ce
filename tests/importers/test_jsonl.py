"""Conversations as lines of role and content: what is written is read back the same, and what
others wrote is read."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskhand.agent.fold import fold
from deskhand.agent.next_step import next_step
from deskhand.agent.state import State
from deskhand.importers.jsonl import (
    MISSING_START,
    Commits,
    JsonlReader,
    before_compaction,
    export_lines,
    read_lines,
)
from deskhand.types.errors import ConfigError
from deskhand.types.events import (
    AnyEvent,
    Compacted,
    HistoryMessage,
    Ledger,
    MessageReceived,
    ModelReplied,
    Recorded,
    TurnEnded,
    decode_event,
    encode_event,
)
from deskhand.types.identity import Address, Principal
from deskhand.types.limits import Limits
from deskhand.types.messages import Message, Text, ToolCall, ToolResult, Usage

from ..examples import examples

ANN = Principal("ann", ("owner",))
HERE = Address("terminal", chat="t")


def file(*lines: dict[str, Any]) -> bytes:
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def read(data: bytes) -> Commits:
    return JsonlReader(ANN, HERE, "file talk.jsonl", 1e9).make_commits(
        read_lines(data, "talk.jsonl")
    )


def recorded(commits: Commits) -> list[Recorded]:
    """The events as the store would give them back."""
    found: list[Recorded] = []
    for at, events in commits:
        found += [
            Recorded(0, "s", len(found) + i + 1, at, decode_event(encode_event(event)))
            for i, event in enumerate(events)
        ]
    return found


def folded(commits: Commits) -> State:
    return fold(State("s"), recorded(commits))


def shown(state: State) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for each in state.messages:
        results = [part.text for part in each.message.parts if isinstance(part, ToolResult)]
        found.append((each.message.role, "".join(results) or each.message.text))
    return found


TALK = file(
    {
        "role": "user",
        "content": "what is in this folder?",
        "timestamp": "2026-01-02T03:04:05+00:00",
    },
    {"role": "assistant", "content": "I look.", "timestamp": "2026-01-02T03:04:06"},
    {"role": "meta", "content": {"usage": {"prompt_tokens": 10, "completion_tokens": 2}}},
    {
        "role": "tool",
        "content": "a.txt",
        "timestamp": 1767323047.5,
        "tool_call_id": "c1",
        "tool_name": "list_directory",
    },
    {"role": "tool", "content": "b.txt", "tool_call_id": "c2", "tool_name": "list_directory"},
    {"role": "assistant", "content": [{"type": "text", "text": "Two files."}]},
    {"role": "user", "content": "thanks", "timestamp": "2026-01-03T00:00:00+00:00"},
)


def test_a_conversation_of_another_system() -> None:
    state = folded(read(TALK))
    assert shown(state) == [
        ("user", "what is in this folder?"),
        ("assistant", "I look."),
        ("tool", "a.txt"),
        ("tool", "b.txt"),
        ("assistant", "Two files."),
        ("user", "thanks"),
    ]
    assert [(call.id, call.name) for call in state.messages[1].message.calls] == [
        ("c1", "list_directory"),
        ("c2", "list_directory"),
    ]
    assert state.usage == Usage(10, 2)
    assert state.turn is None and next_step(state, Limits(), 0.0) is None, "nothing is owed"
    assert (state.label.integrity, state.label.source) == ("untrusted", "file talk.jsonl")
    ends = [each for each in recorded(read(TALK)) if isinstance(each.event, TurnEnded)]
    assert [(each.event.reason, each.at) for each in ends if isinstance(each.event, TurnEnded)] == [
        ("done", 1767398400.0),
        ("stopped", 1767398400.0),
    ]
    assert [each.at for each in recorded(read(TALK))][:3] == [
        1767323045.0,
        1767323046.0,
        1767323047.5,
    ]


def test_times_are_kept_whatever_they_are() -> None:
    """Also one that is zero, and one that is before the one before."""
    stamps = [9.0, "1970-01-01T00:00:00+00:00", None, "nonsense"]
    commits = read(
        file(*({"role": "user", "content": "a", "timestamp": stamp} for stamp in stamps))
    )
    assert [at for at, _ in commits] == [9.0, 0.0, 0.0, 0.0, 0.0]


def test_words_alone_are_of_this_machine() -> None:
    state = folded(
        read(file({"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}))
    )
    assert state.label.integrity == "tool_local"


def test_what_is_written_is_read_back_the_same() -> None:
    first = list(export_lines(recorded(read(TALK))))
    again = list(export_lines(recorded(read(file(*first)))))
    assert again == first
    assert first[0] == {
        "role": "user",
        "content": "what is in this folder?",
        "timestamp": "2026-01-02T03:04:05+00:00",
    }
    assert first[1]["tool_calls"] == [
        {"id": "c1", "name": "list_directory", "arguments": "{}"},
        {"id": "c2", "name": "list_directory", "arguments": "{}"},
    ]
    assert first[2]["role"] == "meta" and first[2]["content"]["usage"]["input_tokens"] == 10
    assert (first[3]["tool_call_id"], first[3]["tool_name"], first[3]["content"]) == (
        "c1",
        "list_directory",
        "a.txt",
    )


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (
            [{"role": "assistant", "content": "hello"}],
            [("user", MISSING_START), ("assistant", "hello")],
        ),
        (
            [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}],
            [("user", "a"), ("user", "b")],
        ),
        (
            [
                {"role": "system", "content": "be good"},
                {"role": "user", "content": None},
                {"role": "odd"},
            ],
            [("user", "")],
        ),
        (
            [{"role": "tool", "content": "orphan"}, {"role": "user", "content": "a"}],
            [("user", MISSING_START), ("assistant", ""), ("tool", "orphan"), ("user", "a")],
        ),
        (
            [
                {"role": "user", "content": "a"},
                {"role": "assistant", "content": "x", "tool_calls": [{"name": "t"}]},
            ],
            [("user", "a"), ("assistant", "x"), ("tool", "its result is not in the file")],
        ),
        (
            [
                {"role": "user", "content": "a\x00b\ud800"},
                {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": {"x": 1}}}],
                },
                {"role": "tool", "tool_call_id": "1", "content": {"y": 2}},
                {"role": "tool", "tool_call_id": "1", "content": "twice"},
            ],
            [
                ("user", "a\ufffdb?"),
                ("assistant", ""),
                ("tool", '{"y": 2}'),
                ("assistant", ""),
                ("tool", "twice"),
            ],
        ),
    ],
)
def test_gaps_are_closed(lines: list[dict[str, Any]], wanted: list[tuple[str, str]]) -> None:
    state = folded(read(file(*lines)))
    assert shown(state) == wanted
    assert state.calls == {} and state.turn is None


@pytest.mark.parametrize(
    "arguments", ["{", "NaN", "[" * 2000 + "]" * 2000, "[" * 950 + "]" * 950, "\ud800", ""]
)
def test_arguments_that_are_no_json_become_text(arguments: str) -> None:
    call = {"id": "1", "name": "f", "arguments": arguments}
    commits = read(
        file({"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": [call]})
    )
    (reply,) = [each.event for each in recorded(commits) if isinstance(each.event, ModelReplied)]
    assert isinstance(msgspec.json.decode(reply.message.calls[0].arguments), str)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "holds no message"),
        (b'{"role": "meta"}\n', "holds no message"),
        (b'{"role": "user"}\nnonsense\n', "line 2"),
        (b"[1]\n", "line 1"),
        (b'{"content": "x"}\n', "line 1: Object missing required field `role`"),
        (b"[" * 100_000, "line 1"),
    ],
)
def test_what_is_no_conversation_is_said(data: bytes, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read(data)


roles = st.sampled_from(["user", "assistant", "tool", "meta", "system"])
ids = st.sampled_from([None, "", "a", "b"])
contents = st.one_of(
    st.none(),
    st.text(max_size=5),
    st.dictionaries(st.text(max_size=3), st.integers()),
    st.integers(),
)
calls = st.one_of(
    st.none(),
    st.lists(st.fixed_dictionaries({"id": ids, "name": ids, "arguments": contents}), max_size=3),
)
stamps = st.one_of(st.none(), st.text(max_size=4), st.floats())
lines = st.lists(
    st.builds(
        lambda role, content, stamp, call_id, name, made: {
            "role": role,
            "content": content,
            "timestamp": stamp,
            "tool_call_id": call_id,
            "tool_name": name,
            "tool_calls": made,
        },
        roles,
        contents,
        stamps,
        ids,
        ids,
        calls,
    ),
    min_size=1,
    max_size=8,
)


@settings(deadline=None, max_examples=examples(200))
@given(lines)
def test_any_lines_make_a_conversation_that_can_go_on(lines: list[dict[str, Any]]) -> None:
    data = file(*lines)
    if any(line["role"] in ("user", "assistant") for line in lines):
        state = folded(read(data))
        assert state.calls == {} and next_step(state, Limits(), 0.0) is None
        assert encode_commits(read(data)) == encode_commits(read(data)), "always the same events"
        first = list(export_lines(recorded(read(data))))
        assert list(export_lines(recorded(read(file(*first))))) == first


def encode_commits(commits: Commits) -> list[bytes]:
    return [encode_event(event) for _, events in commits for event in events]


def test_a_conversation_as_it_was_before_it_was_compacted() -> None:
    """All of it, also what the time before had left out of the model's view."""

    def said(text: str) -> AnyEvent:
        return MessageReceived(1, ANN, HERE, Message("user", (Text(text),)), text)

    left_out = Compacted((), "[2 earlier messages are summed up here]", 2, Ledger())
    gone_back = Compacted((), "", 0, Ledger())
    made = [said("one"), left_out, said("two"), gone_back, said("three"), left_out, said("four")]
    events = [Recorded(n, "s", n, float(n), event) for n, event in enumerate(made, 1)]

    def texts(number: int) -> list[str]:
        return [line["content"] for line in export_lines(before_compaction(events, number))]

    assert texts(1) == texts(-2) == ["one"]
    assert texts(2) == texts(-1) == ["one", "two", "three"]
    for number in (0, 3, -3):
        with pytest.raises(
            ConfigError, match=f"was compacted 2 times: there is no compaction {number}"
        ):
            before_compaction(events, number)
    with pytest.raises(ConfigError, match="0 times"):
        before_compaction(events[:1], 1)


def test_what_a_program_says_was_said_before_is_written_too() -> None:
    call = ToolCall("c1", "weather", msgspec.Raw(b'{"place":"Ulm"}'))
    earlier = (
        Message("user", (Text("Will it rain?"),)),
        Message("assistant", (Text("I look."), call)),
        Message("tool", (ToolResult("c1", (Text("dry"),)),)),
        Message("assistant", (Text("No."),)),
    )
    events = [HistoryMessage(1, ANN, each) for each in earlier]
    log = [Recorded(i, "s", i, 1e9, event) for i, event in enumerate(events, 1)]

    lines = list(export_lines(log))

    assert [(line["role"], line["content"]) for line in lines] == [
        ("user", "Will it rain?"),
        ("assistant", "I look."),
        ("tool", "dry"),
        ("assistant", "No."),
    ]
    assert lines[1]["tool_calls"] == [
        {"id": "c1", "name": "weather", "arguments": '{"place":"Ulm"}'}
    ]
    assert (lines[2]["tool_call_id"], lines[2]["tool_name"]) == ("c1", "weather")
