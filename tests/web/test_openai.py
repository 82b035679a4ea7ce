"""The real client of OpenAI against our endpoint."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import openai
import pytest

from deskhand.models.base import Request
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types import events as e
from deskhand.types.door import Progress
from deskhand.types.errors import ModelKeyRefused
from deskhand.types.messages import Message, Text, Usage
from deskhand.types.people import SCOPES
from deskhand.web.openai import Telling

from .served import Served, serving
from .test_sockets import act, acting

MODEL = "deskhand/default"


@asynccontextmanager
async def client(served: Served, secret: str = "") -> AsyncIterator[openai.AsyncOpenAI]:
    key = secret or served.owner.headers["authorization"].removeprefix("Bearer ")
    async with openai.AsyncOpenAI(base_url=f"{served.url}/v1", api_key=key, max_retries=0) as made:
        yield made


def user(text: str) -> Any:
    return {"role": "user", "content": text}


async def test_models_and_a_whole_answer(served: Served) -> None:
    async with client(served) as ai:
        assert [each.id async for each in await ai.models.list()] == [MODEL]
        assert (await ai.models.retrieve(MODEL)).owned_by == "deskhand"
        done = await ai.chat.completions.create(model=MODEL, messages=[user("hi")])
        choice = done.choices[0]
        assert (choice.message.content, choice.message.role, choice.finish_reason) == (
            "You said: hi",
            "assistant",
            "stop",
        )
        assert done.usage is not None and done.usage.total_tokens == 20 and done.model == MODEL
        parts: Any = [{"role": "user", "content": [{"type": "text", "text": "in "}, {"type": "text", "text": "parts"}]}]
        told = await ai.chat.completions.create(model=MODEL, messages=parts)
        assert told.choices[0].message.content == "You said: in parts"


async def test_streamed(tmp_path: Path) -> None:
    words = "many words " * 20
    async with serving(tmp_path, ScriptedModel(pause_s=0.01)) as served, client(served) as ai:
        stream = await ai.chat.completions.create(
            model=MODEL, messages=[user(words)], stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
    pieces = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(pieces) == f"You said: {words}" and len([piece for piece in pieces if piece]) > 3
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage is not None and chunks[-1].usage.total_tokens == 20


async def test_bound_to_a_conversation_or_to_none(tmp_path: Path) -> None:
    seen: list[list[str]] = []

    def script(request: Request) -> Message:
        seen.append([shown.message.text.partition("\n")[2] or shown.message.text for shown in request.messages])
        return say("fine")

    async with serving(tmp_path, ScriptedModel(script)) as served, client(served) as ai:
        history: Any = [user("one"), {"role": "assistant", "content": "an answer"}, user("two")]
        for bound in ({"user": "my-chat"}, {"extra_headers": {"X-Deskhand-Session": "other"}}):
            await ai.chat.completions.create(model=MODEL, messages=[user("one")], **bound)
            await ai.chat.completions.create(model=MODEL, messages=history, **bound)
            assert len(seen[-1]) == 3, "what was said before is in the conversation, not said again"
        names = {each["name"] for each in await served.owner.get("/api/sessions")}
        assert {"my-chat", "other"} <= names
        await ai.chat.completions.create(model=MODEL, messages=[{"role": "system", "content": "Be kind."}, *history])
        assert len(seen[-1]) == 1, "a conversation of its own"
        fresh = {each["name"] for each in await served.owner.get("/api/sessions")} - names
        assert len(fresh) == 1
        state = await served.owner.get(f"/api/sessions/{fresh.pop()}/state")
        assert "an answer" in state["context"][0]["text"] and "Be kind." in state["prompt"][-1]


async def test_errors_are_those_that_the_client_knows(tmp_path: Path) -> None:
    def script(request: Request) -> Message:
        raise ModelKeyRefused("the key is not taken")

    async with serving(tmp_path, ScriptedModel(script)) as served, client(served) as ai:
        with pytest.raises(openai.NotFoundError) as missing:
            await ai.chat.completions.create(model="gpt-5", messages=[user("hi")])
        assert missing.value.code == "model_not_found" and "deskhand/default" in missing.value.message
        wrong: list[Any] = [[], [{"role": "assistant", "content": "x"}], [user("  ")]]
        for messages in wrong:
            with pytest.raises(openai.BadRequestError):
                await ai.chat.completions.create(model=MODEL, messages=messages)
        image: Any = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x"}}]}]
        with pytest.raises(openai.BadRequestError):
            await ai.chat.completions.create(model=MODEL, messages=image)
        with pytest.raises(openai.BadRequestError):
            await ai.chat.completions.create(model=MODEL, messages=[user("hi")], n=2)
        with pytest.raises(openai.InternalServerError) as failed:
            await ai.chat.completions.create(model=MODEL, messages=[user("hi")])
        assert failed.value.code == "model_failed"
        with pytest.raises(openai.APIError, match="key"):
            async for _ in await ai.chat.completions.create(model=MODEL, messages=[user("hi")], stream=True):
                pass
        async with client(served, "dh_wrong") as stranger:
            with pytest.raises(openai.AuthenticationError):
                await stranger.models.list()


async def test_a_client_that_goes_stops_the_turn(tmp_path: Path) -> None:
    model = ScriptedModel(lambda request: say("on and on " * 500), pause_s=0.02)
    async with serving(tmp_path, model) as served, client(served) as ai:
        stream = await ai.chat.completions.create(model=MODEL, messages=[user("go")], stream=True, user="long")
        async for chunk in stream:
            if chunk.choices[0].delta.content:
                break
        await stream.close()
        log: list[Any] = []
        with anyio.fail_after(20):
            while not any(each["event"]["type"] == "turn_ended" for each in log):
                log = await served.owner.get("/api/sessions/long/log")
                await anyio.sleep(0.02)
        assert any(each["event"].get("reason") == "stopped" for each in log)
        with pytest.raises(openai.APITimeoutError):
            await ai.chat.completions.create(model=MODEL, messages=[user("go")], user="whole", timeout=0.5)

        with anyio.fail_after(20):
            log = []
            while not any(each["event"].get("reason") == "stopped" for each in log):
                log = await served.owner.get("/api/sessions/whole/log")
                await anyio.sleep(0.02)


async def test_what_must_be_asked_ends_the_answer(tmp_path: Path) -> None:
    async with serving(tmp_path, ScriptedModel(acting), (act,)) as served, client(served) as ai:
        asked = await ai.chat.completions.create(model=MODEL, messages=[user("do it")], user="work")
        assert "act" in (asked.choices[0].message.content or "")
        done = await ai.chat.completions.create(model=MODEL, messages=[user("yes")], user="work")
        assert done.choices[0].message.content == "done"


async def test_scopes_and_agents_hold_here_too(tmp_path: Path) -> None:
    agents: dict[str, Any] = {"one": {}, "two": {}}
    async with serving(tmp_path, agents=agents, roles={"guests": {"agents": ["two"]}}) as served:
        await served.people.add_user("ann", "guests")
        _, secret = await served.people.make_token("ann", "t", SCOPES)
        async with client(served, secret) as ai:
            assert [each.id async for each in await ai.models.list()] == ["deskhand/two"]
            with pytest.raises(openai.NotFoundError):
                await ai.chat.completions.create(model="deskhand/one", messages=[user("hi")])
            told = await ai.chat.completions.create(model="deskhand/two", messages=[user("hi")])
            assert told.choices[0].message.content == "You said: hi"
        _, secret = await served.people.make_token("ann", "t", ("read",))
        async with client(served, secret) as ai:
            with pytest.raises(openai.PermissionDeniedError):
                await ai.chat.completions.create(model="deskhand/two", messages=[user("hi")])


def replied(text: str) -> e.Recorded:
    return e.Recorded(1, "s", 1, 0.0, e.ModelReplied(Message("assistant", (Text(text),)), "m", "stop", Usage(1, 1)))


@pytest.mark.parametrize(
    ("items", "told"),
    [
        ([Progress("text", 1, text="He"), Progress("text", 1, offset=2, text="llo"), replied("Hello")], "Hello"),
        ([Progress("snapshot", 1, text="Hel"), replied("Hello")], "Hello"),
        ([replied("Hello")], "Hello"),
        ([replied("One"), Progress("text", 2, text="Tw"), replied("Two")], "One\n\nTwo"),
        (
            [
                Progress("text", 1, text="He"),
                Progress("reset", 1, 1),
                Progress("text", 1, 1, text="Hi"),
                replied("Hello"),
            ],
            "Hello",
        ),
        ([Progress("text", 1, text="Wro"), Progress("reset", 1, 1), replied("Right")], "Wro\n\nRight"),
    ],
)
def test_each_piece_is_told_once(items: list[Any], told: str) -> None:
    telling = Telling()
    assert "".join(telling.add(item) for item in items) == told
