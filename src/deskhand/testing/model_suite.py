"""What every Model keeps, as checks that need no test framework.

    @pytest.mark.parametrize("check", model_suite.CHECKS)
    async def test_conformance(check): await check(open_mine)

`open_mine(scenario)` is an async context manager that gives a Model which will behave as the
scenario says.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager

import anyio
import msgspec

from ..models.base import (
    ContextMessage,
    Item,
    Model,
    Reply,
    Request,
    TextDelta,
    ThinkingDelta,
    ToolSchema,
)
from ..types.errors import ModelError
from ..types.events import Finish
from ..types.messages import Message, Text, Thinking, ToolCall, ToolResult, clean_text
from .llm_script import FakeCall


class ModelScenario(msgspec.Struct, frozen=True):
    """What the model does: says `text` in pieces, thinks, calls tools, ends for `finish`; or fails
    at once or, with `hangs`, in the middle of its text."""

    text: str = ""
    thinking: str = ""
    calls: tuple[FakeCall, ...] = ()
    finish: Finish = "stop"
    fails: bool = False
    hangs: bool = False


Open = Callable[[ModelScenario], AbstractAsyncContextManager[Model]]
Check = Callable[[Open], Awaitable[None]]

_LONG = "One two three, four five six; seven eight nine. " * 4
_TOOL = ToolSchema(
    "read_file", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}
)


def request(*messages: Message) -> Request:
    """A plain request with these messages, or with one question."""
    asked = messages or (Message("user", (Text("How are you?"),)),)
    shown = tuple(ContextMessage(key, message) for key, message in enumerate(asked, 1))
    return Request(model="m", system=("Be brief.",), messages=shown, tools=(_TOOL,))


async def take(model: Model, asked: Request) -> tuple[list[Item], Reply]:
    """All items of one call, and the reply, which must be the last and only one."""
    items = [item async for item in model.reply(asked)]
    replies = [item for item in items if isinstance(item, Reply)]
    assert len(replies) == 1, f"a call ends with exactly one Reply, here are {len(replies)}"
    assert items[-1] is replies[0], "the Reply comes last"
    return items, replies[0]


async def text_is_the_deltas_joined(open_model: Open) -> None:
    for text in (_LONG, "", " \n", "Grüße 👋🏽 — 日本語", "a\0b"):
        async with open_model(ModelScenario(text=text)) as model:
            items, reply = await take(model, request())
        assert (
            "".join(item.text for item in items if isinstance(item, TextDelta))
            == reply.message.text
        )
        assert reply.message.text == clean_text(text)
        assert reply.message.role == "assistant"
        assert reply.finish == "stop"


async def thinking_is_kept_apart(open_model: Open) -> None:
    async with open_model(ModelScenario(text="Yes.", thinking="Let me see. " * 5)) as model:
        items, reply = await take(model, request())
    kept = "".join(part.text for part in reply.message.parts if isinstance(part, Thinking))
    assert "".join(item.text for item in items if isinstance(item, ThinkingDelta)) == kept
    assert reply.message.text == "Yes."


async def calls_are_whole_and_named(open_model: Open) -> None:
    written = ('{"path":  "a.txt"}', "", "{path: 1}", '{"path": "b', '["x"]')
    calls = tuple(FakeCall("read_file", arguments) for arguments in written)
    async with open_model(ModelScenario(calls=calls, finish="calls")) as model:
        _, reply = await take(model, request())
    found = reply.message.calls
    assert reply.finish == "calls"
    assert len({call.id for call in found} - {""}) == len(written), (
        "every call has an id of its own"
    )
    exact = [bytes(call.arguments) for call in found]
    assert exact[:2] == [b'{"path":  "a.txt"}', b"{}"], (
        "arguments are the bytes that the model wrote; nothing is {}"
    )
    assert [msgspec.json.decode(e) for e in exact[2:4]] == list(written[2:4]), (
        "what is no JSON becomes a JSON string"
    )
    assert exact[4] == b'["x"]'


async def ids_stay_unique_in_a_session(open_model: Open) -> None:
    before = Message("assistant", (ToolCall("same", "read_file", msgspec.Raw(b"{}")),))
    done = Message("tool", (ToolResult("same", (Text("ok"),)),))
    asked = request(Message("user", (Text("Go."),)), before, done)
    async with open_model(
        ModelScenario(calls=(FakeCall("read_file", "{}", "same"),), finish="calls")
    ) as model:
        _, reply = await take(model, asked)
    assert [call.id != "same" for call in reply.message.calls] == [True]


async def length_is_told(open_model: Open) -> None:
    async with open_model(ModelScenario(text="It goes on and", finish="length")) as model:
        _, reply = await take(model, request())
    assert reply.finish == "length"
    assert reply.message.text == "It goes on and"
    assert min(reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cached_tokens) >= 0


async def failures_are_model_errors(open_model: Open) -> None:
    async with open_model(ModelScenario(fails=True)) as model:
        try:
            await take(model, request())
        except ModelError as error:
            assert str(error), "an error says something"
        else:
            raise AssertionError("a failure must be raised")


async def closing_early_ends_the_call(open_model: Open) -> None:
    async with open_model(ModelScenario(text=_LONG, hangs=True)) as model:
        for _ in range(3):
            stream = model.reply(request())
            assert isinstance(stream, AsyncGenerator), "an iterator that can be closed"
            assert isinstance(await anext(stream), TextDelta)
            with anyio.fail_after(2):
                await stream.aclose()


async def cancelling_ends_the_call(open_model: Open) -> None:
    async with open_model(ModelScenario(text=_LONG, hangs=True)) as model:
        with anyio.fail_after(2):
            with anyio.move_on_after(0.1) as scope:
                await take(model, request())
            assert scope.cancelled_caught


async def calls_do_not_disturb_each_other(open_model: Open) -> None:
    async with open_model(ModelScenario(text=_LONG)) as model:
        found: list[str] = []

        async def one() -> None:
            _, reply = await take(model, request())
            found.append(reply.message.text)

        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(one)
    assert found == [_LONG] * 10


async def the_same_request_can_be_sent_again(open_model: Open) -> None:
    asked = request()
    async with open_model(ModelScenario(text="Yes.")) as model:
        first = await take(model, asked)
        assert (await take(model, asked))[1].message == first[1].message


CHECKS: tuple[Check, ...] = (
    text_is_the_deltas_joined,
    thinking_is_kept_apart,
    calls_are_whole_and_named,
    ids_stay_unique_in_a_session,
    length_is_told,
    failures_are_model_errors,
    closing_early_ends_the_call,
    cancelling_ends_the_call,
    calls_do_not_disturb_each_other,
    the_same_request_can_be_sent_again,
)
