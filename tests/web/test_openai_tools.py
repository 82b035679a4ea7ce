"""Tools of the client: its calls are handed over, and its results go on with the turn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import msgspec
import openai
import pytest

from deskhand.agent.handed_calls import HANDOVER_TIMEOUT_S
from deskhand.models.base import Request
from deskhand.testing.clock import SetClock
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.tools.base import Context, Outcome, Spec, make_result
from deskhand.types.labels import LOCAL
from deskhand.types.messages import Message, ToolCall, ToolResult
from deskhand.types.people import SCOPES

from .served import Served, serving
from .test_openai import MODEL, answered, check_pairs, client, named, roles, user
from .test_sockets import act


def tool(name: str) -> Any:
    parameters = {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    }
    return {
        "type": "function",
        "function": {"name": name, "description": f"The {name}.", "parameters": parameters},
    }


WEATHER = tool("weather")


def calling(number: int, name: str = "weather", city: str = "Bern") -> ToolCall:
    return ToolCall(f"call_{number}", name, msgspec.Raw(msgspec.json.encode({"city": city})))


def results_in(request: Request) -> list[str]:
    """The results that stand after the last reply."""
    found: list[str] = []
    for shown in reversed(request.messages):
        if shown.message.role == "assistant":
            break
        found[:0] = [part.text for part in shown.message.parts if isinstance(part, ToolResult)]
    return found


def forecast(request: Request) -> Message:
    """Asks for the weather of two cities at once, then says what came."""
    results = results_in(request)
    if not results:
        return say("Let me look.", calling(1), calling(2, city="Rome"))
    return say(f"It is {' and '.join(results)}.")


def given(message: Any, *results: str) -> list[Any]:
    """The client's next messages: the calls as they came, and the results of its tools."""
    told = [
        {"role": "tool", "tool_call_id": call.id, "content": result}
        for call, result in zip(message.tool_calls, results, strict=True)
    ]
    return [message.model_dump(exclude_none=True), *told]


class Own:
    """A tool of ours."""

    def __init__(self, name: str) -> None:
        self.spec = Spec(name, f"Our own {name}.", {"type": "object", "properties": {}})
        self.ran = 0

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        self.ran += 1
        return make_result(f"own {self.spec.name}", LOCAL)


async def log_of(served: Served, name: str) -> list[Any]:
    return [each["event"] for each in await served.owner.get(f"/api/sessions/{name}/log")]


async def test_parallel_calls_are_handed_over_and_their_results_go_on(tmp_path: Path) -> None:
    model = ScriptedModel(forecast)
    async with serving(tmp_path, model) as served, client(served) as ai:
        messages = [user("How is the weather?")]
        raw = await ai.chat.completions.with_raw_response.create(
            model=MODEL, messages=messages, tools=[WEATHER]
        )
        first = raw.parse().choices[0]
        assert first.finish_reason == "tool_calls" and first.message.content == "Let me look."
        calls: Any = first.message.tool_calls
        assert [(call.function.name, call.function.arguments) for call in calls] == [
            ("weather", '{"city":"Bern"}'),
            ("weather", '{"city":"Rome"}'),
        ]
        assert len({call.id for call in calls}) == 2 and not {"call_1", "call_2"} & {
            call.id for call in calls
        }
        assert [each.name for each in model.requests[0].tools] == ["weather"]

        follow_up = await ai.chat.completions.create(
            model=MODEL, messages=[*messages, *given(first.message, "rain", "sun")], tools=[WEATHER]
        )
        assert follow_up.choices[0].message.content == "It is rain and sun."
        assert follow_up.choices[0].finish_reason == "stop"
        assert roles(model.requests[-1]) == ["user", "assistant", "tool", "tool"]

        events = await log_of(served, raw.headers["x-deskhand-session"])
        assert [each["type"] for each in events][-1] == "turn_ended" and len(model.requests) == 2
        labels = [
            part["label"]
            for each in events
            if each["type"] == "tool_finished"
            for part in each["result"]["parts"]
        ]
        assert labels == [{"source": "client tool weather"}] * 2, (
            "what a client's tool gives is from outside"
        )


async def test_streamed_calls(tmp_path: Path) -> None:
    async with serving(tmp_path, ScriptedModel(forecast)) as served, client(served) as ai:
        stream = await ai.chat.completions.create(
            model=MODEL, messages=[user("Weather?")], tools=[WEATHER], stream=True
        )
        chunks = [chunk async for chunk in stream]
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    fragments = [fragment for delta in deltas for fragment in delta.tool_calls or ()]
    assert [(each.index, each.type) for each in fragments] == [(0, "function"), (1, "function")]
    functions: Any = [each.function for each in fragments]
    assert [each.arguments for each in functions] == ['{"city":"Bern"}', '{"city":"Rome"}']
    assert "".join(delta.content or "" for delta in deltas) == "Let me look."
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


async def test_ours_run_first_and_the_clients_wins_a_name(tmp_path: Path) -> None:
    ours = Own("notes")
    same = Own("weather")

    def script(request: Request) -> Message:
        results = results_in(request)
        return say(f"Done: {results}.") if results else say("", calling(1), calling(2, "notes"))

    model = ScriptedModel(script)
    async with serving(tmp_path, model, (ours, same)) as served, client(served) as ai:
        messages = [user("Go.")]
        done = await ai.chat.completions.create(model=MODEL, messages=messages, tools=[WEATHER])
        message = done.choices[0].message
        assert [each.description for each in model.requests[0].tools] == [
            "Our own notes.",
            "The weather.",
        ]
        assert (ours.ran, same.ran) == (1, 0) and message.content is None
        calls: Any = message.tool_calls
        assert [call.function.name for call in calls] == ["weather"]
        told = [*messages, *given(message, "rain")]
        last = await ai.chat.completions.create(model=MODEL, messages=told, tools=[WEATHER])
        assert "own notes" in str(last.choices[0].message.content) and "rain" in str(
            last.choices[0].message.content
        )
        await ai.chat.completions.create(model=MODEL, messages=[user("Without tools of yours?")])
        assert {each.description for each in model.requests[-1].tools} == {
            "Our own notes.",
            "Our own weather.",
        }


@pytest.mark.parametrize(
    ("choice", "offered", "must_call"),
    [
        ("auto", {"notes", "weather", "time"}, ""),
        ("none", {"notes"}, ""),
        ("required", {"weather", "time"}, "*"),
        ({"type": "function", "function": {"name": "time"}}, {"weather", "time"}, "time"),
    ],
)
async def test_tool_choice(tmp_path: Path, choice: Any, offered: set[str], must_call: str) -> None:
    model = ScriptedModel(lambda request: say("fine"))
    async with serving(tmp_path, model, (Own("notes"),)) as served, client(served) as ai:
        tools = [WEATHER, tool("time")]
        await ai.chat.completions.create(
            model=MODEL, messages=[user("Go.")], tools=tools, tool_choice=choice
        )
    assert {each.name for each in model.requests[0].tools} == offered
    assert model.requests[0].must_call == must_call


async def test_one_call_at_a_time(tmp_path: Path) -> None:
    model = ScriptedModel(forecast)
    async with serving(tmp_path, model) as served, client(served) as ai:
        messages = [user("Weather?")]
        done = await ai.chat.completions.create(
            model=MODEL, messages=messages, tools=[WEATHER], parallel_tool_calls=False
        )
        assert len(done.choices[0].message.tool_calls or ()) == 1 and model.requests[0].one_call
        told = [*messages, *given(done.choices[0].message, "rain")]
        last = await ai.chat.completions.create(model=MODEL, messages=told, tools=[WEATHER])
        assert "rain" in str(last.choices[0].message.content)
        check_pairs(model.requests[-1])


async def test_the_next_request_says_how_the_turn_goes_on(tmp_path: Path) -> None:
    """What has to be called once has not to be called for ever."""
    model = ScriptedModel(forecast)
    async with serving(tmp_path, model) as served, client(served) as ai:
        messages = [user("Weather?")]
        done = await ai.chat.completions.create(
            model=MODEL, messages=messages, tools=[WEATHER], tool_choice="required", temperature=0.1
        )
        told = [
            *messages,
            *given(done.choices[0].message, "rain", "sun"),
            user("In short, please."),
        ]
        await ai.chat.completions.create(
            model=MODEL, messages=told, tools=[WEATHER], temperature=0.9
        )
    assert [(each.must_call, each.temperature) for each in model.requests] == [
        ("*", 0.1),
        ("", 0.9),
    ]
    assert "In short, please." in model.requests[-1].messages[-1].message.text


async def test_results_of_others_or_of_yesterday_are_plain_history(tmp_path: Path) -> None:
    """Who does not wait for them gets an answer all the same, and nobody goes on with another's
    turn."""
    model = ScriptedModel(forecast)
    async with serving(tmp_path, model) as served, client(served) as ai:
        messages = [user("Weather?")]
        first = await ai.chat.completions.with_raw_response.create(
            model=MODEL, messages=messages, tools=[WEATHER], extra_headers=named("mine")
        )
        told = [*messages, *given(first.parse().choices[0].message, "rain", "sun")]
        await served.people.add_user("ann", "member")
        _, secret = await served.people.make_token("ann", "t", SCOPES)
        async with client(served, secret) as other:
            done = await other.chat.completions.with_raw_response.create(
                model=MODEL, messages=told, tools=[WEATHER]
            )
            assert done.parse().choices[0].message.content == "It is rain and sun."
        assert (await log_of(served, "mine"))[-1]["type"] == "calls_handed_over", (
            "it still waits for its own client"
        )

        await ai.chat.completions.create(model=MODEL, messages=told, tools=[WEATHER])
        assert (await log_of(served, "mine"))[-1]["type"] == "turn_ended"
        twice = await ai.chat.completions.with_raw_response.create(
            model=MODEL, messages=told, tools=[WEATHER]
        )
        assert twice.parse().choices[0].message.content == "It is rain and sun."
        assert twice.headers["x-deskhand-session"] != "mine"
        check_pairs(model.requests[-1])


async def test_a_new_message_takes_the_place_of_results(tmp_path: Path) -> None:
    model = ScriptedModel(lambda request: say("", calling(1)) if request.tools else say("fine"))
    async with serving(tmp_path, model) as served, client(served) as ai:
        await ai.chat.completions.create(
            model=MODEL, messages=[user("Weather?")], tools=[WEATHER], extra_headers=named("n")
        )
        with anyio.fail_after(20):
            done = await ai.chat.completions.create(
                model=MODEL, messages=[user("Never mind.")], extra_headers=named("n")
            )
        assert done.choices[0].message.content == "fine"
        check_pairs(model.requests[-1])


async def test_calls_that_nobody_returns_expire(tmp_path: Path) -> None:
    clock = SetClock()
    model = ScriptedModel(forecast)
    async with serving(tmp_path, model, clock=clock) as served, client(served) as ai:
        messages = [user("Weather?")]
        first = await ai.chat.completions.create(
            model=MODEL, messages=messages, tools=[WEATHER], extra_headers=named("n")
        )
        clock.advance(HANDOVER_TIMEOUT_S + 1)
        served.app.dispatch.wake("default/web:owner:n")
        events: list[Any] = []
        with anyio.fail_after(20):
            while not events or events[-1]["type"] != "turn_ended":
                events = await log_of(served, "n")
                await anyio.sleep(0.01)
        assert [each["status"] for each in events if each["type"] == "call_closed"] == [
            "expired",
            "expired",
        ]
        assert len(model.requests) == 1, "nobody is there to read what it would say"
        told = [*messages, *given(first.choices[0].message, "rain", "sun")]
        late = await ai.chat.completions.create(model=MODEL, messages=told, tools=[WEATHER])
        assert late.choices[0].message.content == "It is rain and sun."


async def test_a_stop_ends_a_turn_that_waits(tmp_path: Path) -> None:
    async with serving(tmp_path, ScriptedModel(forecast)) as served, client(served) as ai:
        await ai.chat.completions.create(
            model=MODEL, messages=[user("Weather?")], tools=[WEATHER], extra_headers=named("n")
        )
        status, _ = await served.owner.ask("POST", "/api/sessions/n/stop")
        assert status == 202
        events: list[Any] = []
        with anyio.fail_after(20):
            while not events or events[-1]["type"] != "turn_ended":
                events = await log_of(served, "n")
                await anyio.sleep(0.01)
        assert events[-1]["reason"] == "stopped"
        assert await served.owner.get("/api/approvals") == []


async def test_many_rounds_are_not_one_long_turn(tmp_path: Path) -> None:
    """The client asks anew each time: what a turn may use does not end after some rounds."""
    model = ScriptedModel(lambda request: say("", calling(len(model.requests))))
    config: Any = {"defaults": {"models": ["scripted/echo"], "steps": 3}}
    async with serving(tmp_path, model, **config) as served, client(served) as ai:
        messages = [user("Go on.")]
        for number in range(6):
            done = await ai.chat.completions.create(model=MODEL, messages=messages, tools=[WEATHER])
            assert done.choices[0].finish_reason == "tool_calls"
            messages += given(done.choices[0].message, f"result {number}")


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": [WEATHER, WEATHER]}, "tools[1].function.name"),
        ({"tools": [tool("no such name!")]}, "tools[0].function.name"),
        (
            {"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "x"}}},
            "tool_choice",
        ),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools[0].type"),
    ],
)
async def test_tools_that_cannot_be(served: Served, fields: Any, param: str) -> None:
    async with client(served) as ai:
        with pytest.raises(openai.BadRequestError) as refused:
            await ai.chat.completions.create(
                model=MODEL, messages=[user("hi"), answered("hi"), user("x")], **fields
            )
    assert refused.value.param == param


async def test_calls_are_handed_over_after_a_question_was_answered(tmp_path: Path) -> None:
    """The reply with the call stands in the log before the message that answers the question."""

    def script(request: Request) -> Message:
        results = results_in(request)
        if results:
            return say(f"Done: {results}.")
        return say("", ToolCall("c1", "act", msgspec.Raw(b'{"what": "it"}')), calling(2))

    async with serving(tmp_path, ScriptedModel(script), (act,)) as served, client(served) as ai:
        asked = await ai.chat.completions.create(
            model=MODEL, messages=[user("Go.")], tools=[WEATHER], extra_headers=named("n")
        )
        assert asked.choices[0].finish_reason == "stop"
        agreed = await ai.chat.completions.create(
            model=MODEL, messages=[user("yes")], tools=[WEATHER], extra_headers=named("n")
        )
        assert agreed.choices[0].finish_reason == "tool_calls"
        calls: Any = agreed.choices[0].message.tool_calls
        assert [(call.function.name, call.function.arguments) for call in calls] == [
            ("weather", '{"city":"Bern"}')
        ]
        told = [user("Go."), *given(agreed.choices[0].message, "rain")]
        done = await ai.chat.completions.create(model=MODEL, messages=told, tools=[WEATHER])
        assert "did it" in str(done.choices[0].message.content) and "rain" in str(
            done.choices[0].message.content
        )


async def test_a_last_result_needs_a_call(tmp_path: Path) -> None:
    """One in the messages, or one that was handed over and still waits."""
    async with serving(tmp_path, ScriptedModel(forecast)) as served, client(served) as ai:
        messages = [user("Weather?")]
        first = await ai.chat.completions.create(model=MODEL, messages=messages, tools=[WEATHER])
        results = given(first.choices[0].message, "rain", "sun")[1:]
        stray: Any = {"role": "tool", "tool_call_id": "call_of_nobody", "content": "x"}
        for wrong in ([stray], [user("hi"), stray], [user("hi"), answered("hello"), stray]):
            with pytest.raises(openai.BadRequestError) as refused:
                await ai.chat.completions.create(model=MODEL, messages=wrong, tools=[WEATHER])
            assert refused.value.param == f"messages[{len(wrong) - 1}].tool_call_id"

        done = await ai.chat.completions.create(model=MODEL, messages=results, tools=[WEATHER])
        assert done.choices[0].message.content == "It is rain and sun."
