"""Deep work in a whole Deskhand: planned, approved, pushed on, and resting where it cannot go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from deskhand.models.base import Reply, Request
from deskhand.testing.long_work import SESSION, House, log, nudges, until
from deskhand.testing.scripted import say
from deskhand.testing.steadfast import Steadfast
from deskhand.types import events as e
from deskhand.types.messages import Message, ToolCall, ToolResult, Usage


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(f"{name}-{abs(hash(str(arguments)))}", name, msgspec.Raw(msgspec.json.encode(arguments)))


def results(request: Request) -> list[str]:
    parts = (part for shown in request.messages for part in shown.message.parts)
    return [part.text for part in parts if isinstance(part, ToolResult)]


async def test_it_plans_first_and_then_works_until_all_is_done(tmp_path: Path) -> None:
    house = House(tmp_path, Steadfast(16))
    async with house.running() as app:
        house.channel.write("/deep do all sixteen steps")
        (ask,) = [each for each in await until(app, _asked) if isinstance(each, e.ApprovalAsked)]
        assert ask.question.startswith("exit_plan_mode") and not house.done.exists()
        house.channel.write("yes", external_id="yes")
        await house.hears("16 of 16 tasks done (100 %)")
        events = await log(app)
        rows = app.works.deep.graph(SESSION)
    assert house.done.read_text().splitlines() == [f"step {n}" for n in range(1, 17)]
    assert [task.status for task in rows.values()] == ["completed"] * 16 and max(rows) == 16
    pushed = nudges(events)
    assert len(pushed) == 2 and all(each.principal.on_behalf_of == "ann" for each in pushed)
    assert all(each.principal.roles == ("owner",) and each.principal.kind == "agent" for each in pushed)
    assert "All 16 steps are done." in house.said()


def _asked(events: list[e.AnyEvent]) -> bool:
    return any(isinstance(each, e.ApprovalAsked) for each in events)


class Scripted:
    """Says these one after the other, and `idle` from then on."""

    def __init__(self, *replies: Message | Reply, idle: str = "I am done.") -> None:
        self.replies, self.idle, self.asked = list(replies), idle, list[Request]()

    def __call__(self, request: Request) -> Message | Reply:
        self.asked.append(request)
        return self.replies.pop(0) if self.replies else say(self.idle)


def create(*titles: str) -> Message:
    return say("", *(call("manage_tasks", action="create", title=title) for title in titles))


def change(id_: int, **fields: Any) -> Message:
    return say("", call("manage_tasks", action="update", task_id=id_, **fields))


async def begin(house: House, *, request: str = "do it") -> None:
    """Deep work without a plan first."""
    house.channel.write("/deep on", external_id="on")
    house.channel.write("/plan off", external_id="plan")
    await house.hears("I go on without a plan.")
    house.channel.write(request, external_id="request")


async def test_it_rests_after_two_nudges_without_progress_and_says_what_is_left(tmp_path: Path) -> None:
    script = Scripted(create("one", "two"))
    house = House(tmp_path, script)
    async with house.running() as app:
        await begin(house)
        told = await house.hears("I got no further by myself. 0 of 2 tasks done (0 %)")
        assert "[ ] #1 one" in told and "[ ] #2 two" in told
        assert len(nudges(await log(app))) == 2
        house.channel.write("well?", external_id="well")
        await until(app, lambda events: len(nudges(events)) == 4)  # who writes begins the count anew


async def test_progress_begins_the_count_anew(tmp_path: Path) -> None:
    idle = say("hm")
    script = Scripted(create("one"), idle, idle, change(1, result="half"), idle, idle, idle)
    house = House(tmp_path, script)
    async with house.running() as app:
        await begin(house)
        await house.hears("I got no further by myself")
        assert len(nudges(await log(app))) == 4


async def test_where_a_task_needs_the_person_they_are_asked_and_it_goes_on_with_the_answer(tmp_path: Path) -> None:
    blocked = change(1, status="blocked", result="which bank?")
    script = Scripted(create("pay"), blocked, say("I need you."), change(1, status="completed", result="paid"))
    house = House(tmp_path, script)
    async with house.running() as app:
        await begin(house)
        assert await house.hears("cannot go on without you") == "I cannot go on without you:\n#1 pay: which bank?"
        assert not nudges(await log(app))
        house.channel.write("the blue one", external_id="answer")
        await house.hears("1 of 1 tasks done (100 %)")


async def test_it_says_when_tokens_run_low_and_stops_when_they_are_used_up(tmp_path: Path) -> None:
    def costs(tokens: int, message: Message) -> Reply:
        return Reply(message, "calls" if message.calls else "stop", Usage(tokens, 0))

    script = Scripted(costs(400, create("one", "two")), costs(400, say("so far")), costs(300, change(1, result="x")))
    house = House(tmp_path, script, tokens=1_000)
    house.model.latency_s = 0.2  # so that there is something to be stopped
    async with house.running() as app:
        await begin(house)
        await house.hears("80% of the tokens for this work are used. 0 of 2 tasks done (0 %).")
        told = await house.hears("The 1,000 tokens of this deep work are used up. 0 of 2 tasks done (0 %). Left:")
        assert "/deep on" in told
        events = await log(app)
        assert [each.reason for each in events if isinstance(each, e.TurnEnded)] == ["done", "stopped"]
        assert "do what matters most first" in nudges(events)[0].message.text and len(script.asked) == 3
        house.channel.write("and?", external_id="and")  # they can still talk
        await house.hears("I am done.")
        assert len(nudges(await log(app))) == 1
        house.channel.write("/deep on", external_id="again")
        await until(app, lambda events: len(nudges(events)) > 1)


async def test_a_new_process_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    resting = House(tmp_path, Scripted(create("one")), nudges=0)
    async with resting.running():
        await begin(resting)
        await resting.hears("I got no further by myself")
    house = House(tmp_path, Scripted(change(1, status="completed")))
    async with house.running() as app:
        await house.hears("1 of 1 tasks done (100 %)")
        assert len(nudges(await log(app))) == 1
    async with House(tmp_path, Scripted()).running() as app:
        await anyio.sleep(0.3)
        assert len(nudges(await log(app))) == 1, "what is done stays done"


async def test_who_stops_it_is_heard(tmp_path: Path) -> None:
    house = House(tmp_path, Scripted(create("one")), nudges=0)
    async with house.running():
        await begin(house)
        await house.hears("I got no further")
        house.channel.write("/stop", external_id="stop")
        await house.hears("closed")
    async with House(tmp_path, Scripted()).running() as app:
        await anyio.sleep(0.3)
        assert not nudges(await log(app))


async def test_it_does_not_act_for_who_has_no_rights_any_more(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever asked for it is no user here: the users in the store are asked, and nobody of that name has roles."""
    resting = House(tmp_path, Scripted(create("one")), nudges=0)
    async with resting.running():
        await begin(resting)
        await resting.hears("I got no further")
    house = House(tmp_path, Scripted())
    async with house.running(known=False) as app:
        while "ann has no rights any more" not in caplog.text:
            await anyio.sleep(0.01)
        assert not nudges(await log(app))


async def test_the_list_stands_in_the_newest_message_and_not_in_the_prompt(tmp_path: Path) -> None:
    script = Scripted(create("one", "two"), change(1, status="in_progress"), say("hm"))
    house = House(tmp_path, script)
    async with house.running() as app:
        await begin(house)
        await house.hears("I got no further")
        events = await log(app)
    last = script.asked[-1]
    assert len({request.system for request in script.asked[:3]}) == 1
    assert "# Deep work" in last.system[-1] and "#1 one" not in "".join(last.system)
    told = last.messages[-1].message.text
    assert told.endswith("<tasks>\n[>] #1 one\n[ ] #2 two\n0 of 2 tasks done (0 %); now: one\n</tasks>")
    recalled = [each for each in events if isinstance(each, e.Recalled)]
    assert recalled and all(each.facts == () and each.part.label.integrity == "tool_local" for each in recalled)


async def test_two_calls_of_one_reply_see_each_other(tmp_path: Path) -> None:
    made = say(
        "",
        call("task_create", subject="one", activeForm="doing one"),
        call("task_create", subject="two"),
        call("task_update", taskId="2", addBlockedBy=["#1"], status="in_progress"),
        call("task_list"),
    )
    script = Scripted(made)
    house = House(tmp_path, script)
    async with house.running():
        house.channel.write("go")
        await house.hears("I am done.")
    assert results(script.asked[-1])[-1] == "[ ] #1 one\n[>] #2 two (waits for #1)\n0 of 2 tasks done (0 %); now: two"


async def test_deep_work_offers_manage_tasks_from_its_first_request_on(tmp_path: Path) -> None:
    script = Scripted(say("hello"), create("one"))
    house = House(tmp_path, script)
    async with house.running():
        house.channel.write("hello", external_id="hello")
        await house.hears("hello")
        house.channel.write("and now", external_id="now")
        await house.hears("I am done.")
        assert "#1 one" in results(script.asked[-1])[0], "elsewhere it runs where it is called"
        await begin(house)
        await until_asked(script, 4)
    offered = [{tool.name for tool in request.tools} for request in script.asked]
    assert ["manage_tasks" in names for names in offered[:4]] == [False, False, False, True]


async def until_asked(script: Scripted, times: int) -> None:
    while len(script.asked) < times:
        await anyio.sleep(0.01)


async def test_how_far_it_is_can_be_asked(tmp_path: Path) -> None:
    house = House(tmp_path, Scripted(create("one", "two"), change(2, status="completed")), nudges=0)
    async with house.running():
        await begin(house)
        await house.hears("I got no further")
        house.channel.write("/status", external_id="status")
        told = await house.hears("Nothing is going on.")
        assert "Tasks (50 %):\n[ ] #1 one\n[x] #2 two" in told and "of 1,500,000 tokens" in told
        house.channel.write("/deep", external_id="deep")
        assert "[x] #2 two" in await house.hears("I go on by myself while tasks are open")
