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
from deskhand.types.events import Finish
from deskhand.types.messages import Message, Text, ToolResult, Usage
from deskhand.types.people import SCOPES
from deskhand.web.openai.turn_answer import TurnAnswer

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


def answered(text: str) -> Any:
    return {"role": "assistant", "content": text}


def round_trip(call_id: str, name: str, arguments: str, result: str) -> list[Any]:
    """A call of a client's tool, and its result."""
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": result},
    ]


def named(session: str) -> dict[str, str]:
    return {"X-Deskhand-Session": session}


def roles(request: Request) -> list[str]:
    return [shown.message.role for shown in request.messages]


def check_pairs(request: Request) -> None:
    """Every call is followed by its one result, and no result stands alone."""
    open_calls: list[str] = []
    seen: list[str] = []
    for shown in request.messages:
        results = [part.call_id for part in shown.message.parts if isinstance(part, ToolResult)]
        for each in results:
            open_calls.remove(each)
        assert not open_calls or results
        seen += [call.id for call in shown.message.calls]
        open_calls += [call.id for call in shown.message.calls]
    assert not open_calls and len(seen) == len(set(seen))


async def test_models_and_a_whole_answer(served: Served) -> None:
    async with client(served) as ai:
        assert [each.id async for each in await ai.models.list()] == [MODEL]
        card = await ai.models.retrieve(MODEL)
        assert card.owned_by == "deskhand" and card.created > 1_700_000_000
        done = await ai.chat.completions.create(model=MODEL, messages=[user("hi")])
        choice = done.choices[0]
        assert (choice.message.content, choice.message.role, choice.finish_reason) == (
            "You said: hi",
            "assistant",
            "stop",
        )
        assert done.usage is not None and done.usage.total_tokens == 20 and done.model == MODEL
        parts: Any = [
            {
                "role": "user",
                "content": [{"type": "text", "text": "in "}, {"type": "text", "text": "parts"}],
            }
        ]
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


def texts(request: Request) -> list[str]:
    """The messages of a request in words, without the date that stands before what is said now."""
    found = []
    for shown in request.messages:
        parts = [
            part
            for part in shown.message.parts
            if not (isinstance(part, Text) and part.text.startswith("["))
        ]
        results = [part.text for part in parts if isinstance(part, ToolResult)]
        found.append("".join([part.text for part in parts if isinstance(part, Text)] + results))
    return found


async def test_a_header_names_a_conversation_and_without_it_the_history_is_all(
    tmp_path: Path,
) -> None:
    model = ScriptedModel(lambda request: say("fine"))
    async with serving(tmp_path, model) as served, client(served) as ai:
        history: Any = [user("one"), {"role": "assistant", "content": "an answer"}, user("two")]
        named: Any = {"extra_headers": {"X-Deskhand-Session": "other"}}
        await ai.chat.completions.create(model=MODEL, messages=[user("one")], **named)
        await ai.chat.completions.create(model=MODEL, messages=history, **named)
        assert roles(model.requests[-1]) == ["user", "assistant", "user"], (
            "what was said before is not said again"
        )
        names = {each["name"] for each in (await served.owner.get("/api/sessions"))["sessions"]}
        assert "other" in names
        prompted: Any = [{"role": "system", "content": "Be kind."}, *history]
        await ai.chat.completions.create(model=MODEL, messages=prompted)
        assert roles(model.requests[-1]) == ["user", "assistant", "user"]
        assert (
            "an answer" in texts(model.requests[-1])[1]
            and "Be kind." in model.requests[-1].system[-1]
        )
        fresh = {
            each["name"] for each in (await served.owner.get("/api/sessions"))["sessions"]
        } - names
        assert len(fresh) == 1


async def test_two_chats_of_one_user_do_not_mix(tmp_path: Path) -> None:
    model = ScriptedModel(lambda request: say("fine"))
    async with serving(tmp_path, model) as served, client(served) as ai:
        for _ in range(2):
            done = await ai.chat.completions.with_raw_response.create(
                model=MODEL, messages=[user("hi")], user="ann-7"
            )
            assert len(model.requests[-1].messages) == 1
        name = done.headers["x-deskhand-session"]
        log = await served.owner.get(f"/api/sessions/{name}/log")
        assert [
            each["event"]["request"]["end_user"]
            for each in log
            if each["event"]["type"] == "message_received"
        ] == ["ann-7"]


async def test_what_was_said_long_ago_is_known(tmp_path: Path) -> None:
    """The history is the conversation: shown as messages with their roles, and never as a file."""
    model = ScriptedModel(lambda request: say("fine"))
    filler = [
        each
        for i in range(100)
        for each in (user(f"{i} " + "word " * 200), answered("and so on " * 100))
    ]
    history = [
        user("My dog is Rex."),
        answered("Noted."),
        *filler,
        user("My cat is Tom."),
        answered("Noted."),
    ]
    assert sum(len(each["content"]) for each in history) > 200_000
    roomy: Any = {"defaults": {"models": ["openai/gpt-4o"]}}
    async with serving(tmp_path, model, **roomy) as served, client(served) as ai:
        await ai.chat.completions.create(
            model=MODEL, messages=[*history, user("What is my dog called?")]
        )
        seen = texts(model.requests[-1])
        assert any("Rex" in text for text in seen) and any("Tom" in text for text in seen)
        assert len(seen) == len(history) + 1 and roles(model.requests[-1])[:2] == [
            "user",
            "assistant",
        ]
        assert "received" not in str(await served.owner.get("/api/files"))


async def test_a_history_beyond_the_window_is_trimmed_and_not_refused(tmp_path: Path) -> None:
    model = ScriptedModel(lambda request: say("fine"))
    filler = [
        each
        for i in range(100)
        for each in (user(f"{i} " + "word " * 200), answered("and so on " * 100))
    ]
    history = [
        user("My dog is Rex."),
        answered("Noted."),
        *filler,
        user("My cat is Tom."),
        answered("Noted."),
    ]
    async with serving(tmp_path, model) as served, client(served) as ai:
        await ai.chat.completions.create(
            model=MODEL, messages=[*history, user("What is my cat called?")]
        )
        seen = texts(model.requests[-1])
        assert any("Tom" in text for text in seen) and not any("Rex" in text for text in seen)
        assert 50_000 < len("".join(seen)) < 120_000, (
            "what fits is shown, and this model has room for 32,768 tokens"
        )


async def test_a_history_is_labelled_as_the_word_of_who_told_it(tmp_path: Path) -> None:
    model = ScriptedModel(lambda request: say("fine"))
    async with serving(tmp_path, model) as served, client(served) as ai:
        history = [
            user("look"),
            *round_trip("c1", "find", "{}", "pages say so"),
            answered("I looked."),
            user("And?"),
        ]
        await ai.chat.completions.create(model=MODEL, messages=history)
        said, call, result, answer, _ = [shown.message for shown in model.requests[-1].messages]
        assert [part.label.integrity for part in said.parts if isinstance(part, Text)] == ["owner"]
        assert [each.name for each in call.calls] == ["find"]
        (found,) = [part for part in result.parts if isinstance(part, ToolResult)]
        assert isinstance(found.parts[0], Text)
        assert (found.parts[0].label.integrity, found.parts[0].label.source) == (
            "untrusted",
            "client tool find",
        )
        assert isinstance(answer.parts[0], Text)
        assert (answer.parts[0].label.integrity, answer.parts[0].label.source) == (
            "untrusted",
            "the client's history",
        )


async def test_calls_and_results_that_have_no_partner_reach_no_provider(tmp_path: Path) -> None:
    model = ScriptedModel(lambda request: say("fine"))
    call, result = round_trip("c1", "find", "{}", "found")
    async with serving(tmp_path, model) as served, client(served) as ai:
        for history in (
            [user("a"), call, user("b")],
            [user("a"), result, user("b")],
            [user("a"), call, user("b"), result, user("c")],
            [user("a"), call, result, result, call, result, user("c")],
        ):
            await ai.chat.completions.create(model=MODEL, messages=history)
            check_pairs(model.requests[-1])


async def test_a_result_of_nobodys_call_is_still_answered(tmp_path: Path) -> None:
    model = ScriptedModel(lambda request: say("It is sunny."))
    async with serving(tmp_path, model) as served, client(served) as ai:
        history = [user("Weather?"), *round_trip("call_of_yesterday", "weather", "{}", "sun")]
        done = await ai.chat.completions.create(model=MODEL, messages=history)
        assert done.choices[0].message.content == "It is sunny."
        assert roles(model.requests[-1]) == ["user", "assistant", "tool"]
        check_pairs(model.requests[-1])


async def test_errors_are_those_that_the_client_knows(tmp_path: Path) -> None:
    def script(request: Request) -> Message:
        raise ModelKeyRefused("the key is not taken")

    async with serving(tmp_path, ScriptedModel(script)) as served, client(served) as ai:
        for path in ("/v1/embeddings", "/v1/nothing"):
            for method in ("GET", "POST"):
                status, told = await served.owner.ask(
                    method, path, {} if method == "POST" else None
                )
                assert status == 404 and set(told["error"]) >= {"message", "type", "param", "code"}
        with pytest.raises(openai.NotFoundError) as missing:
            await ai.chat.completions.create(model="gpt-5", messages=[user("hi")])
        assert (
            missing.value.code == "model_not_found" and "deskhand/default" in missing.value.message
        )
        wrong: list[Any] = [[], [{"role": "assistant", "content": "x"}], [user("  ")]]
        for messages in wrong:
            with pytest.raises(openai.BadRequestError):
                await ai.chat.completions.create(model=MODEL, messages=messages)
        image: Any = [
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x"}}]}
        ]
        with pytest.raises(openai.BadRequestError):
            await ai.chat.completions.create(model=MODEL, messages=image)
        with pytest.raises(openai.BadRequestError):
            await ai.chat.completions.create(model=MODEL, messages=[user("hi")], n=2)
        with pytest.raises(openai.InternalServerError) as failed:
            await ai.chat.completions.create(model=MODEL, messages=[user("hi")])
        assert failed.value.code == "model_failed"
        with pytest.raises(openai.APIError, match="key"):
            async for _ in await ai.chat.completions.create(
                model=MODEL, messages=[user("hi")], stream=True
            ):
                pass
        async with client(served, "dh_wrong") as stranger:
            with pytest.raises(openai.AuthenticationError):
                await stranger.models.list()


async def test_a_client_that_goes_stops_the_turn(tmp_path: Path) -> None:
    model = ScriptedModel(lambda request: say("on and on " * 500), pause_s=0.02)
    async with serving(tmp_path, model) as served, client(served) as ai:
        stream = await ai.chat.completions.create(
            model=MODEL, messages=[user("go")], stream=True, extra_headers=named("long")
        )
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
            await ai.chat.completions.create(
                model=MODEL, messages=[user("go")], extra_headers=named("whole"), timeout=0.5
            )

        with anyio.fail_after(20):
            log = []
            while not any(each["event"].get("reason") == "stopped" for each in log):
                log = await served.owner.get("/api/sessions/whole/log")
                await anyio.sleep(0.02)


async def test_a_client_that_goes_while_it_waits_stops_nobody_else(tmp_path: Path) -> None:
    model = ScriptedModel(lambda request: say("on and on " * 40), pause_s=0.05)
    async with serving(tmp_path, model) as served, client(served) as ai:
        stream = await ai.chat.completions.create(
            model=MODEL, messages=[user("go")], stream=True, extra_headers=named("one")
        )
        chunks = [await anext(aiter(stream)), await anext(aiter(stream))]
        with pytest.raises(openai.APITimeoutError):
            await ai.chat.completions.create(
                model=MODEL, messages=[user("me too")], extra_headers=named("one"), timeout=0.3
            )
        chunks += [chunk async for chunk in stream]
        assert (
            "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "on and on " * 40
        )
        log = await served.owner.get("/api/sessions/one/log")
        assert all(each["event"].get("reason") != "stopped" for each in log)


async def test_what_must_be_asked_ends_the_answer(tmp_path: Path) -> None:
    async with serving(tmp_path, ScriptedModel(acting), (act,)) as served, client(served) as ai:
        asked = await ai.chat.completions.create(
            model=MODEL, messages=[user("do it")], extra_headers=named("work")
        )
        assert "act" in (asked.choices[0].message.content or "")
        done = await ai.chat.completions.create(
            model=MODEL, messages=[user("yes")], extra_headers=named("work")
        )
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


def replied(text: str, finish: Finish = "stop") -> e.Recorded:
    return e.Recorded(
        1,
        "s",
        1,
        0.0,
        e.ModelReplied(Message("assistant", (Text(text),)), "m", finish, Usage(1, 1)),
    )


@pytest.mark.parametrize(
    ("items", "told"),
    [
        (
            [
                Progress("text", 1, text="He"),
                Progress("text", 1, offset=2, text="llo"),
                replied("Hello"),
            ],
            "Hello",
        ),
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
        ([replied("One ", "length"), Progress("text", 2, text="tw"), replied("two")], "One two"),
        (
            [Progress("text", 1, text="Wro"), Progress("reset", 1, 1), replied("Right")],
            "Wro\n\nRight",
        ),
    ],
)
def test_each_piece_is_told_once(items: list[Any], told: str) -> None:
    answer = TurnAnswer()
    assert "".join(answer.add(item) for item in items) == told
