"""What the Responses wire sends, and what it makes of the answers."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import msgspec
import openai
import pytest
from openai.types.responses import response_create_params as params
from pydantic import TypeAdapter

from deskhand.models.base import Reply, Request, TextDelta, ThinkingDelta, ToolSchema
from deskhand.models.settings import Facts
from deskhand.models.transport import Transport
from deskhand.testing.llm import FakeLLM
from deskhand.testing.llm_script import Behaviour, FakeCall
from deskhand.types import errors
from deskhand.types.errors import ModelError
from deskhand.types.messages import Audio, File, Image, Message, Text, Thinking, ToolResult, Usage

from .tools import BLOB, FACTS, ask, assistant, called, items_of, open_wire, reply_of, result, user

OFFICIAL: TypeAdapter[Any] = TypeAdapter(params.ResponseCreateParamsStreaming)
TOOL = ToolSchema(
    "read_file", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}
)
PICTURE = Image("sha256:a", "image/png", "a.png")
MINE = "responses:fake/m"
SEALED = '{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"c2ln"}'
DEEP = Facts(window=1, thinking="effort", efforts=("low", "medium", "high", "xhigh", "max"))
THINKS = Facts(window=1, thinking="effort", off_effort="none", temperature=False)


async def sent(request: Request, facts: Facts = FACTS) -> Any:
    """The body for `request`, after the official types have agreed to it."""
    model = open_wire("responses", Transport(), "http://127.0.0.1:9/v1", facts=facts)
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
            Thinking("Hm.", MINE, redacted=SEALED), "I read it.", called("call_1", '{"path":  "a"}')
        ),
        Message("tool", (ToolResult("call_1", (Text("x"), PICTURE)),)),
        assistant(called("call_2"), called("call_3")),
        Message("tool", (ToolResult("call_2", (Text("no such file"),), "error"),)),
        Message("tool", (ToolResult("call_3", ()),)),
        user("And now?"),
        system=("You are a hand.", "It is Monday."),
        tools=(TOOL,),
        blob=BLOB,
    )


async def test_a_conversation_as_it_is_sent() -> None:
    body = await sent(a_long_talk())
    encoded = b64encode(await BLOB("sha256:a")).decode()
    picture = {
        "type": "input_image",
        "detail": "auto",
        "image_url": f"data:image/png;base64,{encoded}",
    }
    key = body.pop("prompt_cache_key")
    assert len(key) == 32
    assert body == {
        "model": "m",
        "stream": True,
        "store": False,
        "instructions": "You are a hand.\n\nIt is Monday.",
        "input": [
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "Look at this"},
                    picture,
                    {"type": "input_text", "text": "[file b.pdf, application/pdf, 7 bytes]"},
                    {"type": "input_text", "text": "[voice message, not transcribed]"},
                ],
            },
            msgspec.json.decode(SEALED),
            {"type": "message", "role": "assistant", "content": "I read it."},
            {
                "type": "function_call",
                "call_id": "call_1",
                "name": "read_file",
                "arguments": '{"path":  "a"}',
            },
            {
                "type": "function_call_output",
                "call_id": "call_1",
                "output": [{"type": "input_text", "text": "x"}, picture],
            },
            *(
                {
                    "type": "function_call",
                    "call_id": f"call_{n}",
                    "name": "read_file",
                    "arguments": "{}",
                }
                for n in (2, 3)
            ),
            {
                "type": "function_call_output",
                "call_id": "call_2",
                "output": "[error]\nno such file",
            },
            {"type": "function_call_output", "call_id": "call_3", "output": "[no output]"},
            {"type": "message", "role": "user", "content": "And now?"},
        ],
        "tools": [
            {
                "type": "function",
                "name": "read_file",
                "description": "Read a file.",
                "parameters": TOOL.parameters,
                "strict": False,
            }
        ],
    }


async def test_a_model_without_eyes_reads_names() -> None:
    body = await sent(a_long_talk(), Facts(window=8192))
    assert body["input"][0]["content"].splitlines()[:2] == ["Look at this", "[image a.png]"]
    assert body["input"][4]["output"] == "x\n[image a.png]"


async def test_the_body_only_grows_and_keeps_its_cache_key() -> None:
    model = open_wire("responses", Transport(), "http://127.0.0.1:9/v1")
    request = a_long_talk()
    first = await model.encode_request(request)
    assert await model.encode_request(msgspec.structs.replace(request, blob=None)) == first, (
        "an image is not read twice"
    )
    longer = ask(
        *[shown.message for shown in request.messages],
        user("More."),
        system=request.system,
        blob=BLOB,
    )
    bodies = [msgspec.json.decode(body) for body in (first, await model.encode_request(longer))]
    assert bodies[1]["input"][:-1] == bodies[0]["input"]
    assert (
        bodies[0]["prompt_cache_key"]
        == bodies[1]["prompt_cache_key"]
        != (await sent(ask()))["prompt_cache_key"]
    )


async def test_reasoning_goes_back_to_its_model_alone_and_never_without_what_followed() -> None:
    talk = (
        user("One"),
        assistant(
            Thinking("a", MINE, redacted=SEALED),
            Thinking("b", "responses:fake/other", redacted="{}"),
            "1",
        ),
        user("Two"),
        assistant(Thinking("c", MINE, redacted=SEALED)),
        user("Three"),
        assistant(
            Thinking("d", "anthropic:c", "seal"),
            called("call_1"),
            Thinking("e", MINE, redacted=SEALED),
        ),
        result("call_1", "ok"),
    )
    kinds = [item.get("role") or item["type"] for item in (await sent(ask(*talk)))["input"]]
    assert kinds == [
        "user",
        "reasoning",
        "assistant",
        "user",
        "user",
        "function_call",
        "function_call_output",
    ]


@pytest.mark.parametrize(
    ("fields", "facts", "options"),
    [
        (
            {"max_output_tokens": 99, "temperature": 0.5},
            FACTS,
            {"max_output_tokens": 99, "temperature": 0.5},
        ),
        ({"max_output_tokens": 9}, FACTS, {"max_output_tokens": 16}),
        ({"thinking": "high"}, FACTS, {}),
        (
            {"thinking": "high", "temperature": 0.5},
            THINKS,
            {"reasoning": {"effort": "high", "summary": "auto"}},
        ),
        (
            {"thinking": "low", "tools": (TOOL,)},
            THINKS,
            {"reasoning": {"effort": "low", "summary": "auto"}},
        ),
        ({"thinking": "max"}, THINKS, {"reasoning": {"effort": "high", "summary": "auto"}}),
        ({"thinking": "max"}, DEEP, {"reasoning": {"effort": "max", "summary": "auto"}}),
        ({}, THINKS, {"reasoning": {"effort": "none"}}),
        ({"extra": msgspec.Raw(b'{"top_p": 0.5}')}, FACTS, {"top_p": 0.5}),
        ({"top_p": 0.5, "seed": 7, "stop": ("END",)}, FACTS, {"top_p": 0.5}),
        (
            {"tools": (TOOL,), "must_call": "*", "one_call": True},
            FACTS,
            {"tool_choice": "required", "parallel_tool_calls": False},
        ),
        (
            {"tools": (TOOL,), "must_call": "read_file"},
            FACTS,
            {"tool_choice": {"type": "function", "name": "read_file"}},
        ),
        ({"form": {"type": "object"}}, FACTS, {"text": {"format": {"type": "json_object"}}}),
        (
            {"form": {"type": "array"}, "strict_form": True},
            FACTS,
            {
                "text": {
                    "format": {
                        "type": "json_schema",
                        "name": "answer",
                        "schema": {"type": "array"},
                        "strict": True,
                    }
                }
            },
        ),
    ],
)
async def test_options(fields: dict[str, Any], facts: Facts, options: dict[str, Any]) -> None:
    body = await sent(ask(**fields), facts)
    include = ["reasoning.encrypted_content"] if facts.thinking else None
    assert body.pop("include", None) == include
    for common in (
        "model",
        "stream",
        "store",
        "input",
        "instructions",
        "tools",
        "prompt_cache_key",
    ):
        body.pop(common, None)
    assert body == options


async def test_a_turn_goes_there_and_back_exactly(fake: FakeLLM, transport: Transport) -> None:
    calls = (FakeCall("read_file", '{"path":  "a"}'), FakeCall("read_file", '{"path":"b"}'))
    fake.script(Behaviour(thinking="Let me see.", redacted="gAAAA", calls=calls, cached_tokens=7))
    model = open_wire("responses", transport, fake.url)
    reply = await reply_of(model)
    thought, first, second = reply.message.parts
    assert (reply.finish, reply.usage) == ("calls", Usage(100, 12, 7))
    assert isinstance(thought, Thinking)
    assert (thought.text, thought.wire) == ("Let me see.", MINE)
    results = [result(call.id, "ok") for call in reply.message.calls]
    body = await sent(ask(user("Go."), reply.message, *results))
    given = {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "Let me see."}],
    }
    assert body["input"][1:4] == [
        {**given, "encrypted_content": "gAAAA"},
        *(
            {
                "type": "function_call",
                "call_id": f"call_1_{n}",
                "name": "read_file",
                "arguments": call.arguments,
            }
            for n, call in enumerate(calls)
        ),
    ]
    assert [first, second] == list(reply.message.calls)
    fake.script(Behaviour(text="Done."))
    done = await reply_of(model)
    answer = (await sent(ask(user("Go."), done.message)))["input"][1]
    assert answer == {
        "type": "message",
        "role": "assistant",
        "content": "Done.",
        "phase": "final_answer",
    }


async def play(transport: Transport, fake: FakeLLM, *payloads: str) -> list[Any]:
    """All items of the call whose provider answers with these payloads."""
    fake.script(Behaviour(raw="".join(f"data: {payload}\n\n" for payload in payloads)))
    return await items_of(open_wire("responses", transport, fake.url))


END = '{"type":"response.completed","response":{"object":"response","status":"completed","output":[]}}'


async def test_what_is_said_between_and_after_calls(fake: FakeLLM, transport: Transport) -> None:
    *deltas, reply = await play(
        transport,
        fake,
        '{"type":"response.output_item.added","output_index":0,"item":{"id":"m1","type":"message","phase":"commentary"}}',
        '{"type":"response.output_text.delta","output_index":0,"delta":"I look."}',
        '{"type":"response.output_text.delta","output_index":1,"delta":"Found."}',
        '{"type":"response.web_search_call.searching","output_index":2,"delta":{"odd":1}}',
        '{"type":"response.output_item.done","output_index":2,"item":{"type":"web_search_call","content":7}}',
        END,
    )
    assert deltas == [TextDelta("I look.\n\nFound.")]
    assert reply.message.text == "I look.\n\nFound."
    said = [
        (item["content"], item.get("phase"))
        for item in (await sent(ask(user("?"), reply.message)))["input"][1:]
    ]
    assert said == [("I look.", "commentary"), ("Found.", None)]


async def test_an_open_models_reasoning_is_shown_and_goes_back(
    fake: FakeLLM, transport: Transport
) -> None:
    # https://docs.vllm.ai/en/latest/serving/openai_compatible_server/: reasoning in the open, no
    # seal
    item = '{"id":"rs_1","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"Hm."}]}'
    *deltas, reply = await play(
        transport,
        fake,
        '{"type":"response.reasoning_text.delta","output_index":0,"content_index":0,"delta":"Hm."}',
        f'{{"type":"response.output_item.done","output_index":0,"item":{item[:-1]},"status":"completed"}}}}',
        '{"type":"response.output_text.delta","output_index":1,"delta":"Four."}',
        END,
    )
    assert deltas == [ThinkingDelta("Hm."), TextDelta("Four.")]
    assert (await sent(ask(user("?"), reply.message)))["input"][1] == msgspec.json.decode(item)


async def test_paragraphs_of_a_summary(fake: FakeLLM, transport: Transport) -> None:
    *deltas, reply = await play(
        transport,
        fake,
        '{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":0}',
        '{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"One."}',
        '{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":1}',
        '{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"Two."}',
        END,
    )
    assert deltas == [ThinkingDelta("One.\n\nTwo.")]
    assert reply.message.parts == (Thinking("One.\n\nTwo.", MINE),)


async def test_a_refusal_is_text_and_filtered(fake: FakeLLM, transport: Transport) -> None:
    *_, reply = await play(
        transport,
        fake,
        '{"type":"response.refusal.delta","output_index":0,"content_index":0,"delta":"No."}',
        '{"type":"response.output_item.done","output_index":1,"item":{"type":"reasoning","summary":[]}}',
        END,
    )
    assert (reply.message.text, reply.finish) == ("No.", "filtered")
    incomplete = '{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"%s"}}}'
    for reason, finish in (("content_filter", "filtered"), ("max_output_tokens", "length")):
        *_, reply = await play(transport, fake, incomplete % reason)
        assert reply.finish == finish


async def test_halves_of_emojis_break_nothing(fake: FakeLLM, transport: Transport) -> None:
    half = '{"id":"rs","type":"reasoning","encrypted_content":"x\\ud83d","summary":[]}'
    *deltas, reply = await play(
        transport,
        fake,
        f'{{"type":"response.output_item.done","output_index":0,"item":{half}}}',
        '{"type":"response.output_text.delta","output_index":1,"delta":"a\\ud83d"}',
        '{"type":"response.output_text.delta","output_index":1,"delta":"\\udc4b\\u0000\\ud83d"}',
        END,
    )
    assert "".join(delta.text for delta in deltas) == reply.message.text == "a👋\ufffd\ufffd"
    await sent(ask(user("?"), reply.message))


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("server_error", errors.ModelUnavailable),
        ("rate_limit_exceeded", errors.ModelOverloaded),
        ("invalid_prompt", errors.ModelRequestRefused),
        ("image_too_large", errors.ModelRequestRefused),
        ("misalignment_policy_violation", errors.ModelRequestRefused),
        ("context_length_exceeded", errors.ContextOverflow),
        ("invalid_api_key", errors.ModelKeyRefused),
    ],
)
async def test_a_response_that_fails(
    fake: FakeLLM, transport: Transport, code: str, kind: type[ModelError]
) -> None:
    error = f'{{"code":"{code}","message":"So it is."}}'
    for payload in (
        f'{{"type":"response.failed","response":{{"status":"failed","error":{error}}}}}',
        (
            f'{{"type":"error","code":"{code}","message":"So it '
            f'is.","param":null,"sequence_number":3}}'
        ),
        f'{{"type":"error","error":{error}}}',
        f'{{"error":{error}}}',
    ):
        with pytest.raises(ModelError) as raised:
            await play(transport, fake, payload)
        assert type(raised.value) is kind, payload


async def test_what_is_no_response_at_all(fake: FakeLLM, transport: Transport) -> None:
    item = '{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":7}}'
    for payload in ('{"choices":[]}', "[1]", item):
        with pytest.raises(errors.MalformedReply):
            await play(transport, fake, payload)
    with pytest.raises(errors.ModelUnavailable, match="before the response was complete"):
        await play(
            transport, fake, '{"type":"response.output_text.delta","output_index":0,"delta":"a"}'
        )


async def test_a_server_that_does_not_stream(fake: FakeLLM, transport: Transport) -> None:
    text = '{"type":"message","content":[{"type":"output_text","text":"Four."}]}'
    call = '{"type":"function_call","call_id":"c","name":"stop","arguments":"[1]"}'
    whole = f'{{"object":"response","status":"completed","output":[{text},{call}]}}'
    fake.script(Behaviour(raw=whole, raw_type="application/json"))
    reply = await reply_of(open_wire("responses", transport, fake.url))
    assert reply == Reply(assistant("Four.", called("c", "[1]", "stop")), "calls")


async def test_the_fake_is_what_the_official_client_reads(fake: FakeLLM) -> None:
    asked: dict[str, Any] = {"model": "m", "input": "2+2?"}
    async with openai.AsyncOpenAI(api_key="k", base_url=fake.url, max_retries=0) as client:
        fake.script(Behaviour(text="Four.", thinking="Hm.", cached_tokens=7))
        whole = await client.responses.create(**asked)
        assert whole.output_text == "Four."
        async with client.responses.stream(**asked) as stream:
            final = await stream.get_final_response()
        assert final.output_text == "Four."
        assert final.usage is not None
        assert final.usage.input_tokens_details.cached_tokens == 7
        assert [item.type for item in final.output] == ["reasoning", "message"]
        fake.script(Behaviour(calls=(FakeCall("a", '{"x": 1}'), FakeCall("b"))))
        async with client.responses.stream(**asked) as stream:
            final = await stream.get_final_response()
        assert [(c.name, c.arguments) for c in final.output if c.type == "function_call"] == [
            ("a", '{"x": 1}'),
            ("b", "{}"),
        ]
        fake.script(Behaviour(named="error_event"))
        *_, last = [event async for event in await client.responses.create(**asked, stream=True)]
        assert last.type == "error"
        assert (last.code, last.message) == ("rate_limit_exceeded", "Rate limit reached")
        fake.script(Behaviour(match="2+2", named="429_2"))
        with pytest.raises(openai.RateLimitError):
            await client.responses.create(**asked)


async def test_what_a_model_repeats_of_our_marks_is_not_its_answer(
    fake: FakeLLM, transport: Transport
) -> None:
    pieces = ("[msg_", "id:7] Hel", "lo <ctr", "l46>there")
    head = '{"type":"response.output_text.delta","output_index":0,"delta":'
    *deltas, reply = await play(transport, fake, *(f'{head}"{piece}"}}' for piece in pieces), END)
    assert deltas == [TextDelta("Hello there")]
    assert reply.message.text == "Hello there"
