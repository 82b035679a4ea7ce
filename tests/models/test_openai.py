"""What the OpenAI wire sends, and what it makes of the answers of many providers."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import msgspec
import openai
import pytest
from openai.types.chat import completion_create_params as params
from pydantic import TypeAdapter

from deskhand.models.base import Request, TextDelta, ThinkingDelta, ToolSchema
from deskhand.models.openai import OpenAIModel
from deskhand.models.settings import Facts, Quirks
from deskhand.models.transport import Transport
from deskhand.models.wire import MAX_PROMPTS
from deskhand.testing.llm import FakeLLM
from deskhand.testing.llm_script import Behaviour, CallStyle, FakeCall
from deskhand.types.client import ANY_OBJECT
from deskhand.types.errors import ModelError, ModelUnavailable
from deskhand.types.messages import (
    Audio,
    File,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    clean_text,
)

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

OFFICIAL: TypeAdapter[Any] = TypeAdapter(params.CompletionCreateParamsStreaming)
TOOL = ToolSchema(
    "read_file", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}
)
PICTURE = Image("sha256:a", "image/png", "a.png")


async def sent(request: Request, quirks: Quirks | None = None, facts: Facts = FACTS) -> Any:
    """The body for `request`, after the official types have agreed to it."""
    model = open_wire("openai", Transport(), "http://127.0.0.1:9/v1", quirks=quirks, facts=facts)
    found = msgspec.json.decode(await model.encode_request(request))
    OFFICIAL.validate_python(found)
    return found


def a_long_talk() -> Request:
    return ask(
        user(
            "Look at this",
            PICTURE,
            File("sha256:b", "b.pdf", "application/pdf", 7),
            Audio("sha256:c", "audio/ogg"),
        ),
        assistant(
            Thinking("Hm.", "openai"),
            "I read it.",
            called("call_1", '{"path":  "a"}'),
            called("call_2"),
        ),
        Message("tool", (ToolResult("call_1", (Text("x"), PICTURE)),)),
        Message("tool", (ToolResult("call_2", (Text("no such file"),), "error"),)),
        user("And now?"),
        system=("You are a hand.", "It is Monday."),
        tools=(TOOL,),
        blob=BLOB,
    )


async def test_a_conversation_as_it_is_sent() -> None:
    body = await sent(a_long_talk())
    encoded = b64encode(await BLOB("sha256:a")).decode()
    data = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{encoded}"}}
    assert body == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [
            {"role": "system", "content": "You are a hand.\n\nIt is Monday."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look at this"},
                    data,
                    {"type": "text", "text": "[file b.pdf, application/pdf, 7 bytes]"},
                    {"type": "text", "text": "[voice message, not transcribed]"},
                ],
            },
            {
                "role": "assistant",
                "content": "I read it.",
                "tool_calls": [
                    {"id": i, "type": "function", "function": {"name": "read_file", "arguments": a}}
                    for i, a in (("call_1", '{"path":  "a"}'), ("call_2", "{}"))
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "x"},
            {"role": "tool", "tool_call_id": "call_2", "content": "[error] no such file"},
            {
                "role": "user",
                "content": [{"type": "text", "text": "Images of the tool results above:"}, data],
            },
            {"role": "user", "content": "And now?"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "read_file",
                    "description": "Read a file.",
                    "parameters": TOOL.parameters,
                },
            }
        ],
    }


async def test_the_body_is_the_same_from_memory() -> None:
    model = open_wire("openai", Transport(), "http://127.0.0.1:9/v1")
    request = a_long_talk()
    first = await model.encode_request(request)
    assert len(request.encoded.messages) == 6
    assert await model.encode_request(request) == first
    forgetful = msgspec.structs.replace(request, blob=None)
    assert await model.encode_request(forgetful) == first, "an image is not read twice"


@pytest.mark.parametrize("wire", ["openai", "responses"])
@pytest.mark.parametrize(
    "system", [("",), ('a "b"\n\\', "c\0"), ("first", "", "é\udc00"), ("", "", "last")]
)
async def test_a_prompt_is_the_same_from_memory(wire: str, system: tuple[str, ...]) -> None:
    """What stands first is kept as JSON, and nobody can tell."""
    model = open_wire(wire, Transport(), "http://127.0.0.1:9/v1")
    asked = ask(user("hello"), system=system)
    first = await model.encode_request(asked)
    assert await model.encode_request(asked) == first
    body = msgspec.json.decode(first)
    told = body.get("instructions", "") if wire == "responses" else body["messages"][0]["content"]
    assert told == clean_text("\n\n".join(filter(None, system)))
    for number in range(2 * MAX_PROMPTS):
        await model.encode_request(ask(user("hello"), system=(f"another {number}", system[-1])))
    assert await model.encode_request(asked) == first


async def test_a_model_without_eyes_reads_names() -> None:
    body = await sent(a_long_talk(), facts=Facts(window=8192))
    assert body["messages"][1]["content"].splitlines()[:2] == ["Look at this", "[image a.png]"]
    assert body["messages"][3]["content"] == "x\n[image a.png]"


async def test_what_others_wrote_is_made_fit_for_this_provider() -> None:
    odd = ToolCall("id with spaces", "no such tool!", msgspec.Raw(b'"{path"'))
    talk = (user("Go."), assistant(odd), result("id with spaces", "unknown tool"))
    call = (await sent(ask(*talk)))["messages"][2]["tool_calls"][0]
    assert call["function"] == {"name": "no_such_tool_", "arguments": '{"malformed":"{path"}'}
    for quirks, length in ((None, 29), (Quirks(call_ids="nine"), 9)):
        messages = (await sent(ask(*talk), quirks))["messages"]
        given = messages[2]["tool_calls"][0]["id"]
        assert len(given) == length
        assert messages[3]["tool_call_id"] == given


THOUGHTS = (
    user("One"),
    assistant(Thinking("old", "openai"), "1"),
    user("Two"),
    assistant(Thinking("new", "openai"), Thinking("theirs", "anthropic:c"), called("call_1")),
    result("call_1", "ok"),
)


@pytest.mark.parametrize(
    ("quirks", "seen"),
    [
        (Quirks(), [None, None]),
        (Quirks(reasoning_back="turn"), [None, "new"]),
        (Quirks(reasoning_back="all"), ["old", "new"]),
        (Quirks(reasoning_back="all", reasoning_field="reasoning"), ["old", "new"]),
    ],
)
async def test_reasoning_goes_back_by_the_providers_rule(
    quirks: Quirks, seen: list[str | None]
) -> None:
    body = await sent(ask(*THOUGHTS), quirks)
    mine = [m for m in body["messages"] if m["role"] == "assistant"]
    assert [m.get(quirks.reasoning_field) for m in mine] == seen


async def test_a_thought_signature_goes_back_with_its_call() -> None:
    mark = Thinking("", "openai", signature="c2ln")
    talk = ask(
        user("Go."),
        assistant(mark, called("call_1"), called("call_2")),
        result("call_1", "x"),
        result("call_2", "y"),
    )
    first, second = (await sent(talk, Quirks(call_signatures=True)))["messages"][2]["tool_calls"]
    assert first["extra_content"] == {"google": {"thought_signature": "c2ln"}}
    assert "extra_content" not in second
    assert "extra_content" not in (await sent(talk))["messages"][2]["tool_calls"][0]


THINKS = Facts(window=1, thinking="effort", temperature=False)
FORM = {"type": "object", "properties": {"a": {"type": "integer"}}}
SCHEMAS = Quirks(answer_schema="json_schema")
DEEP = Facts(window=1, thinking="effort", efforts=("low", "high", "max"))
SWITCH = Facts(window=1, thinking="switch")
ENABLED = {"thinking": {"type": "enabled"}}
NONE = Facts(window=1, thinking="effort", off_effort="none", tools_effort="none")


@pytest.mark.parametrize(
    ("fields", "quirks", "facts", "options"),
    [
        (
            {"max_output_tokens": 9, "temperature": 0.5},
            Quirks(),
            FACTS,
            {"max_tokens": 9, "temperature": 0.5},
        ),
        (
            {"max_output_tokens": 9},
            Quirks(max_tokens="max_completion_tokens"),
            FACTS,
            {"max_completion_tokens": 9},
        ),
        ({"thinking": "high"}, Quirks(), FACTS, {}),
        ({"thinking": "high", "temperature": 0.5}, Quirks(), THINKS, {"reasoning_effort": "high"}),
        ({}, Quirks(), THINKS, {}),
        ({}, Quirks(), NONE, {"reasoning_effort": "none"}),
        ({"thinking": "high", "tools": (TOOL,)}, Quirks(), NONE, {"reasoning_effort": "none"}),
        ({"thinking": "low"}, Quirks(effort="reasoning"), THINKS, {"reasoning": {"effort": "low"}}),
        ({"thinking": "max"}, Quirks(), THINKS, {"reasoning_effort": "high"}),
        ({"thinking": "max"}, Quirks(), DEEP, {"reasoning_effort": "max"}),
        ({"thinking": "max"}, Quirks(effort="reasoning"), DEEP, {"reasoning": {"effort": "max"}}),
        (
            {"thinking": "medium"},
            Quirks(effort="thinking"),
            DEEP,
            {**ENABLED, "reasoning_effort": "high"},
        ),
        (
            {"thinking": "max"},
            Quirks(effort="thinking"),
            DEEP,
            {**ENABLED, "reasoning_effort": "max"},
        ),
        ({"thinking": "max"}, Quirks(effort="thinking"), SWITCH, ENABLED),
        ({}, Quirks(effort="thinking"), NONE, {**ENABLED, "reasoning_effort": "none"}),
        ({}, Quirks(effort="thinking"), THINKS, {"thinking": {"type": "disabled"}}),
        (
            {},
            Quirks(effort="template"),
            THINKS,
            {"chat_template_kwargs": {"enable_thinking": False}},
        ),
        ({"thinking": "low"}, Quirks(effort=""), THINKS, {}),
        ({"extra": msgspec.Raw(b'{"seed": 7}')}, Quirks(), FACTS, {"seed": 7}),
        (
            {"top_p": 0.5, "seed": 7, "stop": ("END",)},
            Quirks(),
            FACTS,
            {"top_p": 0.5, "seed": 7, "stop": ["END"]},
        ),
        ({"must_call": "*", "one_call": True}, Quirks(), FACTS, {}),
        (
            {"tools": (TOOL,), "must_call": "*", "one_call": True},
            Quirks(),
            FACTS,
            {"tool_choice": "required", "parallel_tool_calls": False},
        ),
        (
            {"tools": (TOOL,), "must_call": "a b"},
            Quirks(),
            FACTS,
            {"tool_choice": {"type": "function", "function": {"name": "a_b"}}},
        ),
        ({"form": FORM}, Quirks(), FACTS, {}),
        (
            {"form": FORM},
            Quirks(answer_schema="json_object"),
            FACTS,
            {"response_format": {"type": "json_object"}},
        ),
        ({"form": ANY_OBJECT}, SCHEMAS, FACTS, {"response_format": {"type": "json_object"}}),
        (
            {"form": FORM, "strict_form": True},
            SCHEMAS,
            FACTS,
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "answer", "schema": FORM, "strict": True},
                }
            },
        ),
    ],
)
async def test_options(
    fields: dict[str, Any], quirks: Quirks, facts: Facts, options: dict[str, Any]
) -> None:
    body = await sent(ask(**fields), quirks, facts)
    for common in ("model", "stream", "messages", "stream_options", "tools"):
        body.pop(common, None)
    assert body == options
    assert "stream_options" not in await sent(ask(), Quirks(stream_usage=False))


async def test_the_key_goes_where_the_provider_wants_it(
    fake: FakeLLM, transport: Transport
) -> None:
    for auth, header, value in (
        ("bearer", "authorization", f"Bearer {KEY}"),
        ("api-key", "api-key", KEY),
    ):
        fake.script()
        await reply_of(
            open_wire("openai", transport, fake.url, quirks=msgspec.convert({"auth": auth}, Quirks))
        )
        assert fake.requests[0].headers[header] == value


async def test_the_connection_is_used_again(fake: FakeLLM, transport: Transport) -> None:
    for wire in ("openai", "anthropic", "openai"):
        await reply_of(open_wire(wire, transport, fake.url))
    assert fake.connections == 1


@pytest.mark.parametrize(
    "style", ["fragments", "whole", "object", "no_index", "no_id", "same_index", "repeat_name"]
)
async def test_parallel_calls_however_they_are_streamed(
    fake: FakeLLM, transport: Transport, style: CallStyle
) -> None:
    calls = (
        FakeCall("read_file", '{"path":"a","n":[1,2]}'),
        FakeCall("read_file", '{"path":"b"}'),
        FakeCall("stop", "{}"),
    )
    fake.script(Behaviour(calls=calls, call_style=style))
    reply = await reply_of(open_wire("openai", transport, fake.url))
    assert [(c.name, bytes(c.arguments).decode()) for c in reply.message.calls] == [
        (c.name, c.arguments) for c in calls
    ]
    assert len({call.id for call in reply.message.calls}) == 3
    assert reply.finish == "calls"


async def play(transport: Transport, fake: FakeLLM, *chunks: str) -> OpenAIModel:
    """A model whose provider answers with these payloads."""
    stream = "".join(f"data: {chunk}\n\n" for chunk in chunks)
    fake.script(Behaviour(raw=stream))
    model = open_wire("openai", transport, fake.url)
    assert isinstance(model, OpenAIModel)
    return model


async def test_deepseek_reasons_aloud(fake: FakeLLM, transport: Transport) -> None:
    # https://api-docs.deepseek.com/api/create-chat-completion
    model = await play(
        transport,
        fake,
        (
            '{"choices":[{"index":0,"delta":{"role":"assistant","content":null,"reasoning_content":"Let '  # noqa: E501
            '"}}]}'
        ),
        '{"choices":[{"index":0,"delta":{"content":null,"reasoning_content":"me see."}}]}',
        '{"choices":[{"index":0,"delta":{"content":"Four.","reasoning_content":null}}]}',
        '{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,'
        '"completion_tokens":5,"total_tokens":14,"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":5}}',
        "[DONE]",
    )
    *deltas, _ = await items_of(model)
    assert deltas == [ThinkingDelta("Let me see."), TextDelta("Four.")]
    reply = await reply_of(model)
    assert reply.message == assistant(Thinking("Let me see.", "openai"), "Four.")
    assert reply.usage == Usage(9, 5, 4)


async def test_gemini_signs_its_calls(fake: FakeLLM, transport: Transport) -> None:
    # https://ai.google.dev/gemini-api/docs/thought-signatures
    model = await play(
        transport,
        fake,
        '{"choices":[{"delta":{"role":"assistant","tool_calls":[{"extra_content":{"google":{"thought_signature":"c2ln"}},'
        '"function":{"arguments":"{\\"path\\":\\"a\\"}","name":"read_file"},"id":"function-call-1","type":"function"}]},'
        '"finish_reason":"stop","index":0}],"model":"gemini","object":"chat.completion.chunk"}',
        "[DONE]",
    )
    reply = await reply_of(model)
    sealed, call = reply.message.parts
    assert sealed == Thinking("", "openai", signature="c2ln")
    assert isinstance(call, ToolCall)
    assert (call.id, bytes(call.arguments)) == ("function-call-1", b'{"path":"a"}')
    assert reply.finish == "calls"


async def test_mistral_thinks_in_blocks(fake: FakeLLM, transport: Transport) -> None:
    # https://docs.mistral.ai/capabilities/reasoning/
    model = await play(
        transport,
        fake,
        '{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm."}]}]}}]}',
        '{"choices":[{"index":0,"delta":{"content":"Four."},"finish_reason":"stop"}]}',
    )
    assert (await reply_of(model)).message == assistant(Thinking("Hm.", "openai"), "Four.")


@pytest.mark.parametrize(
    ("reason", "finish"),
    [("sensitive", "filtered"), ("model_context_window_exceeded", "length"), ("stop", "stop")],
)
async def test_zai_has_ends_of_its_own(
    fake: FakeLLM, transport: Transport, reason: str, finish: str
) -> None:
    # https://docs.z.ai/api-reference/llm/chat-completion: `finish_reason`
    said = '{"choices":[{"index":0,"delta":{"reasoning_content":"Hm."}}]}'
    model = await play(
        transport,
        fake,
        said,
        f'{{"choices":[{{"index":0,"delta":{{"content":"a"}},"finish_reason":"{reason}"}}]}}',
    )
    assert (await reply_of(model)).finish == finish
    with pytest.raises(ModelUnavailable, match="reports an error"):
        await reply_of(
            await play(transport, fake, said, said[:-3] + ',"finish_reason":"network_error"}]}')
        )


async def test_pieces_that_come_together_are_one_and_come_before_an_error(
    fake: FakeLLM, transport: Transport
) -> None:
    model = await play(
        transport,
        fake,
        '{"choices":[{"index":0,"delta":{"reasoning_content":"Hm"}}]}',
        '{"choices":[{"index":0,"delta":{"reasoning_content":"m."}}]}',
        '{"choices":[{"index":0,"delta":{"content":"Fo"}}]}',
        '{"choices":[{"index":0,"delta":{"content":"ur"}}]}',
        '{"error":{"message":"the server is overloaded","code":503}}',
    )
    found = []
    with pytest.raises(ModelError, match="overloaded"):
        async for item in model.reply(ask(user("?"))):
            found.append(item)  # noqa: PERF401 -- it is kept although the reply fails
    assert found == [ThinkingDelta("Hmm."), TextDelta("Four")]


async def test_half_an_emoji_waits_for_the_other_half(fake: FakeLLM, transport: Transport) -> None:
    model = await play(
        transport,
        fake,
        '{"choices":[{"index":0,"delta":{"content":"a\\ud83d"}}]}',
        '{"choices":[{"index":0,"delta":{"content":"\\udc4b b\\u0000"}}]}',
        '{"choices":[{"index":0,"delta":{"content":"c\\ud83d"},"finish_reason":"stop"}]}',
        "[DONE]",
    )
    *deltas, _ = await items_of(model)
    assert deltas == [TextDelta("a👋 b\ufffdc"), TextDelta("\ufffd")]


async def test_halves_of_emojis_break_nothing_anywhere(fake: FakeLLM, transport: Transport) -> None:
    half = "\\ud83d"
    call = (
        f'{{"index":0,"id":"i{half}","function":{{"name":"n{half}","arguments":{{"a":"{half}"}}}}}}'
    )
    model = await play(
        transport,
        fake,
        f'{{"choices":[{{"index":0,"delta":{{"reasoning":"{half}","tool_calls":[{call}]}},"finish_reason":"stop"}}]}}',
    )
    reply = await reply_of(model)
    assert [bytes(call.arguments) for call in reply.message.calls] == ['{"a":"\ufffd"}'.encode()]
    await model.encode_request(
        ask(user("Hi"), reply.message, result(reply.message.calls[0].id, "ok"))
    )
    for broken in (
        f'{{"error":{{"message":"{half}"}}}}',
        '{"error":' + "[" * 100_000,
        '["\\ud83d"' + "[" * 100_000,
    ):
        with pytest.raises(ModelError):
            await reply_of(await play(transport, fake, broken))


async def test_a_server_that_does_not_stream(fake: FakeLLM, transport: Transport) -> None:
    whole = '{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Four."},'  # noqa: E501
    fake.script(Behaviour(raw=whole + '"finish_reason":"stop"}]}', raw_type="application/json"))
    assert (await reply_of(open_wire("openai", transport, fake.url))).message == assistant("Four.")


async def test_a_refusal_is_text_and_filtered(fake: FakeLLM, transport: Transport) -> None:
    # https://platform.openai.com/docs/guides/structured-outputs#refusals
    model = await play(
        transport,
        fake,
        '{"choices":[{"index":0,"delta":{"refusal":"No."},"finish_reason":"content_filter"}]}',
        "[DONE]",
    )
    reply = await reply_of(model)
    assert (reply.message.text, reply.finish) == ("No.", "filtered")


async def test_the_fake_is_what_the_official_client_reads(fake: FakeLLM) -> None:
    told = Behaviour(text="Four.", thinking="Hm.", cached_tokens=7)
    asked: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "2+2?"}]}
    async with openai.AsyncOpenAI(api_key="k", base_url=fake.url, max_retries=0) as client:
        fake.script(told)
        whole = await client.chat.completions.create(**asked)
        assert whole.choices[0].message.content == "Four."
        chunks = [c async for c in await client.chat.completions.create(**asked, stream=True)]
        assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "Four."
        assert chunks[-1].usage is not None
        assert chunks[-1].usage.prompt_tokens_details is not None
        assert chunks[-1].usage.prompt_tokens_details.cached_tokens == 7
        fake.script(Behaviour(calls=(FakeCall("a", '{"x": 1}'), FakeCall("b"))))
        async with client.chat.completions.stream(**asked) as stream:
            final = await stream.get_final_completion()
        calls = final.choices[0].message.tool_calls
        assert calls is not None
        assert [(c.function.name, c.function.arguments) for c in calls] == [
            ("a", '{"x": 1}'),
            ("b", "{}"),
        ]
        fake.script(Behaviour(named="429_2"))
        with pytest.raises(openai.RateLimitError):
            await client.chat.completions.create(**asked)
        fake.script(Behaviour(named="overflow_openai"))
        with pytest.raises(openai.BadRequestError, match="maximum context length"):
            await client.chat.completions.create(**asked)


async def test_what_a_model_repeats_of_our_marks_is_not_its_answer(
    fake: FakeLLM, transport: Transport
) -> None:
    pieces = ("<think>hm</think>", "[bot_", "msg_id:7]", " Hel", "lo <ctr", "l46>there", " <ct")
    chunks = [f'{{"choices":[{{"index":0,"delta":{{"content":"{piece}"}}}}]}}' for piece in pieces]
    model = await play(
        transport,
        fake,
        *chunks,
        '{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
        "[DONE]",
    )
    *deltas, _ = await items_of(model)
    # What is held back for the end is a piece of its own.
    assert deltas == [ThinkingDelta("hm"), TextDelta("Hello there "), TextDelta("<ct")]
    assert (await reply_of(model)).message.text == "Hello there <ct"
