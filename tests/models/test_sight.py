"""Pictures reach models that see; who talks with one that does not is told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from aiohttp import web

from deskhand.models.base import ContextMessage, Encoded, Item, Model, Reply, Request, TextDelta
from deskhand.models.settings import Facts, ModelSpec
from deskhand.models.sight import Sighted, detect_vision
from deskhand.types.messages import Image, Message, Text, ToolCall

PICTURE = Image("b" * 64, "image/png", "cat.png")
OLLAMA = ("POST", "/api/show", {"capabilities": ["completion", "vision"]})
BLIND_OLLAMA = ("POST", "/api/show", {"capabilities": ["completion", "tools"]})
LM_STUDIO = (
    "GET",
    "/api/v0/models/qwen/seer",
    {"id": "qwen/seer", "type": "vlm", "arch": "qwen2_vl"},
)
BLIND_LM_STUDIO = ("GET", "/api/v0/models/qwen/seer", {"id": "qwen/seer", "type": "llm"})
LLAMA = ("GET", "/props", {"modalities": {"vision": True, "audio": False}, "total_slots": 4})
OLD_LLAMA = ("GET", "/props", {"total_slots": 4})
LISTED = {
    "data": [
        {"id": "qwen/seer", "architecture": {"input_modalities": ["text", "image"]}},
        {"id": "x"},
    ]
}
OPENROUTER = ("GET", "/v1/models", LISTED)
WORDS = ("GET", "/props", "a page about something else")


@asynccontextmanager
async def serving(*routes: tuple[str, str, Any]) -> AsyncIterator[tuple[str, list[str]]]:
    """A server with these answers, and the paths that it was asked for."""
    asked: list[str] = []
    answers = {(method, path): body for method, path, body in routes}

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        body = answers.get((request.method, request.path))
        return (
            web.json_response(body)
            if body is not None
            else web.json_response({"error": "no"}, status=404)
        )

    app = web.Application()
    app.router.add_route("*", "/{any:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}/v1", asked
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("provider", "routes", "sees"),
    [
        ("ollama", [OLLAMA], True),
        ("ollama", [BLIND_OLLAMA], False),
        ("lmstudio", [LM_STUDIO], True),
        ("lmstudio", [BLIND_LM_STUDIO], False),
        ("mine", [LLAMA], True),
        ("mine", [OLD_LLAMA], None),
        ("mine", [WORDS], None),
        ("mine", [], None),
        ("openrouter", [OPENROUTER], True),
        ("openrouter", [("GET", "/v1/models", {"data": []})], None),
    ],
)
async def test_a_server_is_asked_whether_its_model_sees(
    provider: str, routes: Sequence[tuple[str, str, Any]], sees: bool | None
) -> None:
    async with serving(*routes) as (url, _):
        assert await detect_vision(ModelSpec(provider, "qwen/seer", url, Facts(8192))) is sees


async def test_a_server_that_is_not_there_says_nothing() -> None:
    assert (
        await detect_vision(ModelSpec("ollama", "m", "http://127.0.0.1:9/v1", Facts(8192))) is None
    )


class Saying:
    """Answers in words, or with a call."""

    def __init__(self, text: str, *calls: ToolCall) -> None:
        self.text = text
        self.calls = calls
        self.asked = 0

    async def reply(self, request: Request) -> AsyncIterator[Item]:
        self.asked += 1
        if self.text:
            yield TextDelta(self.text)
        yield Reply(
            Message("assistant", (*((Text(self.text),) if self.text else ()), *self.calls)), "stop"
        )


def asking(*messages: Message) -> Request:
    return Request(
        "m", (), tuple(ContextMessage(n, each) for n, each in enumerate(messages, 1)), ()
    )


async def said(model: Model, request: Request) -> tuple[str, Message]:
    """The words as they came, and the message."""
    items = [item async for item in model.reply(request)]
    reply = items[-1]
    assert isinstance(reply, Reply)
    return "".join(item.text for item in items if isinstance(item, TextDelta)), reply.message


SHOWN = Message("user", (Text("what is this?"), PICTURE))


async def test_who_shows_a_picture_to_a_model_that_does_not_see_is_told() -> None:
    model = Sighted(Saying("A dog."), "lmstudio/m")
    words, message = await said(model, asking(SHOWN))
    assert words == message.text
    assert words.startswith(
        "(I could not see cat.png: lmstudio/m does not accept pictures."
    ) and words.endswith("A dog.")
    assert "providers.lmstudio.vision" in words
    later = asking(
        SHOWN, Message("assistant", (Text("A dog."),)), Message("user", (Text("sure?"),))
    )
    assert (await said(model, later))[0] == "A dog.", "it is told once"


async def test_it_is_told_before_a_call_too() -> None:
    call = ToolCall("c1", "shell", msgspec.Raw(b"{}"))
    words, message = await said(Sighted(Saying("", call), "a/m"), asking(SHOWN))
    assert message.calls == (call,) and message.text == words != ""


async def test_the_server_is_asked_once_and_at_the_first_picture() -> None:
    asked: list[int] = []

    async def sees() -> bool:
        asked.append(1)
        return True

    model = Sighted(Saying("blind"), "a/m", sees, lambda: Saying("A cat."))
    assert (await said(model, asking(Message("user", (Text("hi"),)))))[0] == "blind" and not asked
    assert (
        (await said(model, asking(SHOWN)))[0] == (await said(model, asking(SHOWN)))[0] == "A cat."
    )
    assert asked == [1]


async def test_a_picture_is_found_in_what_is_new_and_in_what_begins_otherwise() -> None:
    memory = Encoded()
    hello = ContextMessage(1, Message("user", (Text("hi"),)))
    shown = ContextMessage(2, SHOWN)
    assert not memory.look_through((hello,)).has_pictures
    assert memory.look_through((hello, shown)).has_pictures
    assert not memory.look_through((hello, hello)).has_pictures, "it was undone"
    assert memory.look_through((shown, hello)).has_pictures


async def test_where_nobody_can_tell_it_stays_blind() -> None:
    async def sees() -> None:
        return None

    words, _ = await said(Sighted(Saying("x"), "a/m", sees, lambda: Saying("y")), asking(SHOWN))
    assert words.startswith("(I could not see") and words.endswith("x")
