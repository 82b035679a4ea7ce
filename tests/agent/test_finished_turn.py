"""What a turn has answered, as whoever waits for it reads it in the log."""

from __future__ import annotations

import msgspec
import pytest

from deskhand.agent.finished_turn import find_turn_end
from deskhand.testing.bench import ANN
from deskhand.testing.scripted import say
from deskhand.types.events import (
    AnyEvent,
    Finish,
    Hinted,
    MessageReceived,
    ModelReplied,
    Recorded,
    TurnEnded,
)
from deskhand.types.identity import Address
from deskhand.types.messages import Message, Text, ToolCall

CALL = ToolCall("c", "look", msgspec.Raw(b"{}"))


def heard(inbox_id: int) -> MessageReceived:
    said = Message("user", (Text("go"),))
    return MessageReceived(inbox_id, ANN, Address("chat"), said, f"key{inbox_id}")


def replied(text: str, *calls: ToolCall, finish: Finish = "stop") -> ModelReplied:
    return ModelReplied(say(text, *calls), "m", finish)


DONE = TurnEnded("done", (1,))


@pytest.mark.parametrize(
    ("events", "answer"),
    [
        ([replied("Hello."), DONE], "Hello."),
        ([replied("Once upon ", finish="length"), replied("a time."), DONE], "Once upon a time."),
        ([replied("I look.", CALL), replied("Found."), DONE], "Found."),
        ([replied("One.", finish="length"), replied("", CALL), replied("Two."), DONE], "Two."),
        ([replied("No JSON."), Hinted("schema", "again"), replied("{}"), DONE], "{}"),
        ([replied("Hel"), heard(2), replied("Both."), TurnEnded("done", (1, 2))], "Both."),
        ([replied("x"), TurnEnded("failed", (1,), said="It broke.")], "It broke."),
    ],
)
def test_the_answer_of_a_turn(events: list[AnyEvent], answer: str) -> None:
    earlier: list[AnyEvent] = [heard(9), replied("Of another turn."), TurnEnded("done", (9,))]
    log = [
        Recorded(0, "s", n, 0.0, event) for n, event in enumerate([*earlier, heard(1), *events], 1)
    ]
    found = find_turn_end(log, "key1")
    assert found is not None and found.answer == answer and found.n == len(log)
    assert find_turn_end(log[:-1], "key1") is None
