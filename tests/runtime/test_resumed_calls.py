"""A tool that asks a person and goes on with the answer: once, whatever happens in between."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import msgspec

from deskhand.config.config import Config, Home, Settings
from deskhand.runtime.app import App, Parts, open_app
from deskhand.testing.scripted import ScriptedModel
from deskhand.testing.temporary_home import OWNER, script, wait_for
from deskhand.tools.base import Context, Outcome, PersonQuestion, Spec, make_result
from deskhand.types.events import CallClosed, QuestionAsked, ToolFinished, TurnEnded
from deskhand.types.identity import Address, Inbound, Said
from deskhand.types.labels import LOCAL
from deskhand.types.messages import Message, Text, ToolResult

SESSION = "default/terminal:1"


class Asks:
    """Does something, asks, and goes on."""

    spec = Spec("asks", "Asks.", {"type": "object", "properties": {}}, "local_write", "never")

    def __init__(self, *, hangs: bool = False) -> None:
        self.begun = self.resumed = 0
        self._hangs = hangs

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        if context.answer is None:
            self.begun += 1
            return PersonQuestion("Which one?", resumes=True)
        self.resumed += 1
        if self._hangs:
            await anyio.sleep_forever()
        return make_result(f"took {context.answer.text}", LOCAL)


@asynccontextmanager
async def living(home: Path, tool: Asks) -> AsyncIterator[App]:
    settings = Settings(Home(home), Config()).with_model("scripted/test")
    parts = Parts(lambda name: ScriptedModel(script), {"asks": tool})
    async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.run)
        yield app
        tasks.cancel_scope.cancel()


async def begin(app: App) -> None:
    body = Said(Message("user", (Text('[["asks", {}]]'),)))
    await app.door.submit(Inbound("1", Address("terminal", chat="1"), "owner", 1.0, body))


async def answer(app: App) -> None:
    async def asked() -> list[QuestionAsked]:
        events = [each.event for each in await app.store.events(SESSION)]
        return [each for each in events if isinstance(each, QuestionAsked)]

    (question,) = await wait_for(asked, 20)
    assert (await app.door.answer(question.ask_id, "the red", OWNER)).status == "accepted"


async def result(app: App) -> ToolResult:
    async def finished() -> list[ToolResult]:
        events = [each.event for each in await app.store.events(SESSION)]
        return [each.result for each in events if isinstance(each, ToolFinished)]

    found: list[ToolResult] = await wait_for(finished, 20)
    return found[0]


async def test_it_goes_on_with_the_answer(tmp_path: Path) -> None:
    tool = Asks()
    async with living(tmp_path, tool) as app:
        await begin(app)
        await answer(app)
        assert (await result(app)).text == "took the red"
    assert (tool.begun, tool.resumed) == (1, 1)


async def test_the_question_outlives_a_restart(tmp_path: Path) -> None:
    async with living(tmp_path, Asks()) as app:
        await begin(app)
        await wait_for(partial(_is_asked, app), 20)
    tool = Asks()
    async with living(tmp_path, tool) as app:
        await answer(app)
        assert (await result(app)).text == "took the red"
    assert (tool.begun, tool.resumed) == (0, 1)


async def test_what_was_cut_off_while_it_went_on_is_not_repeated(tmp_path: Path) -> None:
    first = Asks(hangs=True)
    async with living(tmp_path, first) as app:
        await begin(app)
        await answer(app)
        with anyio.fail_after(20):
            while not first.resumed:
                await anyio.sleep(0.01)
    tool = Asks()
    async with living(tmp_path, tool) as app:
        told = await result(app)
    assert told.status == "interrupted" and "may or may not have happened" in told.text
    assert (tool.begun, tool.resumed) == (0, 0)


async def test_a_stop_while_it_asks_says_what_is_not_known(tmp_path: Path) -> None:
    async with living(tmp_path, Asks()) as app:
        await begin(app)
        await wait_for(partial(_is_asked, app), 20)
        await app.door.stop(SESSION, OWNER)

        async def ended() -> bool:
            events = await app.store.events(SESSION)
            return isinstance(events[-1].event, TurnEnded)

        await wait_for(ended, 20)
        events = [each.event for each in await app.store.events(SESSION)]
    (closed,) = [each for each in events if isinstance(each, CallClosed)]
    assert "may or may not have happened" in closed.reason


async def _is_asked(app: App) -> bool:
    return any(isinstance(each.event, QuestionAsked) for each in await app.store.events(SESSION))
