"""What a program brings along comes through the Door as everything else does: labelled, cleaned,
without secrets."""

from __future__ import annotations

from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from deskhand.gateway.inbound_body import (
    HISTORY_CHARS,
    HISTORY_MESSAGES,
    history_problem,
    normalize_body,
)
from deskhand.secrets.inbound_redaction import redact_body
from deskhand.types.identity import Body, Principal, Said, ToolResults
from deskhand.types.labels import OWNER, Label
from deskhand.types.messages import Image, Message, Text, ToolCall, ToolResult

ANN = Principal("ann", ("owner",))
RESULT = ToolResult("c1", (Text("found\0 it", Label("owner", source="client tool find")),))
CALL = ToolCall("c1", "find", msgspec.Raw(b'{"word":"hunter2"}'))
HISTORY = (
    Message(
        "user",
        (
            Text("Look.", OWNER),
            Image("sha256:a", "image/png", "", Label("untrusted", source="a page")),
        ),
    ),
    Message("assistant", (Text("I look.", OWNER), CALL)),
    Message("tool", (RESULT,)),
)


def labels(message: Message) -> list[tuple[str, str]]:
    parts: list[Any] = [
        piece for part in message.parts for piece in getattr(part, "parts", (part,))
    ]
    return [
        (part.label.integrity, part.label.source)
        for part in parts
        if not isinstance(part, ToolCall)
    ]


def test_nothing_of_a_history_has_a_label_that_its_program_chose() -> None:
    said = normalize_body(Said(Message("user", (Text("And now?"),)), HISTORY), ANN)
    assert isinstance(said, Said)
    person, assistant, tool = said.earlier
    assert labels(person) == [("owner", "ann"), ("untrusted", "a page")]
    assert labels(assistant) == [("untrusted", "the client's history")] and assistant.calls == (
        CALL,
    )
    assert labels(tool) == [("untrusted", "client tool find")]
    assert "\0" not in str(tool) and labels(said.message) == [("owner", "ann")]


def test_a_result_at_the_end_and_returned_results_are_from_outside() -> None:
    said = normalize_body(Said(HISTORY[2], HISTORY[:2]), ANN)
    assert isinstance(said, Said) and labels(said.message) == [("untrusted", "client tool find")]
    bare = ToolResult("c2", (Text("x", OWNER), Image("sha256:b", "image/png", "", OWNER)))
    given = normalize_body(ToolResults((RESULT, bare), Message("user", (Text("go on"),))), ANN)
    assert isinstance(given, ToolResults) and given.message is not None
    assert [labels(Message("tool", (each,))) for each in given.results] == [
        [("untrusted", "client tool find")],
        [("untrusted", "the client's history")],
    ]
    assert labels(given.message) == [("owner", "ann")]


def filled(kind: Any, deep: int = 0) -> st.SearchStrategy[Any]:
    """Values of this type in which every string holds the secret."""
    origin = get_origin(kind)
    inside = get_args(kind)
    if kind is str:
        return st.just("so hunter2 it is")
    if kind is Any:
        return st.sampled_from(
            ["hunter2", ["hunter2", {"a hunter2": 1}], {"hunter2": {"deep": ["hunter2"]}}, 5, None]
        )
    if kind is msgspec.Raw:
        return st.just(msgspec.Raw(b'{"hunter2": ["hunter2"]}'))
    if origin is Annotated:
        return filled(inside[0], deep)
    if origin in (Union, UnionType):
        return st.one_of([filled(each, deep) for each in inside])
    if origin in (tuple, list):
        return st.lists(filled(inside[0], deep + 1), max_size=2 if deep < 3 else 0).map(origin)
    if origin is dict:
        return st.dictionaries(filled(str), filled(inside[1], deep + 1), max_size=2)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = get_type_hints(kind)
        return st.builds(
            kind, **{name: filled(hints[name], deep + 1) for name in kind.__struct_fields__}
        )
    if origin is Literal:
        return st.sampled_from(inside)
    return st.from_type(kind)


@example(Said(Message("user", (Text("hunter2", Label(source="hunter2")),))))
@example(Said(Message("user", (Text("a"), Text("b", Label(by=("hunter2",)))))))
@given(filled(Body))
def test_no_string_of_what_is_handed_in_keeps_a_secret(body: Any) -> None:
    """Whatever is added to a body: fields, and what lies in them."""
    stored = msgspec.json.encode(
        redact_body(body, lambda text: text.replace("hunter2", "[secret]"))
    )
    assert b"hunter2" not in stored


def test_a_history_without_end_is_refused() -> None:
    long = Message("user", (Text("x" * 1_000_000),))
    assert "characters" in history_problem((long,) * (HISTORY_CHARS // 1_000_000 + 1))
    assert "messages" in history_problem((HISTORY[0],) * (HISTORY_MESSAGES + 1))
    assert history_problem(HISTORY) == ""
