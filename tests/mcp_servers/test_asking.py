"""Servers that ask back: a person fills in a form while the call rests in the log, a model answers,
and what they have new rests until a person has looked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

import deskhand.testing
from deskhand.mcp.forms import FormField, list_choices, make_question, parse_answer, read_fields
from deskhand.runtime.app import App
from deskhand.testing.temporary_home import OWNER, TemporaryHome, results, wait_for
from deskhand.types.errors import ToolError
from deskhand.types.events import CallClosed, QuestionAsked, ToolStarted, TurnEnded

from .working import desk_of, known, running, server_of, tools_of

SESSION = "default/terminal:1"


class Person:
    """Sees questions, and answers them."""

    def __init__(self, desk: TemporaryHome, app: App) -> None:
        self.desk, self.app = desk, app
        self.seen = 0

    async def begins(self, tool: str, chat: str = "1", **given: Any) -> None:
        await self.desk.say(self.app, json.dumps([[f"mcp__test__{tool}", given]]), chat)

    async def question(self) -> QuestionAsked:
        """The next one that was not seen."""

        async def asked() -> list[QuestionAsked]:
            events = [each.event for each in await self.app.store.events(SESSION)]
            return [each for each in events if isinstance(each, QuestionAsked)][self.seen :]

        found: QuestionAsked = (await wait_for(asked, 15))[0]
        self.seen += 1
        return found

    async def answers(self, text: str) -> QuestionAsked:
        asked = await self.question()
        receipt = await self.app.door.answer(asked.ask_id, text, OWNER)
        assert receipt.status == "accepted"
        return asked

    async def result(self, number: int = 0) -> str:
        async def found() -> list[str]:
            return (await results(self.app, SESSION))[number:]

        return str((await wait_for(found, 15))[0])


def asking(home: Path, **more: Any) -> TemporaryHome:
    return desk_of(home, mcp={"test": server_of("asks", **{"elicitation": True, **more})})


async def test_a_person_fills_in_what_a_server_asks(tmp_path: Path) -> None:
    desk = asking(tmp_path)
    async with running(desk) as app:
        person = Person(desk, app)
        await person.begins("order", what="tea")
        first = await person.answers("large")
        assert first.question.startswith(
            "The MCP server test asks:\nAbout the tea\nsize (Which one)"
        )
        assert first.choices == ("small", "large", "decline") and first.resumes
        await person.answers("many")
        again = await person.answers("3")
        assert "count (How many)" in again.question and "does not fit" in again.question
        assert await person.result() == "3 large tea"
        assert (app.settings.home.mcp_server("test") / "orders.txt").read_text() == "tea\n"
        events = [each.event for each in await app.store.events(SESSION)]
        assert sum(isinstance(each, ToolStarted) for each in events) == 4, "once for each leg"
        assert not app.features.mcp._calls


async def test_a_person_declines(tmp_path: Path) -> None:
    desk = asking(tmp_path)
    async with running(desk) as app:
        person = Person(desk, app)
        await person.begins("order", what="tea")
        await person.answers("decline")
        assert await person.result() == "no order: decline"


async def test_nobody_is_asked_by_a_server_that_may_not(tmp_path: Path) -> None:
    desk = asking(tmp_path, elicitation=False)
    async with running(desk) as app:
        person = Person(desk, app)
        await person.begins("order", what="tea")
        assert "licitation" in await person.result()
        await person.begins("sum_up", text="x")
        assert "it said" not in await person.result(1)


async def test_a_stopped_turn_ends_the_call_and_the_next_begins_anew(tmp_path: Path) -> None:
    desk = asking(tmp_path)
    async with running(desk) as app:
        person = Person(desk, app)
        await person.begins("order", what="tea")
        await person.question()
        await app.door.stop(SESSION, OWNER)

        async def ended() -> bool:
            events = [each.event for each in await app.store.events(SESSION)]
            return isinstance(events[-1], TurnEnded)

        await wait_for(ended)
        await person.begins("order", what="milk")
        await person.answers("small")
        await person.answers("1")
        assert await person.result() == "1 small milk"


async def test_a_stopped_turn_ends_the_call_for_others_too(tmp_path: Path) -> None:
    desk = asking(tmp_path)
    async with running(desk) as app:
        person = Person(desk, app)
        await person.begins("order", what="tea")
        await person.question()
        await app.door.stop(SESSION, OWNER)

        async def given_up() -> bool:
            return not app.features.mcp._calls

        await wait_for(given_up, 30)
        closed = [
            each.event
            for each in await app.store.events(SESSION)
            if isinstance(each.event, CallClosed)
        ]
        assert "may or may not have happened" in closed[-1].reason
        other = f"{SESSION[:-1]}2"
        await person.begins("order", "2", what="milk")

        async def asked() -> bool:
            events = await app.store.events(other)
            return any(isinstance(each.event, QuestionAsked) for each in events)

        assert await wait_for(asked, 30)


async def test_a_broken_answer_ends_its_call_alone(tmp_path: Path) -> None:
    folder = Path(deskhand.testing.__file__).parent
    liar = server_of(elicitation=True)
    liar["args"] = [str(Path(__file__).with_name("lying_server.py"))]
    liar["folders"] = [*liar["folders"], str(folder)]
    liar["env"] = {"PYTHONPATH": str(folder)}
    mcp = {"liar": liar, "test": server_of("asks", elicitation=True)}
    desk = desk_of(tmp_path, mcp=mcp)
    async with running(desk) as app:
        person = Person(desk, app)
        told = await desk.call(app, "mcp__liar__lie", text="x")
        assert "may or may not have happened" in told
        assert app.features.mcp.is_running
        await person.begins("order", what="tea")
        await person.answers("large")
        await person.answers("1")
        assert await person.result(1) == "1 large tea"


async def test_an_answer_orders_nothing_and_two_questions_are_apart(tmp_path: Path) -> None:
    desk = asking(tmp_path)
    async with running(desk) as app:
        person = Person(desk, app)
        await person.begins("ask_twice")
        first = await person.answers("Ann")
        second = await person.answers("Ben")
        assert first.question != second.question
        told = await person.result()
        assert sorted(told.split()) == ["Ann", "Ben"]


async def test_read_only_calls_in_one_reply_ask_one_after_the_other(tmp_path: Path) -> None:
    desk = asking(tmp_path, read_only=["order"])
    async with running(desk) as app:
        person = Person(desk, app)
        calls = [["mcp__test__order", {"what": what}] for what in ("tea", "milk")]
        await desk.say(app, json.dumps(calls))
        for answer in ("large", "1", "small", "2"):
            await person.answers(answer)
        assert await person.result() == "1 large tea"
        assert await person.result(1) == "2 small milk"


async def test_another_conversation_is_told_to_wait(tmp_path: Path) -> None:
    desk = asking(tmp_path)
    async with running(desk) as app:
        person = Person(desk, app)
        await person.begins("order", what="tea")
        await person.question()
        told = await desk.call(app, "mcp__test__order", chat="2", what="milk")
        assert "in another conversation" in told


async def test_a_call_whose_process_has_ended_is_told_of_and_not_repeated(tmp_path: Path) -> None:
    desk = asking(tmp_path)
    async with running(desk) as app:
        person = Person(desk, app)
        await person.begins("order", what="tea")
        await person.question()
    async with running(desk) as app:
        person = Person(desk, app)
        await person.answers("large")
        assert "was left while a person was asked" in await person.result()
        assert (app.settings.home.mcp_server("test") / "orders.txt").read_text() == "tea\n"


async def test_a_model_answers_what_a_server_asks(tmp_path: Path) -> None:
    desk = asking(tmp_path, elicitation=False, sampling=True)
    async with running(desk) as app:
        person = Person(desk, app)
        await person.begins("sum_up", text="a long text")
        assert await person.result() == "it said done"
        assert any("Sum up: a long text" in str(each) for each in desk.model.requests)


async def test_a_tool_that_is_new_while_it_runs_rests(tmp_path: Path) -> None:
    desk = asking(tmp_path)
    async with running(desk) as app:
        assert await desk.call(app, "mcp__test__grow") == "grew"

        async def is_known() -> bool:
            return any(each.name == "grown" for each in app.features.mcp.known_tools())

        await wait_for(is_known)
        assert known(app, "grown").state == "new" and "mcp__test__grown" not in tools_of(app)


async def test_a_server_that_ends_while_it_asks(tmp_path: Path) -> None:
    desk = asking(tmp_path)
    async with running(desk) as app:
        person = Person(desk, app)
        await person.begins("order", what="tea")
        await person.question()
        app.features.mcp.stop("test")
        await anyio.sleep(0.2)
        receipt = await app.door.answer(
            (await app.store.events(SESSION))[-1].event.ask_id,  # type: ignore[union-attr]
            "large",
            OWNER,
        )
        assert receipt.status == "accepted"
        told = await person.result()
        assert "was left while a person was asked" in told or "Connection closed" in told


def test_forms_are_flat_and_short() -> None:
    good = {"properties": {"a": {"type": "string", "enum": ["x"]}, "b": {"type": "boolean"}}}
    fields = read_fields(good)
    assert [list_choices(each) for each in fields] == [
        ("x", "skip", "decline"),
        ("yes", "no", "skip", "decline"),
    ]
    wrong: tuple[dict[str, Any], ...] = (
        {"properties": {"a": {"type": "object"}}},
        {"properties": {"a": 1}},
        {"properties": []},
        {"properties": {}, "required": None},
        {"properties": {"a": {"type": "string", "enum": 5}}},
        {"properties": {"a": {"type": "string", "enum": ["x" * 201]}}},
        {"properties": {"a": {"type": "string", "enum": ["\u202e"]}}},
        {"properties": {str(n): {"type": "string"} for n in range(9)}},
    )
    for bad in wrong:
        with pytest.raises(ToolError):
            read_fields(bad)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("string", " x ", "x"),
        ("integer", "3", 3),
        ("number", "2.5", 2.5),
        ("boolean", "Yes", True),
        ("boolean", "no", False),
        ("integer", "default", 5),
        ("integer", "Skip", None),
        ("string", "skip", None),
    ],
)
def test_what_a_person_writes_becomes_a_value(kind: str, text: str, value: object) -> None:
    assert parse_answer(FormField("a", kind, default=5), text) == value


def test_what_must_be_given_is_not_left_out() -> None:
    field = FormField("a", "integer", is_required=True)
    for said in ("skip", "default", ""):
        with pytest.raises(ValueError, match="invalid literal"):
            parse_answer(field, said)
    assert "skip" not in make_question("s", "m", field)
    optional = make_question("s", "m", FormField("a", "integer", default=5))
    assert "`default` for 5" in optional and "`skip`" in optional


def test_a_question_says_first_whose_it_is() -> None:
    shown = make_question("evil", "x" * 5_000 + "\u202e", FormField("a", "string"))
    assert shown.startswith("The MCP server evil asks:\n") and len(shown) <= 2_500
    assert "\na\n" in shown and "Your next message here goes to evil." in shown
    assert shown.endswith("Write `decline` to give no answer.")
    assert "\u202e" not in make_question("evil", "\u202e", None)
