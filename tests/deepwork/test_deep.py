"""Deep work in a whole Deskhand: planned, approved, pushed on, and resting where it cannot go
on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from deskhand.config.sections import DeepWorkConfig
from deskhand.deepwork.context import render_context, render_session_summary
from deskhand.deepwork.fold import LongRun, fold_run
from deskhand.deepwork.next_moves import Later, Nudge, StateNote, next_moves
from deskhand.deepwork.progress import STATES, load_long_work, make_long_work, render_long_work
from deskhand.models.base import Reply, Request
from deskhand.models.window import is_hint
from deskhand.testing.long_work import ANN, BOB, SESSION, House, log, nudges, until
from deskhand.testing.long_worker import Steadfast
from deskhand.testing.scripted import say
from deskhand.types import events as e
from deskhand.types.errors import ModelError, ModelRequestRefused
from deskhand.types.goals import DEEP_WORK_COMPACTED, LongWork, LongWorkState
from deskhand.types.identity import Address, Principal
from deskhand.types.messages import Message, Text, ToolCall, ToolResult, Usage
from deskhand.types.options import SessionOptions
from deskhand.types.tasks import Task, TaskStatus


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(
        f"{name}-{abs(hash(str(arguments)))}", name, msgspec.Raw(msgspec.json.encode(arguments))
    )


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
        rows = app.features.deep.graph(SESSION)
    assert house.done.read_text().splitlines() == [f"step {n}" for n in range(1, 17)]
    assert [task.status for task in rows.values()] == ["completed"] * 16 and max(rows) == 16
    pushed = nudges(events)
    assert len(pushed) == 2 and all(each.principal.on_behalf_of == "ann" for each in pushed)
    assert all(
        each.principal.roles == ("owner",) and each.principal.kind == "agent" for each in pushed
    )
    assert "All 16 steps are done." in house.said()


def _asked(events: list[e.AnyEvent]) -> bool:
    return any(isinstance(each, e.ApprovalAsked) for each in events)


class Scripted:
    """Says these one after the other, and `idle` from then on."""

    def __init__(self, *replies: Message | Reply | ModelError, idle: str = "I am done.") -> None:
        self.replies, self.idle, self.asked = list(replies), idle, list[Request]()

    def __call__(self, request: Request) -> Message | Reply:
        if not request.tools:
            return say("{}")  # somebody asks aside, to gather facts
        self.asked.append(request)
        reply = self.replies.pop(0) if self.replies else say(self.idle)
        if isinstance(reply, ModelError):
            raise reply
        return reply


def create(*titles: str) -> Message:
    return say("", *(call("manage_tasks", action="create", title=title) for title in titles))


def change(id_: int, **fields: Any) -> Message:
    return say("", call("manage_tasks", action="update", task_id=id_, **fields))


async def begin(house: House, *, request: str = "do it") -> None:
    """Deep work without a plan first."""
    house.channel.write("/deep on", external_id="on")
    house.channel.write("/plan off", external_id="plan")
    await house.hears("I continue without a plan.")
    house.channel.write(request, external_id="request")


async def test_it_rests_after_two_nudges_without_progress_and_says_what_is_left(
    tmp_path: Path,
) -> None:
    script = Scripted(create("one", "two"))
    house = House(tmp_path, script)
    async with house.running() as app:
        await begin(house)
        told = await house.hears("I got no further by myself. 0 of 2 tasks done (0 %)")
        assert "[ ] #1 one" in told and "[ ] #2 two" in told
        assert len(nudges(await log(app))) == 2
        house.channel.write("well?", external_id="well")
        await until(
            app, lambda events: len(nudges(events)) == 4
        )  # who writes begins the count anew


async def test_progress_begins_the_count_anew(tmp_path: Path) -> None:
    idle = say("hm")
    script = Scripted(create("one"), idle, idle, change(1, result="half"), idle, idle, idle)
    house = House(tmp_path, script)
    async with house.running() as app:
        await begin(house)
        await house.hears("I got no further by myself")
        assert len(nudges(await log(app))) == 4


async def test_where_a_task_needs_the_person_they_are_asked_and_it_goes_on_with_the_answer(
    tmp_path: Path,
) -> None:
    blocked = change(1, status="blocked", result="which bank?")
    script = Scripted(
        create("pay"), blocked, say("I need you."), change(1, status="completed", result="paid")
    )
    house = House(tmp_path, script)
    async with house.running() as app:
        await begin(house)
        assert (
            await house.hears("cannot go on without you")
            == "I cannot go on without you:\n#1 pay: which bank?"
        )
        assert not nudges(await log(app))
        house.channel.write("the blue one", external_id="answer")
        await house.hears("1 of 1 tasks done (100 %)")


async def test_it_says_when_tokens_run_low_and_stops_when_they_are_used_up(tmp_path: Path) -> None:
    def costs(tokens: int, message: Message) -> Reply:
        return Reply(message, "calls" if message.calls else "stop", Usage(tokens, 0))

    script = Scripted(
        costs(400, create("one", "two")),
        costs(400, say("so far")),
        costs(300, change(1, result="x")),
    )
    house = House(tmp_path, script, tokens=1_000, compactions=0)
    house.model.latency_s = 0.2  # so that there is something to be stopped
    async with house.running() as app:
        await begin(house)
        await house.hears("80% of the tokens for this work are used. 0 of 2 tasks done (0 %).")
        told = await house.hears(
            "The 1,000 tokens of this deep work are used up. 0 of 2 tasks done (0 %). Left:"
        )
        assert "/deep on" in told
        events = await log(app)
        assert [each.reason for each in events if isinstance(each, e.TurnEnded)] == [
            "done",
            "stopped",
        ]
        assert (
            "do what matters most first" in nudges(events)[0].message.text
            and len(script.asked) == 3
        )
        house.channel.write("and?", external_id="and")  # they can still talk
        await house.hears("I am done.")
        assert len(nudges(await log(app))) == 1
        house.channel.write("/deep on", external_id="again")
        await until(app, lambda events: len(nudges(events)) > 1)


def costs(tokens: int, message: Message) -> Reply:
    return Reply(message, "calls" if message.calls else "stop", Usage(tokens, 0))


async def test_at_three_quarters_it_is_summed_up_and_the_tokens_count_anew(tmp_path: Path) -> None:
    """In the middle of a turn, and between two of them."""
    script = Scripted(
        costs(100, create("one", "two", "three")),
        costs(700, change(1, status="completed")),
        costs(100, change(2, status="in_progress")),
        costs(650, say("so far")),
        costs(100, change(2, status="completed")),
        costs(100, change(3, status="completed")),
        say("All done."),
    )
    house = House(tmp_path, script, tokens=1_000)
    house.model.latency_s = 0.1
    async with house.running() as app:
        await begin(house)
        await house.hears("80% of the tokens for this work are used. I summarise what was said")
        await house.hears("count them from there (time 2 of 5)")
        await house.hears("3 of 3 tasks done (100 %)")
        events = await log(app)
        work = await app.features.deep.get_long_work(SESSION)
    assert sum(isinstance(each, e.Compacted) for each in events) == 2
    assert not any(isinstance(each, e.TurnEnded) and each.reason == "stopped" for each in events)
    assert (
        work is not None and (work.compactions, work.max_compactions) == (2, 5) and work.used < 750
    )
    assert (
        "It was summarised 2 of 5 times; the tokens are counted from the last summary."
        in render_long_work(work)
    )
    told = script.asked[-1].messages
    assert "[x] #1 one" in "".join(shown.message.text for shown in told), "the tasks outlast it"


def spending(*parts: e.AnyEvent | int) -> LongRun:
    """Deep work that rests, and then this; a number is a turn of its own that uses so many
    tokens."""
    words = Message("user", (Text("go on"),))
    events: list[e.AnyEvent] = []
    for part in parts:
        if not isinstance(part, int):
            events.append(part)
            continue
        said = e.MessageReceived(9, ANN, Address("memory"), words, "y")
        replied = e.ModelReplied(Message("assistant", (Text("hm"),)), "p/m", "stop", Usage(part, 0))
        events += [said, replied, e.TurnEnded("done", ())]
    return resting(*events)


COUNTS_ANEW = e.CommandRun(
    9, Principal("deskhand", (), "system"), DEEP_WORK_COMPACTED, "", "summed up"
)


def test_it_is_summed_up_so_often_and_then_it_is_told_and_stopped() -> None:
    config = DeepWorkConfig(tokens=1_000, compactions=2)

    def moves(*parts: e.AnyEvent | int) -> list[str]:
        return [
            type(move).__name__ for move in next_moves(spending(*parts), GRAPH, config, 2_000.0)
        ]

    assert moves(700) == ["Nudge"]
    assert moves(800) == ["CompactContext", "Nudge"], "not a word of tokens that run low"
    assert moves(1_200) == ["CompactContext", "Nudge"], "whatever one call used"
    assert moves(800, COUNTS_ANEW) == ["Nudge"]
    assert moves(800, COUNTS_ANEW, 800) == ["CompactContext", "Nudge"]
    assert moves(800, COUNTS_ANEW, 800, COUNTS_ANEW, 700) == ["Nudge"]
    assert moves(800, COUNTS_ANEW, 800, COUNTS_ANEW, 800) == ["StateNote", "Nudge"]
    assert moves(800, COUNTS_ANEW, 800, COUNTS_ANEW, 1_000) == ["StateNote"]
    again = e.OptionsSet(1, ANN, SessionOptions(mode="deep_work"))
    assert moves(800, COUNTS_ANEW, 800, COUNTS_ANEW, 1_000, again, 800) == [
        "CompactContext",
        "Nudge",
    ]


def test_each_time_is_asked_for_once() -> None:
    def key(*parts: e.AnyEvent | int) -> str:
        return next_moves(spending(*parts), GRAPH, DeepWorkConfig(tokens=1_000), 2_000.0)[0].key  # type: ignore[union-attr]

    assert key(800) == key(800, 10), "a second look asks for the same"
    assert key(800) != key(800, COUNTS_ANEW, 800)


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


async def test_it_does_not_act_for_who_has_no_rights_any_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever asked for it is no user here: the users in the store are asked, and nobody of that
    name has roles."""
    resting = House(tmp_path, Scripted(create("one")), nudges=0)
    async with resting.running():
        await begin(resting)
        await resting.hears("I got no further")
    house = House(tmp_path, Scripted())
    async with house.running(known=False) as app:
        while "ann has no roles any more" not in caplog.text:
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
    assert told.endswith(
        "<tasks>\n[>] #1 one\n[ ] #2 two\n0 of 2 tasks done (0 %); now: one\n</tasks>"
    )
    recalled = [each for each in events if isinstance(each, e.Recalled)]
    assert recalled and all(
        each.facts == () and each.part.label.integrity == "tool_local" for each in recalled
    )


def done_up_to(last: int) -> dict[int, Task]:
    return {n: Task(n, f"task {n}", status="completed") for n in range(1, last + 1)}


def test_what_is_told_of_a_long_work_in_its_order() -> None:
    config = DeepWorkConfig(tokens=1_000, compactions=0)
    graph = {**done_up_to(2), 3: Task(3, "left")}
    told = render_context(graph, LongRun(SESSION, deep_n=1, used=800), config, left_out=True)
    assert told.splitlines()[:3] == [
        "<session_summary>",
        "Done so far: task 2; task 1",
        "</session_summary>",
    ]
    places = [
        told.index(f"<{name}>")
        for name in ("session_summary", "tasks", "budget_warning", "archived_context")
    ]
    assert (
        places == sorted(places)
        and "80% of the tokens for this work are used, 200 are left" in told
    )
    plain = render_context(
        {3: Task(3, "left")}, LongRun(SESSION, deep_n=1, used=700), config, left_out=False
    )
    assert plain == "<tasks>\n[ ] #3 left\n0 of 1 tasks done (0 %)\n</tasks>"
    assert render_context({}, LongRun(SESSION), config, left_out=True) == "", (
        "there is no work to tell of"
    )


def test_the_summary_of_a_session_names_twenty_titles() -> None:
    assert render_session_summary(done_up_to(20)).count("task ") == 20
    summary = render_session_summary(done_up_to(27))
    assert summary.startswith("Done so far: task 27; task 26; ") and summary.endswith(
        "task 8; and 7 before them"
    )
    assert render_session_summary({1: Task(1, "gone", status="deleted"), 2: Task(2, "open")}) == ""


async def test_within_a_long_turn_the_summary_is_told_again_each_ten_steps(tmp_path: Path) -> None:
    """At the end of what the model is shown: what it was shown before stays as it was."""
    titles = [f"t{n}" for n in range(1, 23)]
    script = Scripted(create(*titles), *(change(n, status="completed") for n in range(1, 23)))
    house = House(tmp_path, script)
    async with house.running() as app:
        await begin(house)
        await house.hears("22 of 22 tasks done (100 %)")
        events = await log(app)
    kinds = [type(each) for each in events if isinstance(each, e.Recalled | e.ModelReplied)]
    told = [i for i, kind in enumerate(kinds) if kind is e.Recalled]
    assert [sum(kind is e.ModelReplied for kind in kinds[:i]) for i in told][:2] == [9, 19]
    ninth, tenth, eleventh = (request.messages for request in script.asked[8:11])
    assert tenth[: len(ninth)] == ninth and eleventh[: len(tenth)] == tenth
    last = tenth[-1].message
    assert (
        last.role == "user" and "Done so far: t8; t7; t6;" in last.text and "[x] #8 t8" in last.text
    )
    assert "8 of 22 tasks done" in last.text and "Done so far" not in "".join(
        shown.message.text for shown in ninth
    )
    assert is_hint(last), "when room is made it is not taken for what the person wants"


async def test_what_is_left_out_is_named(tmp_path: Path) -> None:
    script = Scripted(create("one"), *(change(1, result=f"part {n}") for n in range(6)))
    house = House(tmp_path, script)
    async with house.running():
        await begin(house)
        await house.hears("I got no further")
        assert not any("<archived_context>" in text_of(request) for request in script.asked)
        house.channel.write("/compact", external_id="compact")
        await house.hears("I summarise earlier messages")
        house.channel.write("and now?", external_id="now")
        before = len(script.asked)
        await until_asked(script, before + 1)
    assert script.asked[-1].messages[-1].message.text.endswith("</archived_context>")


def text_of(request: Request) -> str:
    return "".join(shown.message.text for shown in request.messages)


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
    assert (
        results(script.asked[-1])[-1]
        == "[ ] #1 one\n[>] #2 two (waits for #1)\n0 of 2 tasks done (0 %); now: two"
    )


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
        told = await house.hears("Nothing is running.")
        assert "Tasks (50 %):\n[ ] #1 one\n[x] #2 two" in told
        assert (
            "Deep work: 50 % (1 of 2 tasks); it rests.\n60 of 1,500,000 tokens are used, "
            "1,499,940 are left."
        ) in told
        house.channel.write("/deep", external_id="deep")
        assert "[x] #2 two" in await house.hears("I continue by myself while tasks are open")


async def test_it_goes_on_for_who_began_it_whoever_else_speaks_there(tmp_path: Path) -> None:
    house = House(tmp_path, Scripted(create("one"), say("hm"), idle="hello Ann"), nudges=1)
    async with house.running() as app:
        for number, text in enumerate(("/deep on", "/plan off", "do it")):
            house.channel.write(text, external_id=f"bob-{number}", sender="bob")
        await house.hears("I got no further")
        house.channel.write("hello", external_id="ann", sender="ann")
        events = await until(app, lambda events: len(nudges(events)) == 2)
        assert [each.principal.on_behalf_of for each in nudges(events)] == ["bob", "bob"]
        assert {each.principal.roles for each in nudges(events)} == {("member",)}, (
            "not with the rights of an owner"
        )


async def test_a_turn_that_failed_is_tried_again_later_and_not_for_ever(tmp_path: Path) -> None:
    down = ModelRequestRefused("no")
    script = Scripted(
        create("one"),
        down,
        down,
        change(1, status="completed"),
        say("so."),
        create("two"),
        *[down] * 4,
    )
    house = House(tmp_path, script)
    async with house.running() as app:
        await begin(house)
        await house.hears("That turn failed. I try again in a minute")
        for times, seconds in ((1, 61), (2, 601)):
            await until(app, lambda events, times=times: _failed(events) == times)  # type: ignore[misc]
            await anyio.sleep(0.2)
            assert len(nudges(await log(app))) == times - 1
            house.clock.advance(seconds)
        await house.hears("1 of 1 tasks done (100 %)")
        house.channel.write("and another", external_id="another")
        for times in (3, 4, 5):
            await until(app, lambda events, times=times: _failed(events) == times)  # type: ignore[misc]
            await anyio.sleep(0.1)
            house.clock.advance(3_601)
        told = await house.hears("I rest here, since that turn did not end well.")
        assert "[ ] #2 two" in told
        house.clock.advance(100_000)
        await anyio.sleep(1.2)
        assert (
            _failed(await log(app)) == 6
            and sum("That turn failed" in text for text in house.said()) == 2
        )


def _failed(events: list[e.AnyEvent]) -> int:
    return sum(isinstance(each, e.TurnEnded) and each.reason == "failed" for each in events)


CONFIG = DeepWorkConfig()
GRAPH = {1: Task(1, "one")}


def resting(*more: e.AnyEvent) -> LongRun:
    """Deep work of Ann's that rests after its first turn, and then this."""
    said = e.MessageReceived(2, ANN, Address("memory"), Message("user", (Text("do it"),)), "x")
    began = e.OptionsSet(1, ANN, SessionOptions(mode="deep_work"))
    events = [began, said, e.TurnEnded("done", (2,)), *more]
    return fold_run(
        LongRun(SESSION),
        [e.Recorded(n, SESSION, n, 1_000.0 + n, each) for n, each in enumerate(events, 1)],
    )


def pushed(times: int) -> list[e.AnyEvent]:
    by = Principal("deep-work", (), "agent", "ann")
    words = Message("user", (Text("go on"),))
    said = [
        e.MessageReceived(9, by, Address("memory"), words, f"deep:x:{n}:{n}") for n in range(times)
    ]
    return [each for one in said for each in (one, e.TurnEnded("done", ()))]


def test_who_goes_back_is_asked_first() -> None:
    run = resting()
    (nudge,) = next_moves(run, GRAPH, CONFIG, 2_000.0)
    assert isinstance(nudge, Nudge)
    assert next_moves(resting(e.Undone(3, ANN, 1)), GRAPH, CONFIG, 2_000.0) == ()
    said = e.MessageReceived(4, BOB, Address("memory"), Message("user", (Text("now"),)), "y")
    again = resting(e.Undone(3, ANN, 1), said, e.TurnEnded("done", (4,)))
    assert isinstance(next_moves(again, GRAPH, CONFIG, 2_000.0)[0], Nudge)


def test_it_does_not_go_on_by_itself_for_ever_however_much_it_changes() -> None:
    config = DeepWorkConfig(rounds=5)
    assert isinstance(next_moves(resting(*pushed(4)), GRAPH, config, 2_000.0)[0], Nudge)
    (note,) = next_moves(resting(*pushed(5)), GRAPH, config, 2_000.0)
    assert isinstance(note, StateNote) and note.text.startswith(
        "I went on 5 times by myself, and stop to ask. 0 of 1 tasks"
    )


@pytest.mark.parametrize("command", ["stop", "start"])
def test_what_goes_on_by_itself_ends_with_its_conversation(command: str) -> None:
    said = e.MessageReceived(4, ANN, Address("memory"), Message("user", (Text("now"),)), "y")
    goal = e.CommandRun(2, ANN, "goal", "two pages")
    closed: list[e.AnyEvent] = [
        goal,
        e.CommandRun(3, ANN, command),
        said,
        e.TurnEnded("done", (4,)),
    ]
    run = resting(*closed)
    assert not run.goal and next_moves(run, GRAPH, CONFIG, 2_000.0) == ()
    looks = e.ModelReplied(
        say("", call("manage_tasks", action="list")), "scripted/x", "calls", Usage()
    )
    taken_up = resting(*closed, said, looks, e.TurnEnded("done", (4,)))
    assert isinstance(next_moves(taken_up, GRAPH, CONFIG, 2_000.0)[0], Nudge), (
        "until they are taken up again"
    )
    stopped = resting(goal, said, e.CommandRun(3, ANN, command), e.TurnEnded("stopped", (4,)))
    assert stopped.goal and next_moves(stopped, GRAPH, CONFIG, 2_000.0) == ()


def test_a_clock_that_was_set_back_holds_up_nobody() -> None:
    failed = resting(
        e.MessageReceived(4, ANN, Address("memory"), Message("user", ()), "y"),
        e.TurnEnded("failed", (4,)),
    )
    assert next_moves(failed, GRAPH, CONFIG, 1_006.0)[1:] == (Later(1_065.0),)
    assert isinstance(next_moves(failed, GRAPH, CONFIG, 1_065.0)[0], Nudge)
    assert isinstance(next_moves(failed, GRAPH, CONFIG, 500.0)[0], Nudge)


async def test_closing_the_conversation_is_said(tmp_path: Path) -> None:
    house = House(tmp_path, Scripted(create("one")), nudges=0)
    async with house.running() as app:
        await begin(house)
        await house.hears("I got no further")
        house.channel.write("/stop", external_id="stop")
        assert (await house.hears("I closed this conversation")).endswith("Deep work is off.")
        house.channel.write("hello", external_id="hello")
        await until(app, lambda events: sum(isinstance(each, e.TurnEnded) for each in events) == 2)
        await anyio.sleep(0.2)
        assert len([text for text in house.said() if "I got no further" in text]) == 1


async def test_undo_takes_the_tasks_back_and_waits(tmp_path: Path) -> None:
    idle = say("hm")
    script = Scripted(
        create("one", "two"), idle, change(1, status="completed"), create("three"), idle, idle="so."
    )
    house = House(tmp_path, script, nudges=0)
    async with house.running() as app:
        await begin(house)
        await house.hears("0 of 2 tasks done")
        house.channel.write("go on", external_id="more")
        await house.hears("1 of 3 tasks done")
        house.channel.write("/undo", external_id="undo")
        assert "Put back: task #3, task #1." in await house.hears(
            "Undone: the conversation is as it was before “go on”"
        )
        assert [task.status for task in app.features.deep.graph(SESSION).values()] == [
            "pending",
            "pending",
            "deleted",
        ]
        said = len(house.said())
        await anyio.sleep(0.3)
        assert len(house.said()) == said, "a person who goes back wants to say something"
        house.channel.write("rather so", external_id="so")
        await until(app, lambda events: sum(isinstance(each, e.TurnEnded) for each in events) == 3)
        assert (
            "[ ] #1 one\n[ ] #2 two\n0 of 2 tasks done"
            in script.asked[-1].messages[-1].message.text
        )


async def test_what_it_is_at_is_told_by_one_who_does_not_drive(tmp_path: Path) -> None:
    """From the log and the rows alone, as the command line and the page see it."""
    asks = say("", call("exit_plan_mode", plan="one, then two"))
    script = Scripted(create("one", "two"), asks, change(1, status="in_progress"), idle="so.")
    house = House(tmp_path, script, nudges=0)
    async with house.running() as app:

        async def stands(state: str) -> LongWork:
            while (
                work := await load_long_work(app.store, SESSION, CONFIG)
            ) is None or work.state != state:
                await anyio.sleep(0.01)
            return work

        house.channel.write("/deep do it", external_id="deep")
        work = await stands("asking")
        assert (work.deep, work.done, work.tasks, work.percent, work.doing, work.used) == (
            True,
            0,
            2,
            0,
            "",
            40,
        )
        house.channel.write("yes", external_id="yes")
        work = await stands("resting")
        assert (work.doing, work.used, work.tokens_left) == ("#1 one", 80, 1_499_920)
        assert (
            render_long_work(work)[1] == "Now: #1 one"
            and await app.features.deep.get_long_work(SESSION) == work
        )
        house.channel.write("/goal all of it is done", external_id="goal")
        while not (await stands("resting")).goal:
            await anyio.sleep(0.01)
        house.channel.write("/deep off", external_id="off")
        house.channel.write("/goal off", external_id="goal off")
        await house.hears("no longer has a goal")
        assert await load_long_work(app.store, SESSION, CONFIG) is None


@pytest.mark.parametrize(
    ("events", "status", "used", "state"),
    [
        ([], "pending", 0, "resting"),
        (
            [e.MessageReceived(4, ANN, Address("memory"), Message("user", ()), "y")],
            "pending",
            0,
            "working",
        ),
        ([e.Undone(3, ANN, 1)], "pending", 0, "stopped"),
        ([], "blocked", 0, "blocked"),
        ([], "completed", 0, "done"),
        ([], "pending", 1_500_000, "spent"),
    ],
)
def test_each_state_has_its_words(
    events: list[e.AnyEvent], status: TaskStatus, used: int, state: LongWorkState
) -> None:
    run = resting(*events)
    run.used = used
    work = make_long_work(run, {1: Task(1, "one", status=status)}, DeepWorkConfig(compactions=0))
    assert work.state == state and STATES[state] in render_long_work(work)[0]
