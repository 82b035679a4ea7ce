"""What a small model needs to know of a conversation, read from its messages; and its prompts."""

from __future__ import annotations

import ast
import builtins
import io
from datetime import date

import msgspec
import pytest

from deskhand.models.base import ContextMessage
from deskhand.models.shim import PROMPTS, WINDOW
from deskhand.models.shim_programs import extract_program
from deskhand.models.shim_prompts import ASSISTANT_SHOTS, PROGRAM_SHOTS, REQUEST_KINDS, SORTER_SHOTS
from deskhand.models.shim_turn import (
    Did,
    Move,
    ShimTurn,
    clip_text,
    estimate_text_tokens,
    parse_objects,
    read_turn,
    render_earlier,
)
from deskhand.tools.program.inside.assistant import Assistant
from deskhand.tools.program.inside.folder import Folder
from deskhand.tools.program.inside.main import make_vocabulary
from deskhand.types.labels import LOCAL, OWNER, UNTRUSTED, Label
from deskhand.types.messages import Message, Text, ToolCall, ToolResult
from deskhand.types.turn import MEMORIES_PREFIX

STAMP = Text("[Monday, 2026-11-23 10:00] ", LOCAL)
SNAPSHOT = "\n".join(
    (
        MEMORIES_PREFIX,
        "Looked up:",
        "- #4 (2026-11-20) The wifi password is blue-otter-42",
        "- #9 (2026-11-21) Ann likes tea",
        "</context_snapshot>",
    )
)


def test_the_turn_is_read_from_the_messages() -> None:
    call = ToolCall("c1", "rehearse_program", msgspec.Raw(b'{"program":"say(1)"}'))
    messages = (
        Message("user", (STAMP, Text("hello", OWNER))),
        Message("assistant", (Text("Hi!"),)),
        Message("user", (STAMP, Text("write x to a", OWNER))),
        Message("assistant", (call, msgspec.structs.replace(call, id="c2"))),
        Message("tool", (ToolResult("c1", (Text("ok"),)),)),
        Message("user", (Text("You have 3 steps left.", LOCAL),)),
    )
    assert read_turn(
        [ContextMessage(n, message) for n, message in enumerate(messages)]
    ) == ShimTurn(
        "write x to a",
        2,
        (("user", "hello"), ("assistant", "Hi!")),
        (Did(Move("rehearse_program", {"program": "say(1)"}), "ok", "ok"),),
        today="Monday 2026-11-23",
    )


@pytest.mark.parametrize("label", [LOCAL, UNTRUSTED])
def test_what_memory_found_is_known_and_is_not_what_was_said(label: Label) -> None:
    turn = read_turn(
        [
            ContextMessage(
                4, Message("user", (Text("what is the password?", OWNER), Text(SNAPSHOT, label)))
            )
        ]
    )
    assert turn.request == "what is the password?"
    assert turn.known == ("The wifi password is blue-otter-42", "Ann likes tea")


def test_without_a_person_the_last_message_is_the_request() -> None:
    assert read_turn([]).request == ""
    assert read_turn([ContextMessage(8, Message("user", (Text("Go on.", LOCAL),)))]) == ShimTurn(
        "Go on.", 8
    )


def test_what_was_said_before_is_told_in_pairs_and_not_all_of_it() -> None:
    pairs = [
        pair
        for n in range(9)
        for pair in (("user", f"question {n}"), ("assistant", f"answer {n} " + "x" * 5000))
    ]
    told = render_earlier(ShimTurn("now", 4, tuple(pairs)))
    assert "question 8" in told and "question 0" not in told and estimate_text_tokens(told) < 1200
    assert (
        render_earlier(ShimTurn("now", 4, (("user", "never answered"),)))
        == ""
        == render_earlier(ShimTurn("now", 4))
    )


@pytest.mark.parametrize("text", ["x" * 50_000, "日本" * 9_000, "short"])
def test_a_text_is_cut_in_its_middle(text: str) -> None:
    cut = clip_text(text, 300)
    assert estimate_text_tokens(cut) <= 450 and cut[:5] == text[:5] and cut[-5:] == text[-5:]
    assert (cut == text) is (text == "short")


def test_objects_are_found_in_what_was_written() -> None:
    assert list(parse_objects('So {this}: {"a": {"b": 1}} and {"c": 2')) == [
        {"a": {"b": 1}},
        {"b": 1},
    ]


def test_the_prompts_leave_room_for_a_request() -> None:
    for prompt in PROMPTS:
        whole = prompt.system + "".join(said + answer for said, answer in prompt.shots)
        assert len(whole) / 3 < WINDOW * 0.7
    assert sorted(prompt.slot for prompt in PROMPTS) == [0, 1, 2]
    assert [prompt.slot for prompt in PROMPTS] == [0, 1, 2], "they are filled by their place"


def test_the_examples_sort_by_words_that_there_are() -> None:
    assert {word for _, word in SORTER_SHOTS} == set(REQUEST_KINDS)


@pytest.mark.parametrize(("asked", "answer"), (*PROGRAM_SHOTS, *ASSISTANT_SHOTS))
def test_the_examples_use_what_there_is(asked: str, answer: str) -> None:
    """A program that is shown to the model calls functions that exist, or those of Python."""
    tree = ast.parse(extract_program(answer))
    called = {
        n.func.id
        for n in ast.walk(tree)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
    }
    there = {
        *make_vocabulary(Folder(), Assistant(()), date(2026, 11, 23), io.StringIO()),
        *dir(builtins),
    }
    assert called <= there and asked.strip()
