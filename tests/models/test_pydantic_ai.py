"""pydantic-ai's model classes keep what every Model keeps, over real sockets to the fake
provider."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from deskhand.assembly.models import Models, build_catalogue
from deskhand.config.config import Config, Home, ProviderConfig, Settings
from deskhand.models.base import Closable, Model, ToolSchema
from deskhand.models.catalogue import open_model, read_catalogue
from deskhand.models.openai import OpenAIModel
from deskhand.models.pydantic_ai import PydanticModel, open_pydantic
from deskhand.models.transport import Transport, TransportLimits
from deskhand.testing import model_suite
from deskhand.testing.llm import FakeLLM
from deskhand.testing.llm_script import Behaviour, FakeCall
from deskhand.testing.model_suite import Check, ModelScenario
from deskhand.types import errors
from deskhand.types.errors import ConfigError, ModelError
from deskhand.types.messages import Image, Message, Text, Thinking, ToolResult, Usage

from .conftest import QUICK
from .tools import BLOB, KEY, ask, assistant, called, reply_of, result, user

KINDS = ("openai-chat", "anthropic")
TOOL = ToolSchema(
    "read_file", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}
)


@asynccontextmanager
async def opened(
    kind: str, fake: FakeLLM, limits: TransportLimits = QUICK
) -> AsyncIterator[PydanticModel]:
    """pydantic-ai's `kind/m`, at the fake provider."""
    url = fake.url if kind != "anthropic" else fake.url.removesuffix("/v1")
    model = open_pydantic(f"{kind}/m", KEY, url, limits)
    assert isinstance(model, Closable)
    try:
        yield model
    finally:
        await model.aclose()


async def test_a_key_of_any_form_is_never_quoted(fake: FakeLLM) -> None:
    fake.script(Behaviour(named="401"))
    model = open_pydantic("openai-chat/m", "an-odd-key", fake.url)
    with pytest.raises(errors.ModelKeyRefused, match=r"\[key\]") as raised:
        await reply_of(model)
    await model.aclose()
    assert "odd" not in str(raised.value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("check", model_suite.CHECKS, ids=lambda check: check.__name__)
async def test_conformance(check: Check, kind: str) -> None:
    @asynccontextmanager
    async def opening(scenario: ModelScenario) -> AsyncIterator[Model]:
        async with FakeLLM() as fake:
            fake.script(
                Behaviour(
                    text=scenario.text,
                    thinking=scenario.thinking,
                    calls=scenario.calls,
                    finish="length" if scenario.finish == "length" else "",
                    fault="hang_mid" if scenario.hangs else "reset" if scenario.fails else "",
                )
            )
            async with opened(kind, fake, TransportLimits()) as model:
                yield model

    await check(opening)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("named", "expected", "wait"),
    [
        ("429_2", errors.ModelOverloaded, 2),
        ("529", errors.ModelOverloaded, None),
        ("500", errors.ModelUnavailable, None),
        ("reset", errors.ModelUnavailable, None),
        ("401", errors.ModelKeyRefused, None),
        ("402", errors.ModelKeyRefused, None),
        ("429_quota", errors.ModelKeyRefused, None),
        ("404", errors.ModelUnknown, None),
        ("400", errors.ModelRequestRefused, None),
        ("overflow_openai", errors.ContextOverflow, None),
        ("overflow_anthropic", errors.ContextOverflow, None),
        ("error_event", errors.ModelOverloaded, None),
        ("hang", errors.ModelTimeout, None),
        ("hang_mid", errors.ModelTimeout, None),
    ],
)
async def test_a_fault_has_its_class(
    fake: FakeLLM, kind: str, named: str, expected: type[ModelError], wait: float | None
) -> None:
    fake.script(Behaviour(named=named))
    async with opened(kind, fake) as model:
        with pytest.raises(ModelError) as raised:
            await reply_of(model)
    message = str(raised.value)
    assert (type(raised.value), raised.value.retry_after_s) == (expected, wait), message
    assert message.startswith((f"{kind}/m ", f"The conversation is too long for {kind}/m"))
    assert KEY not in message
    assert named != "hang_mid" or "stopped sending" in message
    assert len(fake.requests) == 1, "it is the agent who tries again"


async def test_a_reply_that_broke_off_is_none(fake: FakeLLM) -> None:
    # With Chat Completions it takes the end of the stream for the end of the reply, so this is
    # Anthropic's alone.
    fake.script(Behaviour(named="cut"))
    async with opened("anthropic", fake) as model:
        with pytest.raises(errors.ModelUnavailable, match="without a finish reason"):
            await reply_of(model)


async def test_a_conversation_as_it_is_sent(fake: FakeLLM) -> None:
    picture = Image("sha256:a", "image/png", "a.png")
    talk = ask(
        user("Look", picture),
        assistant("I read it.", called("call_1", '{"path":  "a"}'), called("call_2")),
        result("call_1", "x"),
        Message("tool", (ToolResult("call_2", (Text("no such file"),), "error"),)),
        user("And now?"),
        system=("You are a hand.", "It is Monday."),
        tools=(TOOL,),
        blob=BLOB,
        thinking="off",
        max_output_tokens=99,
        temperature=0.5,
        top_p=0.25,
        seed=7,
        stop=("END",),
        must_call="*",
        one_call=True,
    )
    fake.script(Behaviour(text="Hm.", cached_tokens=7))
    async with opened("openai-chat", fake) as model:
        reply = await reply_of(model, talk)
    assert reply.usage == Usage(100, 12, 7)
    body: Any = fake.requests[0].json
    roles = [message["role"] for message in body["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "user"]
    assert body["messages"][0]["content"] == "You are a hand.\n\nIt is Monday."
    text, image = body["messages"][1]["content"]
    assert (text["text"], image["type"]) == ("Look", "image_url")
    calls = body["messages"][2]["tool_calls"]
    assert [(call["id"], call["function"]["arguments"]) for call in calls] == [
        ("call_1", '{"path":"a"}'),
        ("call_2", "{}"),
    ]
    assert [message["content"] for message in body["messages"][3:]] == [
        "x",
        "[error]\nno such file",
        "And now?",
    ]
    assert body["tools"][0]["function"]["name"] == "read_file"
    assert (body["max_completion_tokens"], body["temperature"]) == (99, 0.5)
    assert (body["top_p"], body["seed"], body["stop"]) == (0.25, 7, ["END"])
    assert (body["tool_choice"], body["parallel_tool_calls"]) == ("required", False)


async def test_reasoning_goes_back_as_it_came_and_to_nobody_else(fake: FakeLLM) -> None:
    fake.script(
        Behaviour(
            thinking="Let me see.",
            signature="c2ln",
            calls=(FakeCall("read_file", '{"path": "a"}'),),
        )
    )
    asked = user("Go.")
    tools = (TOOL,)
    async with opened("anthropic", fake) as model, opened("openai-chat", fake) as other:
        reply = await reply_of(model, ask(asked, thinking="high", tools=tools))
        assert isinstance(reply.message.parts[0], Thinking)
        (call,) = reply.message.calls
        talk = ask(asked, reply.message, result(call.id, "ok"), thinking="high", tools=tools)
        fake.script(Behaviour())
        await reply_of(model, talk)
        await reply_of(other, talk)
    mine, theirs = (asked.json["messages"] for asked in fake.requests)
    assert mine[1]["content"][0] == {
        "type": "thinking",
        "thinking": "Let me see.",
        "signature": "c2ln",
    }
    assert mine[1]["content"][1]["type"] == "tool_use"
    assert "Let me see." not in str(theirs)


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for name, words in (
        ("bedrock/m", r"pydantic-ai-slim\[bedrock\]"),
        ("openai-chat/m", "OPENAI_API_KEY"),
        ("nobody/m", "Unknown provider: nobody"),
        ("openai-chat", "is not a model name"),
    ):
        with pytest.raises(ConfigError, match=words):
            open_pydantic(name)


async def test_it_is_opened_by_its_name_or_by_the_configuration(
    tmp_path: Path, fake: FakeLLM
) -> None:
    chosen = Config(
        providers={"openai-chat": ProviderConfig(base_url=fake.url, key_env="K", via="pydantic-ai")}
    )
    models = Models(Settings(Home(tmp_path), chosen, environment={"K": "k"}))
    assert isinstance(models.open("openai-chat/m"), PydanticModel)
    assert (
        not build_catalogue(
            Settings(Home(tmp_path), Config(providers={"x": ProviderConfig(via="pydantic-ai")}))
        )
        .provider("x")
        .local
    )
    direct = open_model(read_catalogue(), Transport(), "pydantic-ai/openai-chat/m", "k", fake.url)
    assert isinstance(direct, PydanticModel)
    with pytest.raises(ConfigError, match="pydantic-ai/bedrock/MODEL"):
        open_model(read_catalogue(), Transport(), "bedrock/m")
    assert isinstance(open_model(read_catalogue(), Transport(), "ollama/m"), OpenAIModel)


def test_without_the_extra_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    monkeypatch.delitem(sys.modules, "deskhand.models.pydantic_ai")
    with pytest.raises(ConfigError, match=r"pip install 'deskhand\[providers\]'"):
        open_model(read_catalogue(), Transport(), "pydantic-ai/bedrock/m")


@pytest.mark.parametrize("kind", KINDS)
async def test_what_a_model_repeats_of_our_marks_is_not_its_answer(
    kind: str, fake: FakeLLM
) -> None:
    fake.script(Behaviour(text="[msg_id:7] Hello <ctrl46>there"))
    async with opened(kind, fake) as model:
        assert (await reply_of(model)).message.text == "Hello there"
