"""What a wire remembers of a session changes nothing that it sends."""

from __future__ import annotations

from typing import Literal, get_args

import anyio
import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from deskhand.models.base import ContextMessage, Encoded
from deskhand.models.settings import Quirks
from deskhand.models.transport import Transport
from deskhand.types.messages import Image, Message, Text, Thinking, ToolResult

from ..examples import examples
from .tools import BLOB, WIRES, ask, assistant, called, open_wire, result, user

Back = Literal["never", "turn", "all"]
PICTURE = Image("sha256:a", "image/png", "a.png")
ANSWERS = (assistant("Yes."), assistant(), assistant(Thinking("Hm.", "openai"), "Well."))


@st.composite
def talks(draw: st.DrawFn) -> tuple[Message, ...]:
    """Turns of messages, calls with their results, and answers, some of them empty or left out."""
    found: list[Message] = []
    for turn in range(draw(st.integers(1, 5))):
        found += [user(f"Question {turn}")] * draw(st.integers(1, 2))
        for step in range(draw(st.integers(0, 3))):
            ids = [f"c{turn}_{step}_{i}" for i in range(draw(st.integers(1, 2)))]
            found.append(assistant(Thinking("So.", "openai"), *(called(name) for name in ids)))
            for name in ids:
                seen = ToolResult(name, (Text("seen"), PICTURE))
                found.append(
                    Message("tool", (seen,)) if draw(st.booleans()) else result(name, "done")
                )
        if draw(st.booleans()):
            found.append(draw(st.sampled_from(ANSWERS)))
    return tuple(found)


@pytest.mark.parametrize("wire", WIRES)
@settings(max_examples=examples(60), deadline=None)
@given(talk=talks(), back=st.sampled_from(get_args(Back)), masked=st.integers(0, 40))
def test_a_growing_talk_is_sent_as_if_it_were_new(
    wire: str, talk: tuple[Message, ...], back: Back, masked: int
) -> None:
    async def check() -> None:
        quirks = Quirks(reasoning_back=back, auth="bearer" if wire == "openai" else "x-api-key")
        model = open_wire(wire, Transport(), "http://127.0.0.1:9/v1", quirks=quirks)
        whole = ask(*talk).messages
        memory = Encoded()
        for length in range(1, len(whole) + 1):
            shown = whole[:length]
            if length > masked:  # from here on an early message has another form
                shown = (ContextMessage(1000, user("[shortened]")), *shown[1:])
            request = ask(messages=shown, encoded=memory, blob=BLOB)
            assert await model.encode_request(request) == await model.encode_request(
                ask(messages=shown, blob=BLOB)
            )

    anyio.run(check)


async def test_what_was_sent_before_is_one_piece() -> None:
    model = open_wire("openai", Transport(), "http://127.0.0.1:9/v1")
    memory = Encoded()
    shown = ask(user("one"), assistant("two"), user("three"), assistant("four")).messages
    await model.encode_request(ask(messages=shown, encoded=memory))
    (start,) = memory.prefixes.values()
    assert start.messages == shown[:3] and start.data.count(b'"role"') == 3
