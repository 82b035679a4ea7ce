"""What the fields of a chat completion do: honoured, or refused by name, and never left out in
silence."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import openai
import pytest

from deskhand.models.base import Reply, Request
from deskhand.net.client import Net, NetLimits, RawResponse
from deskhand.net.client import OutboundRequest as NetRequest
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.errors import (
    BudgetSpent,
    ContextOverflow,
    ModelError,
    ModelKeyRefused,
    ModelOverloaded,
)
from deskhand.types.messages import Image, Text, Usage
from deskhand.web.openai.parameters import UNSUPPORTED_FIELDS
from deskhand.web.openai.schema import ChatBody

from .served import Served, serving
from .test_openai import MODEL, client, user

PNG = b64encode(b"\x89PNG\r\n\x1a\n" + bytes(20)).decode()
PICTURE = f"data:image/png;base64,{PNG}"
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
WANTED: Any = {
    "type": "json_schema",
    "json_schema": {"name": "person", "schema": PERSON, "strict": True},
}
ANN = '{"name":"Ann","age":7}'


async def test_what_is_asked_for_reaches_the_model(tmp_path: Path) -> None:
    model = ScriptedModel(lambda request: say("fine"))
    async with serving(tmp_path, model) as served, client(served) as ai:
        await ai.chat.completions.create(
            model=MODEL,
            messages=[user("hi")],
            max_completion_tokens=77,
            temperature=0.0,
            top_p=0.5,
            seed=7,
            stop=["END"],
            reasoning_effort="low",
            metadata={"a": "b"},
            store=False,
            n=1,
            service_tier="auto",
            safety_identifier="s",
            prompt_cache_key="k",
        )
        asked = model.requests[0]
        assert (asked.max_output_tokens, asked.temperature, asked.top_p, asked.seed) == (
            77,
            0.0,
            0.5,
            7,
        )
        assert asked.stop == ("END",) and asked.thinking == "low"
        await ai.chat.completions.create(model=MODEL, messages=[user("hi")], max_tokens=10**9)
        assert model.requests[1].max_output_tokens == 10**9
        plain = model.requests[1]
        assert (plain.temperature, plain.top_p, plain.seed, plain.stop) == (None, None, None, ())


async def test_an_agents_own_limit_is_the_most(tmp_path: Path) -> None:
    model = ScriptedModel(lambda request: say("fine"))
    config: Any = {"defaults": {"models": ["scripted/echo"], "output_tokens": 100}}
    async with serving(tmp_path, model, **config) as served, client(served) as ai:
        for wanted in (50, 5000):
            await ai.chat.completions.create(model=MODEL, messages=[user("hi")], max_tokens=wanted)
    assert [each.max_output_tokens for each in model.requests] == [50, 100]


@pytest.mark.parametrize("name", sorted(UNSUPPORTED_FIELDS))
async def test_what_cannot_be_honoured_is_refused_by_name(served: Served, name: str) -> None:
    values: dict[str, Any] = {
        "n": 2,
        "store": True,
        "logprobs": True,
        "top_logprobs": 3,
        "logit_bias": {"50256": -100},
        "frequency_penalty": 0.5,
        "presence_penalty": -0.5,
        "modalities": ["text", "audio"],
        "audio": {"voice": "alloy", "format": "wav"},
        "prediction": {"type": "content", "content": "x"},
        "web_search_options": {},
        "verbosity": "low",
        "functions": [{"name": "f"}],
        "function_call": "auto",
    }
    async with client(served) as ai:
        with pytest.raises(openai.BadRequestError) as refused:
            await ai.chat.completions.create(
                model=MODEL, messages=[user("hi")], extra_body={name: values[name]}
            )
        assert refused.value.param == name and name in refused.value.message
        harmless = {name: UNSUPPORTED_FIELDS[name][0]} if UNSUPPORTED_FIELDS[name] else {name: None}
        await ai.chat.completions.create(model=MODEL, messages=[user("hi")], extra_body=harmless)


def test_every_field_is_honoured_noted_or_refused() -> None:
    names = list(ChatBody.__struct_fields__)
    assert names[names.index("n") :] == [name for name in names if name in UNSUPPORTED_FIELDS]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"temperature": 3}, "temperature"),
        ({"top_p": -1}, "top_p"),
        ({"stop": ["a", "b", "c", "d", "e"]}, "stop"),
        ({"stop": ""}, "stop"),
        ({"seed": "x"}, "seed"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "x", "schema": {"type": "strin"}},
                }
            },
            "response_format",
        ),
        ({"messages": "hi"}, "messages"),
        (
            {
                "tools": [
                    {"type": "function", "function": {"name": "f", "description": "x" * 256_000}}
                ]
            },
            "tools",
        ),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "x", "schema": {"title": "x" * 256_000}},
                }
            },
            "response_format",
        ),
    ],
)
async def test_what_is_wrong_is_named(served: Served, fields: dict[str, Any], param: str) -> None:
    async with client(served) as ai:
        with pytest.raises(openai.BadRequestError) as refused:
            await ai.chat.completions.create(model=MODEL, messages=[user("hi")], extra_body=fields)
        body: Any = refused.value.body
        assert set(body) >= {"message", "type", "param", "code"} and body["param"] == param


async def test_a_model_without_a_field_refuses_it(tmp_path: Path) -> None:
    model = ScriptedModel(lambda request: say("fine"))
    config: Any = {"defaults": {"models": ["openai/gpt-5.5"]}}
    async with serving(tmp_path, model, **config) as served, client(served) as ai:
        for fields in ({"temperature": 0}, {"temperature": 0.7}, {"top_p": 0.3}, {"seed": 0}):
            with pytest.raises(openai.BadRequestError) as refused:
                await ai.chat.completions.create(
                    model=MODEL, messages=[user("hi")], extra_body=fields
                )
            assert refused.value.param == next(iter(fields))
        await ai.chat.completions.create(model=MODEL, messages=[user("hi")], max_tokens=5, stop="x")


async def test_a_value_that_a_model_does_not_take_is_refused(tmp_path: Path) -> None:
    """One wire takes temperatures up to 1, and none while the model thinks: neither is changed in
    silence."""
    model = ScriptedModel(lambda request: say("fine"))
    config: Any = {"defaults": {"models": ["anthropic/claude-haiku-4-5"]}}
    async with serving(tmp_path, model, **config) as served, client(served) as ai:
        for fields in ({"temperature": 1.7}, {"temperature": 0.5, "reasoning_effort": "high"}):
            with pytest.raises(openai.BadRequestError) as refused:
                await ai.chat.completions.create(
                    model=MODEL, messages=[user("hi")], extra_body=fields
                )
            assert refused.value.param == "temperature"
        await ai.chat.completions.create(model=MODEL, messages=[user("hi")], temperature=0.9)
        assert model.requests[-1].temperature == 0.9


async def test_the_answer_ends_before_a_stop_text(tmp_path: Path) -> None:
    """Whatever the model does: this one does not know the field."""
    model = ScriptedModel(lambda request: say("one two three STOP four"), piece=3)
    async with serving(tmp_path, model) as served, client(served) as ai:
        done = await ai.chat.completions.create(
            model=MODEL, messages=[user("count")], stop=["STOP", "never"]
        )
        assert (done.choices[0].message.content, done.choices[0].finish_reason) == (
            "one two three ",
            "stop",
        )
        stream = await ai.chat.completions.create(
            model=MODEL, messages=[user("count")], stop="STOP", stream=True
        )
        pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
        assert "".join(pieces) == "one two three "
        done = await ai.chat.completions.create(
            model=MODEL, messages=[user("count")], stop="fourteen"
        )
        assert done.choices[0].message.content == "one two three STOP four"


async def test_finish_reasons_and_usage(tmp_path: Path) -> None:
    def script(request: Request) -> Reply:
        asked = request.messages[-1].message.text
        finish: Any = "length" if "long" in asked else "filtered"
        text = "and so" if finish == "length" else ""
        return Reply(say(text), finish, Usage(11, 5, 4))

    model = ScriptedModel(script)
    async with serving(tmp_path, model) as served, client(served) as ai:
        cut = await ai.chat.completions.create(model=MODEL, messages=[user("long")], max_tokens=5)
        assert (cut.choices[0].finish_reason, cut.choices[0].message.content) == (
            "length",
            "and so",
        )
        assert len(model.requests) == 1, "what is cut by the client's own limit is not gone on with"
        assert cut.usage is not None and cut.usage.prompt_tokens_details is not None
        assert (cut.usage.prompt_tokens, cut.usage.completion_tokens, cut.usage.total_tokens) == (
            11,
            5,
            16,
        )
        assert cut.usage.prompt_tokens_details.cached_tokens == 4
        held = await ai.chat.completions.create(model=MODEL, messages=[user("bad")])
        assert held.choices[0].finish_reason == "content_filter"


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_that_a_hook_changes_comes_once(tmp_path: Path, stream: bool) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir(mode=0o700)
    (plugins / "signing.py").write_text(
        "from deskhand.tools.plugin import Plugin\n"
        "async def sign(context):\n    context.response += ' -- Deskhand'\n"
        "class Signing(Plugin):\n    def get_hooks(self):\n        return "
        "{'before_agent_end': sign}\n"
        "plugin = Signing\n"
    )
    (plugins / "signing.py").chmod(0o600)
    async with serving(tmp_path, plugins=["signing"]) as served, client(served) as ai:
        if stream:
            chunks = await ai.chat.completions.create(
                model=MODEL, messages=[user("hi")], stream=True
            )
            told = "".join([chunk.choices[0].delta.content or "" async for chunk in chunks])
        else:
            done = await ai.chat.completions.create(model=MODEL, messages=[user("hi")])
            told = done.choices[0].message.content or ""
        assert told == "You said: hi -- Deskhand"


@pytest.mark.parametrize("fence", ["{}", "```json\n{}\n```"])
async def test_structured_output(tmp_path: Path, fence: str) -> None:
    model = ScriptedModel(lambda request: say(fence.replace("{}", ANN)))
    async with serving(tmp_path, model) as served, client(served) as ai:
        done = await ai.chat.completions.create(
            model=MODEL, messages=[user("Who?")], response_format=WANTED
        )
        assert (done.choices[0].message.content, done.choices[0].finish_reason) == (ANN, "stop")
        asked = model.requests[0]
        assert (
            asked.form == PERSON
            and asked.strict_form
            and '"additionalProperties":false' in asked.system[-1]
        )
        chunks = await ai.chat.completions.create(
            model=MODEL, messages=[user("Who?")], response_format=WANTED, stream=True
        )
        assert "".join([chunk.choices[0].delta.content or "" async for chunk in chunks]) == ANN
        any_: Any = {"type": "json_object"}
        done = await ai.chat.completions.create(
            model=MODEL, messages=[user("Who?")], response_format=any_
        )
        assert done.choices[0].message.content == ANN


async def test_an_answer_that_does_not_fit_is_repaired_once(tmp_path: Path) -> None:
    def script(request: Request) -> Any:
        repaired = "does not fit" in request.messages[-1].message.text
        return say(ANN if repaired else '{"name":"Ann","age":"seven"}')

    model = ScriptedModel(script)
    async with serving(tmp_path, model) as served, client(served) as ai:
        done = await ai.chat.completions.create(
            model=MODEL, messages=[user("Who?")], response_format=WANTED
        )
        assert done.choices[0].message.content == ANN and len(model.requests) == 2
        assert "integer" in model.requests[1].messages[-1].message.text
        chunks = await ai.chat.completions.create(
            model=MODEL, messages=[user("Who?")], response_format=WANTED, stream=True
        )
        assert "".join([chunk.choices[0].delta.content or "" async for chunk in chunks]) == ANN


@pytest.mark.parametrize("text", ["no JSON", '{"name":"Ann"}', "[1]"])
async def test_an_answer_that_never_fits_is_an_error(tmp_path: Path, text: str) -> None:
    model = ScriptedModel(lambda request: say(text))
    async with serving(tmp_path, model) as served, client(served) as ai:
        with pytest.raises(openai.InternalServerError) as failed:
            await ai.chat.completions.create(
                model=MODEL, messages=[user("Who?")], response_format=WANTED
            )
        assert (failed.value.status_code, failed.value.code, failed.value.param) == (
            502,
            "response_format",
            "response_format",
        )
        assert len(model.requests) == 2
        with pytest.raises(openai.APIError, match="schema"):
            stream = await ai.chat.completions.create(
                model=MODEL, messages=[user("Who?")], response_format=WANTED, stream=True
            )
            assert [
                chunk.choices[0].delta.content
                async for chunk in stream
                if chunk.choices[0].delta.content
            ] == []


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ContextOverflow("too long"), 400, "context_length_exceeded"),
        (BudgetSpent("spent"), 429, "insufficient_quota"),
        (ModelOverloaded("busy", 3600), 429, "rate_limit_exceeded"),
        (ModelKeyRefused("no"), 502, "model_failed"),
    ],
)
async def test_what_went_wrong_has_its_status(
    tmp_path: Path, error: ModelError, status: int, code: str
) -> None:
    def script(request: Request) -> Any:
        raise error

    async with serving(tmp_path, ScriptedModel(script)) as served, client(served) as ai:
        with pytest.raises(openai.APIStatusError) as failed:
            await ai.chat.completions.create(model=MODEL, messages=[user("hi")], timeout=60)
    body: Any = failed.value.body
    assert (failed.value.status_code, failed.value.code) == (status, code) and "param" in body


def pictured(url: str) -> Any:
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": url}},
    ]
    return {"role": "user", "content": parts}


def visiting() -> tuple[Net, list[str]]:
    """The web: one picture, one page, and nothing else."""
    asked: list[str] = []

    async def exchange(
        request: NetRequest, addresses: Sequence[str], limits: NetLimits
    ) -> RawResponse:
        asked.append(request.url.target)
        if request.url.target == "/p.png":
            return 200, {"content-type": "image/png"}, b"\x89PNG\r\n\x1a\n" + bytes(20)
        return (
            (200 if request.url.target == "/page" else 404),
            {"content-type": "text/html"},
            b"<p>no picture</p>",
        )

    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"] if host == "inside.test" else ["93.184.215.14"]

    return Net(resolve=resolve).with_exchange(exchange), asked


async def test_pictures(tmp_path: Path) -> None:
    model = ScriptedModel(lambda request: say("A cat."))
    net, asked = visiting()
    async with serving(tmp_path, model, net=net) as served, client(served) as ai:
        for url in (PICTURE, "https://site.test/p.png"):
            done = await ai.chat.completions.create(
                model=MODEL, messages=[pictured(url), pictured(url)]
            )
            assert done.choices[0].message.content == "A cat."
            parts = model.requests[-1].messages[-1].message.parts
            (image,) = [part for part in parts if isinstance(part, Image)]
            assert (image.mime, image.label.integrity) == (
                "image/png",
                "untrusted",
            ) and image.label.source
            assert [part.label.integrity for part in parts if isinstance(part, Text)][-1] == "owner"
        assert asked == ["/p.png"], "the same address is fetched once"


@pytest.mark.parametrize(
    "url",
    [
        "http://site.test/p.png",
        "https://site.test/page",
        "https://site.test/gone",
        "https://inside.test/p.png",
        "file:///etc/passwd",
        "data:image/png;base64,!!!",
        "data:text/plain;base64,aGVsbG8=",
        "data:image/png,abc",
        "",
    ],
)
async def test_pictures_that_are_not_taken(tmp_path: Path, url: str) -> None:
    net, _ = visiting()
    async with serving(tmp_path, net=net) as served, client(served) as ai:
        with pytest.raises(openai.BadRequestError) as refused:
            await ai.chat.completions.create(model=MODEL, messages=[user("first"), pictured(url)])
        assert refused.value.param == "messages[1].content[1]"


@pytest.mark.parametrize("kind", ["file", "input_audio"])
async def test_other_parts_are_refused_by_name(served: Served, kind: str) -> None:
    message: Any = {"role": "user", "content": [{"type": kind, kind: {"data": "x"}}]}
    async with client(served) as ai:
        with pytest.raises(openai.BadRequestError, match=kind) as refused:
            await ai.chat.completions.create(model=MODEL, messages=[message])
        assert refused.value.param == "messages[0].content[0]"
