"""What the Anthropic wire sends, and how it reads documented streams."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from typing import Any

import msgspec
import pytest
from pydantic import TypeAdapter

from deskhand.models.anthropic import AnthropicModel
from deskhand.models.base import Request, TextDelta, ThinkingDelta, ToolSchema
from deskhand.models.settings import Facts
from deskhand.models.transport import Transport
from deskhand.testing.llm import FakeLLM
from deskhand.testing.llm_script import Behaviour, FakeCall
from deskhand.types.messages import File, Image, Message, Text, Thinking, ToolResult, Usage

from .tools import (
    BLOB,
    FACTS,
    KEY,
    ask,
    assistant,
    called,
    items_of,
    open_wire,
    reply_of,
    result,
    user,
)

TOOL = ToolSchema(
    "read_file", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}
)
PICTURE = Image("sha256:a", "image/png", "a.png")
MARK = {"cache_control": {"type": "ephemeral"}}
MINE = "anthropic:m"
NOWHERE = "http://127.0.0.1:9/v1"


@cache
def official() -> TypeAdapter[Any]:
    """What may be sent. It is imported here: that takes seconds, in each process that only looks
    for tests too."""
    from anthropic.types.message_create_params import MessageCreateParamsStreaming

    return TypeAdapter(MessageCreateParamsStreaming)


async def sent(request: Request, facts: Facts = FACTS) -> Any:
    """The body for `request`, after the official types have agreed to it."""
    body = await open_wire("anthropic", Transport(), NOWHERE, facts=facts).encode_request(request)
    assert body.count(b'"cache_control"') <= 4
    found = msgspec.json.decode(body)
    official().validate_python(found)
    return found


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


async def test_a_conversation_as_it_is_sent() -> None:
    talk = ask(
        user("Look", PICTURE, File("sha256:b", "b.pdf", "application/pdf", 7)),
        assistant(
            Thinking("Hm.", MINE, "c2ln"),
            Thinking("", MINE, redacted="cmVk"),
            Thinking("not mine", "anthropic:other", "eHh4"),
            Thinking("nor this", "openai"),
            "I read it.",
            called("call_1", '{"path":  "a"}'),
            called("call_2"),
        ),
        Message("tool", (ToolResult("call_1", (Text("x"), PICTURE)),)),
        Message("tool", (ToolResult("call_2", (Text("no such file"), PICTURE), "error"),)),
        user("And now?"),
        system=("You are a hand.", "Skills: none.", "It is Monday."),
        tools=(TOOL,),
        blob=BLOB,
    )
    data = b64encode(await BLOB("sha256:a")).decode()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    body = await sent(talk)
    assert body == {
        "model": "m",
        "stream": True,
        "max_tokens": 8192,
        "system": [text("You are a hand."), text("Skills: none.") | MARK, text("It is Monday.")],
        "tools": [
            {"name": "read_file", "description": "Read a file.", "input_schema": TOOL.parameters}
        ],
        "messages": [
            {
                "role": "user",
                "content": [
                    text("Look"),
                    image,
                    text("[file b.pdf, application/pdf, 7 bytes]") | MARK,
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
                    {"type": "redacted_thinking", "data": "cmVk"},
                    text("I read it."),
                    {
                        "type": "tool_use",
                        "id": "call_1",
                        "name": "read_file",
                        "input": {"path": "a"},
                    },
                    {"type": "tool_use", "id": "call_2", "name": "read_file", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "call_1", "content": [text("x"), image]},
                    {
                        "type": "tool_result",
                        "tool_use_id": "call_2",
                        "is_error": True,
                        "content": [text("no such file"), text("[image a.png]")],
                    },
                    text("And now?") | MARK,
                ],
            },
        ],
    }


async def test_marks_move_but_the_bytes_before_them_stay() -> None:
    turns = [user("One"), assistant("1"), user("Two"), assistant("2"), user("Three")]
    marked = [
        [
            bool(m["content"][-1].get("cache_control"))
            for m in (await sent(ask(*turns[:n])))["messages"]
        ]
        for n in (1, 3, 5)
    ]
    assert marked == [[True], [True, False, True], [False, False, True, False, True]]


async def test_the_tools_are_marked_where_there_is_no_system() -> None:
    body = await sent(ask(system=(), tools=(TOOL, TOOL)))
    assert [tool.get("cache_control") for tool in body["tools"]] == [None, {"type": "ephemeral"}]


async def test_blank_text_and_empty_messages_are_left_out() -> None:
    body = await sent(
        ask(
            user("One"),
            assistant("\n"),
            user("Two"),
            assistant(called("c", '"x"')),
            result("c", ""),
        )
    )
    assert [[block["type"] for block in m["content"]] for m in body["messages"]] == [
        ["text", "text"],
        ["tool_use"],
        ["tool_result"],
    ]
    assert body["messages"][1]["content"][0]["input"] == {"malformed": "x"}
    assert body["messages"][2]["content"][0]["content"] == [text("[no output]")]


BUDGET = Facts(window=1, max_output=64000, thinking="budget")
ADAPTIVE = Facts(
    window=1, max_output=64000, thinking="adaptive", temperature=False, off_effort="low"
)
UNTHOUGHT = (user("Go."), assistant(called("c")), result("c", "ok"))
THOUGHT = (user("Go."), assistant(Thinking("Hm.", MINE, "c2ln"), called("c")), result("c", "ok"))


@pytest.mark.parametrize(
    ("messages", "fields", "facts", "options"),
    [
        (
            (),
            {"temperature": 0.5, "max_output_tokens": 9},
            BUDGET,
            {"max_tokens": 9, "temperature": 0.5},
        ),
        ((), {"max_output_tokens": 10**9}, BUDGET, {"max_tokens": 64000}),
        ((), {"thinking": "low"}, FACTS, {"max_tokens": 8192}),
        (
            (),
            {"thinking": "medium", "temperature": 0.5},
            BUDGET,
            {"max_tokens": 64000, "thinking": {"type": "enabled", "budget_tokens": 8192}},
        ),
        (
            (),
            {"thinking": "high", "max_output_tokens": 100},
            BUDGET,
            {"max_tokens": 100},
        ),
        (UNTHOUGHT, {"thinking": "low"}, BUDGET, {"max_tokens": 64000}),
        (
            THOUGHT,
            {"thinking": "low"},
            BUDGET,
            {"max_tokens": 64000, "thinking": {"type": "enabled", "budget_tokens": 2048}},
        ),
        (
            UNTHOUGHT,
            {"thinking": "high", "temperature": 0.5},
            ADAPTIVE,
            {
                "max_tokens": 64000,
                "thinking": {"type": "adaptive", "display": "summarized"},
                "output_config": {"effort": "high"},
            },
        ),
        (
            (),
            {"thinking": "max"},
            msgspec.structs.replace(ADAPTIVE, efforts=("low", "medium", "high", "max")),
            {
                "max_tokens": 64000,
                "thinking": {"type": "adaptive", "display": "summarized"},
                "output_config": {"effort": "max"},
            },
        ),
        (
            (),
            {"thinking": "max"},
            BUDGET,
            {"max_tokens": 64000, "thinking": {"type": "enabled", "budget_tokens": 24576}},
        ),
        (
            (),
            {"thinking": "max"},
            msgspec.structs.replace(BUDGET, efforts=("low", "max"), max_output=200_000),
            {"max_tokens": 200_000, "thinking": {"type": "enabled", "budget_tokens": 49152}},
        ),
        ((), {}, ADAPTIVE, {"max_tokens": 64000, "output_config": {"effort": "low"}}),
        ((), {"extra": msgspec.Raw(b'{"top_k": 7}')}, FACTS, {"max_tokens": 8192, "top_k": 7}),
        (
            (),
            {"temperature": 1.7, "top_p": 0.5, "seed": 7, "stop": ("END",)},
            FACTS,
            {"max_tokens": 8192, "temperature": 1.0, "top_p": 0.5, "stop_sequences": ["END"]},
        ),
        (
            (),
            {"tools": (TOOL,), "must_call": "*", "thinking": "high"},
            BUDGET,
            {"max_tokens": 64000, "tool_choice": {"type": "any"}},
        ),
        (
            (),
            {"tools": (TOOL,), "must_call": TOOL.name, "one_call": True},
            FACTS,
            {
                "max_tokens": 8192,
                "tool_choice": {
                    "type": "tool",
                    "name": TOOL.name,
                    "disable_parallel_tool_use": True,
                },
            },
        ),
        (
            (),
            {"tools": (TOOL,), "one_call": True},
            FACTS,
            {
                "max_tokens": 8192,
                "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
            },
        ),
    ],
)
async def test_options(
    messages: tuple[Message, ...], fields: dict[str, Any], facts: Facts, options: dict[str, Any]
) -> None:
    body = await sent(ask(*messages, **fields), facts)
    assert {
        k: v for k, v in body.items() if k not in ("model", "stream", "messages", "system", "tools")
    } == options


async def test_the_body_is_the_same_from_memory(fake: FakeLLM, transport: Transport) -> None:
    request = ask(*THOUGHT, user("More."))
    model = open_wire("anthropic", transport, fake.url)
    first = await model.encode_request(request)
    assert await model.encode_request(request) == first
    await reply_of(model, request)
    assert bytes(fake.requests[0].body) == first
    assert fake.requests[0].headers["x-api-key"] == KEY
    assert fake.requests[0].headers["anthropic-version"] == "2023-06-01"


async def play(transport: Transport, fake: FakeLLM, *events: str) -> AnthropicModel:
    """A model whose provider answers with these events."""
    fake.script(Behaviour(raw="".join(f"event: x\ndata: {event}\n\n" for event in events)))
    model = open_wire("anthropic", transport, fake.url)
    assert isinstance(model, AnthropicModel)
    return model


START = (
    '{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"m",'
    '"stop_reason":null,"usage":{"input_tokens":10,"cache_read_input_tokens":90,"cache_creation_input_tokens":5,'
    '"output_tokens":1}}}'
)
STOP = '{"type":"message_stop"}'


def end(reason: str) -> str:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return msgspec.json.encode(
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 20}}
    ).decode()


async def test_thinking_text_and_a_call_in_their_places(
    fake: FakeLLM, transport: Transport
) -> None:
    # https://docs.anthropic.com/en/docs/build-with-claude/streaming#full-http-stream-response
    model = await play(
        transport,
        fake,
        START,
        '{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}',
        '{"type":"ping"}',
        (
            '{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Two '  # noqa: E501
            '"}}'
        ),
        '{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"ways."}}',
        '{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQB"}}',
        '{"type":"content_block_stop","index":0}',
        '{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"EmwK"}}',
        '{"type":"content_block_stop","index":1}',
        '{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}',
        '{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"I look."}}',
        '{"type":"content_block_stop","index":2}',
        '{"type":"a_kind_of_event_from_the_future","index":2}',
        '{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"read_file",'
        '"input":{}}}',
        '{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}',
        '{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\\"path\\":"}}',
        (
            '{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":" '  # noqa: E501
            ' \\"a\\"}"}}'
        ),
        '{"type":"content_block_stop","index":3}',
        end("tool_use"),
        STOP,
    )
    *deltas, _ = await items_of(model)
    assert deltas == [ThinkingDelta("Two ways."), TextDelta("I look.")]
    reply = await reply_of(model)
    assert [type(part).__name__ for part in reply.message.parts] == [
        "Thinking",
        "Thinking",
        "Text",
        "ToolCall",
    ]
    assert reply.message.parts[:3] == (
        Thinking("Two ways.", MINE, "EqQB"),
        Thinking("", MINE, redacted="EmwK"),
        Text("I look."),
    )
    assert bytes(reply.message.calls[0].arguments) == b'{"path":  "a"}'
    assert reply.usage == Usage(105, 20, 90, 5)
    assert reply.finish == "calls"


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("pause_turn", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "filtered"),
        ("a reason from the future", "stop"),
    ],
)
async def test_stop_reasons(fake: FakeLLM, transport: Transport, reason: str, finish: str) -> None:
    # https://docs.anthropic.com/en/api/handling-stop-reasons
    assert (await reply_of(await play(transport, fake, START, end(reason), STOP))).finish == finish


async def test_half_an_emoji_waits_for_the_other_half(fake: FakeLLM, transport: Transport) -> None:
    model = await play(
        transport,
        fake,
        START,
        '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
        '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\\ud83d"}}',
        '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\\udc4b\\ud83d"}}',
        '{"type":"content_block_stop","index":0}',
        end("end_turn"),
        STOP,
    )
    *deltas, _ = await items_of(model)
    assert deltas == [TextDelta("a👋\ufffd")]


async def test_a_server_that_does_not_stream(fake: FakeLLM, transport: Transport) -> None:
    whole = (
        '{"type":"message","content":[{"type":"text","text":"Four."},{"type":"tool_use","id":"t","name":"n",'
        '"input":{"a":1}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":4}}'
    )
    fake.script(Behaviour(raw=whole, raw_type="application/json"))
    reply = await reply_of(open_wire("anthropic", transport, fake.url))
    assert reply.message.text == "Four."
    assert bytes(reply.message.calls[0].arguments) == b'{"a":1}'
    assert (reply.finish, reply.usage) == ("calls", Usage(3, 4))


async def test_the_fake_is_what_the_official_client_reads(fake: FakeLLM) -> None:
    import anthropic

    asked: dict[str, Any] = {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "2+2?"}],
    }
    told = Behaviour(text="Four.", thinking="Hm.", redacted="cmVk", cached_tokens=7)
    async with anthropic.AsyncAnthropic(
        api_key="k", base_url=fake.url.removesuffix("/v1"), max_retries=0
    ) as client:
        fake.script(told)
        whole = await client.messages.create(**asked)
        assert [block.type for block in whole.content] == ["thinking", "redacted_thinking", "text"]
        async with client.messages.stream(**asked) as stream:
            final = await stream.get_final_message()
        assert [block.type for block in final.content] == ["thinking", "redacted_thinking", "text"]
        assert (final.stop_reason, final.usage.cache_read_input_tokens) == ("end_turn", 7)
        fake.script(Behaviour(calls=(FakeCall("a", '{"x": 1}'), FakeCall("b"))))
        async with client.messages.stream(**asked) as stream:
            final = await stream.get_final_message()
        assert [block.input for block in final.content if block.type == "tool_use"] == [
            {"x": 1},
            {},
        ]
        assert final.stop_reason == "tool_use"
        fake.script(Behaviour(named="529"))
        with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
            await client.messages.create(**asked)
        fake.script(Behaviour(named="overflow_anthropic"))
        with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
            await client.messages.create(**asked)
        fake.script(Behaviour(named="error_event"))
        with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
            async with client.messages.stream(**asked) as stream:
                await stream.get_final_message()


async def test_what_a_model_repeats_of_our_marks_is_not_its_answer(
    fake: FakeLLM, transport: Transport
) -> None:
    pieces = ("[msg_", "id:7] Hel", "lo <ctr", "l46>there", " <ct")
    head = '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":'
    model = await play(
        transport,
        fake,
        START,
        '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
        *(f'{head}"{piece}"}}}}' for piece in pieces),
        '{"type":"content_block_stop","index":0}',
        end("end_turn"),
        STOP,
    )
    *deltas, _ = await items_of(model)
    assert deltas == [TextDelta("Hello there <ct")]
    assert (await reply_of(model)).message.text == "Hello there <ct"
