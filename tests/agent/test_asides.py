"""What a tool is told of the conversation, and what it may ask a model away from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio
import msgspec

from deskhand.models.base import Model, Reply, Request
from deskhand.models.side_completion import Aside
from deskhand.store.base import Store
from deskhand.testing.bench import ANN, Bench
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.tools.base import Context, Done, Tool, make_result
from deskhand.tools.define import tool
from deskhand.types.commit import Commit
from deskhand.types.errors import ModelOverloaded
from deskhand.types.events import AskedAside, ModelReplied, TurnEnded
from deskhand.types.labels import LOCAL, Label
from deskhand.types.messages import Message, Text, ToolCall, Usage

MakeBench = Callable[[Model, Sequence[Tool]], Bench]
PAGE = Label("untrusted", source="https://page.example/")


@tool
async def page(context: Context) -> Done:
    """Read a page."""
    return make_result("planets: 8", PAGE)


@tool(reads=LOCAL)
async def count(context: Context) -> str:
    """Ask a model for a number."""
    schema = {"type": "integer"}
    return (
        f"{await context.ask(Aside('Count.', 'planets: 8', schema))} for "
        f"{context.label.source or 'nobody'}"
    )


def model(fails: bool = False) -> ScriptedModel:
    def script(request: Request) -> Message | Reply:
        if not request.tools:
            if fails:
                raise ModelOverloaded("too many of you")
            return Reply(say(" 8\n"), "stop", Usage(70, 3))
        made = sum(bool(shown.message.calls) for shown in request.messages)
        names = ("page", "count")
        return (
            say("fine")
            if made == 2
            else say("", ToolCall(names[made], names[made], msgspec.Raw(b"{}")))
        )

    return ScriptedModel(script)


async def test_a_tool_asks_a_model_that_knows_nothing_else(bench: MakeBench) -> None:
    asked = model()
    one = bench(asked, [page, count])
    await one.say("go")
    aside = next(request for request in asked.requests if not request.tools)
    assert [shown.message.text for shown in aside.messages] == ["planets: 8"]
    assert aside.system[0].startswith("Count.") and '{"type":"integer"}' in aside.system[0]
    assert (await one.results())[-1].text == "8 for https://page.example/"


async def test_what_it_cost_is_counted(bench: MakeBench) -> None:
    one = bench(model(), [page, count])
    await one.say("go")
    assert [event.usage for event in await one.events() if isinstance(event, AskedAside)] == [
        Usage(70, 3)
    ]
    assert one.session.state is not None and one.session.state.usage == Usage(30 + 70, 30 + 3)
    used = await one.store.usage(ANN)
    assert (used[0].calls, used[0].input_tokens) == (4, 100)


async def test_where_no_model_answers_the_tool_says_so(bench: MakeBench) -> None:
    one = bench(model(fails=True), [page, count])
    await one.say("go")
    result = (await one.results())[-1]
    assert result.status == "error" and "too many of you" in result.text
    assert [part.text for part in result.parts if isinstance(part, Text)] == [
        "no model answered: too many of you"
    ]


class Slow:
    """A store that is busy while it commits what was begun beside a tool; all else as the real
    one."""

    def __init__(self, store: Store, during: Callable[[], Awaitable[None]]) -> None:
        self._store = store
        self._during = during

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, commit: Commit) -> int:
        if any(isinstance(event, ModelReplied) and event.message.calls for event in commit.events):
            await self._during()
        return await self._store.commit(commit)


async def test_what_is_asked_while_the_log_is_written_is_not_lost(bench: MakeBench) -> None:
    writing, asked = anyio.Event(), anyio.Event()

    @tool(reads=LOCAL)
    async def slow(context: Context) -> str:
        """Asks once the call itself is being written."""
        await writing.wait()
        said = await context.ask(Aside("Count.", "planets: 8"))
        asked.set()
        return said

    def script(request: Request) -> Message | Reply:
        if not request.tools:
            return Reply(say("8"), "stop", Usage(70, 3))
        made = any(shown.message.calls for shown in request.messages)
        return say("fine") if made else say("", ToolCall("a", "slow", msgspec.Raw(b"{}")))

    async def during() -> None:
        writing.set()
        await asked.wait()

    one = bench(ScriptedModel(script), [slow])
    one.store = Slow(one.store, during)
    one.start()
    with anyio.fail_after(20):
        await one.say("go")
    events = await one.events()
    assert [event.usage for event in events if isinstance(event, AskedAside)] == [Usage(70, 3)]
    assert isinstance(events[-1], TurnEnded) and events[-1].reason == "done"
