"""The drive: what people may do in the middle of a turn, and what the disk may do."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from deskhand.agent import run_tools
from deskhand.agent.context import show_messages
from deskhand.agent.end_turn import give_up
from deskhand.agent.fold import fold
from deskhand.agent.state import State
from deskhand.models.base import Item, Model, Request, TextDelta
from deskhand.policy.rules import Decision
from deskhand.testing.bench import ANN, BOB, PLACE, SESSION, Bench, said
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.testing.tools import ChangeTool, FileTool
from deskhand.tools.base import Context, Outcome, Spec, Tool, make_result
from deskhand.types.commit import Commit
from deskhand.types.door import Progress
from deskhand.types.effects import Replay
from deskhand.types.errors import StoreFull
from deskhand.types.events import (
    MessageDelivered,
    MessageReceived,
    ModelFailed,
    ModelReplied,
    TurnEnded,
)
from deskhand.types.identity import Command, Edit, Reaction, When
from deskhand.types.labels import LOCAL
from deskhand.types.limits import Limits
from deskhand.types.messages import Message, Text, ToolCall
from deskhand.types.turn import STOP_TURN_ONLY

MakeBench = Callable[[Model, Sequence[Tool]], Bench]


class SlowTool:
    """Runs until it is stopped; `running` is set meanwhile."""

    def __init__(self, seconds: float = 60.0, replay: Replay = "never") -> None:
        self.spec = Spec("slow", "", {"type": "object"}, "local_write", replay)
        self.running = anyio.Event()
        self._seconds = seconds

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        self.running.set()
        await anyio.sleep(self._seconds)
        return make_result("finished", LOCAL)


def last_words(request: Request) -> str:
    return next(
        shown.message.text for shown in reversed(request.messages) if shown.message.role == "user"
    )


def slow_then_echo(request: Request) -> Message:
    """Calls the slow tool first; then repeats what was said last."""
    if not any(shown.message.role == "tool" for shown in request.messages):
        return say("", ToolCall("c", "slow", msgspec.Raw(b"{}")))
    return say(f"heard {last_words(request)}")


async def driven(b: Bench, act: Callable[[], Any]) -> float:
    """Drive, and do `act` meanwhile. Returns the seconds from then to the end of the drive."""
    began = 0.0
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(b.drive)
            await act()
            began = time.monotonic()
    return time.monotonic() - began


async def test_stop_while_the_model_streams(bench: MakeBench) -> None:
    b = bench(ScriptedModel(lambda request: say("word " * 1000), piece=5, pause_s=0.01), [])
    await b.tell("go")

    async def stop() -> None:
        while len(b.shown) < 10:
            await anyio.sleep(0.01)
        await b.tell(Command("stop"))

    assert await driven(b, stop) < 5.0
    events = await b.events()
    reply = events[1]
    end = events[-1]
    assert (
        isinstance(reply, ModelReplied)
        and reply.finish == "interrupted"
        and reply.message.text.startswith("word")
    )
    assert isinstance(end, TurnEnded) and end.reason == "stopped" and await b.sent() == ["Stopped."]


async def test_stop_while_a_tool_runs(bench: MakeBench) -> None:
    slow = SlowTool()
    b = bench(ScriptedModel(slow_then_echo), [slow])
    await b.tell("go")

    async def stop() -> None:
        await slow.running.wait()
        await b.tell(Command("stop"))

    assert await driven(b, stop) < 5.0
    (result,) = await b.results()
    assert result.status == "interrupted" and "may or may not have happened" in result.text
    assert await b.sent() == ["Stopped."] and await b.store.open_sessions() == []


class Between:
    """A store that lets something happen just after its next commits were written, and before the
    driver knows."""

    def __init__(self, store: Any, act: Callable[[Commit], Any]) -> None:
        self._store = store
        self._act = act

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, commit: Commit) -> int:
        seq: int = await self._store.commit(commit)
        await self._act(commit)
        return seq


async def test_stop_that_comes_while_the_start_is_written(bench: MakeBench) -> None:
    """Nothing can be cancelled yet, and still the tool must not run for its minute."""
    slow = SlowTool()
    b = bench(ScriptedModel(slow_then_echo), [slow])

    async def act(commit: Commit) -> None:
        if any(event.__class__.__name__ == "ToolStarted" for event in commit.events):
            b.store = store
            await b.tell(Command("stop"))

    store, b.store = b.store, Between(b.store, act)
    b.start()
    await b.tell("go")
    with anyio.fail_after(10):
        await b.drive()
    assert await b.sent() == ["Stopped."]


async def test_message_that_comes_while_the_rest_is_written(bench: MakeBench) -> None:
    """The turn rests for a day in the very commit during which somebody writes: it must not sleep
    over it."""
    b = bench(ScriptedModel(slow_then_echo), [SlowTool()])

    async def act(commit: Commit) -> None:
        if commit.wake_at is not None:
            b.store = store
            await b.tell("never mind")

    store, b.store = b.store, Between(b.store, act)
    b.configure(lambda case: Decision("ask", "because"))
    await b.tell("go")
    assert await b.drive() is None
    assert (await b.sent())[-1] == "heard never mind"


@pytest.mark.parametrize(
    ("when", "who", "heard"),
    [
        ("steer", ANN, ["heard more"]),
        ("queue", ANN, ["heard go", "heard more"]),
        ("interrupt", ANN, ["heard more"]),
        ("steer", BOB, ["heard go", "heard more"]),
        ("interrupt", BOB, ["heard go", "heard more"]),
    ],
)
async def test_a_message_in_the_middle_of_a_turn(
    bench: MakeBench, when: When, who: Any, heard: list[str]
) -> None:
    slow = SlowTool(0.3)
    b = bench(ScriptedModel(slow_then_echo), [slow])
    await b.tell("go")

    async def more() -> None:
        await slow.running.wait()
        await b.accept(said("more", who), who, when)
        b.session.inbox.has_news = True
        if when == "interrupt" and who is ANN:
            b.session.interrupt_step()

    await driven(b, more)
    assert await b.sent() == heard
    ends = [event for event in await b.events() if isinstance(event, TurnEnded)]
    assert [end.answers for end in ends] == ([(1, 2)] if len(heard) == 1 else [(1,), (2,)])
    received = [
        event.principal.id for event in await b.events() if isinstance(event, MessageReceived)
    ]
    assert received == ["ann", who.id]
    (result,) = await b.results()
    assert result.status == ("interrupted" if when == "interrupt" and who is ANN else "ok")


async def test_a_message_that_interrupts_the_model(bench: MakeBench) -> None:
    """It is cut off in mid-sentence, and asked anew with what it had said and with what was said to
    it."""

    def script(request: Request) -> Message:
        return say(" ".join(shown.message.text for shown in request.messages))

    model = ScriptedModel(script, piece=3, pause_s=0.05)
    b = bench(model, [])
    await b.tell("a long question")

    async def more() -> None:
        while not any(isinstance(item, Progress) and item.kind == "text" for item in b.shown):
            await anyio.sleep(0.002)
        model.pause_s = 0.0
        await b.tell("no, this", ANN, "interrupt")

    await driven(b, more)
    events = await b.events()
    cut, whole = [event for event in events if isinstance(event, ModelReplied)]
    assert (cut.finish, whole.finish) == ("interrupted", "stop")
    partial = cut.message.text
    assert partial and "a long question".startswith(partial) and partial != "a long question"
    assert whole.message.text == f"a long question {partial} no, this"
    assert await b.sent() == [whole.message.text]
    assert sum(isinstance(event, TurnEnded) for event in events) == 1


class Broken:
    """A model from outside that does not keep its promises."""

    def __init__(self, *items: Item | Exception) -> None:
        self.items = items
        self.calls = 0

    async def reply(self, request: Request) -> AsyncIterator[Item]:
        self.calls += 1
        for item in self.items:
            if isinstance(item, Exception):
                raise item
            yield item


@pytest.mark.parametrize(
    ("items", "error"),
    [
        ((), "MalformedReply"),
        ((TextDelta("half"),), "MalformedReply"),
        ((TextDelta("a"), OSError("x")), "ModelError"),
    ],
)
async def test_a_model_that_ends_without_a_reply(bench: MakeBench, items: Any, error: str) -> None:
    model = Broken(*items)
    b = bench(model, [])
    with anyio.fail_after(30):
        await b.say("go")
    failed = [event for event in await b.events() if isinstance(event, ModelFailed)]
    assert [event.error for event in failed] == [error] and model.calls == 1
    assert (await b.sent())[0].startswith("Sorry, I could not answer: test/model")


class Full:
    """A store whose disk is full from commit number `at` on, for `times` commits."""

    def __init__(self, store: Any, at: int, times: int) -> None:
        self._store, self._full, self.commits = store, range(at, at + times), 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, commit: Commit) -> int:
        self.commits += 1
        if self.commits in self._full:
            raise StoreFull
        seq: int = await self._store.commit(commit)
        return seq


def three_tools(request: Request) -> Message:
    """Two rounds of a write that must not be repeated, a read and a row; then the answer."""
    rounds = sum(shown.message.role == "assistant" for shown in request.messages)
    raw = msgspec.Raw(b'{"text":"%d"}' % rounds)
    names = ("write", "look", "remember")
    return (
        say("done")
        if rounds == 2
        else say("on it", *(ToolCall(f"{n}{rounds}", n, raw) for n in names))
    )


async def live_with_a_full_disk(bench: MakeBench, folder: Path, at: int) -> tuple[int, int]:
    """One turn, in which commit number `at` and the next cannot be written. Returns failures and
    commits."""
    folder.mkdir()
    tools: list[Tool] = [
        FileTool("write", folder / "written"),
        FileTool("look", folder / "seen", replay="again"),
    ]
    b = bench(ScriptedModel(three_tools), [*tools, ChangeTool()])
    store = b.store
    full = Full(b.store, at, 2)
    b.store = full
    b.start()
    await b.accept(said("go"), store=store)
    failures = 0
    while failures < 9:
        try:
            assert await b.drive() is None
            break
        except StoreFull:
            failures += 1
    b.store = store
    state = fold(State(""), await store.events(SESSION))
    results = {result.call_id: result.status for result in await b.results()}
    written = [line.split()[1] for line in (folder / "written").read_text().splitlines()]
    assert state.turn is None and set(results) == {
        f"{n}{i}" for n in ("write", "look", "remember") for i in (0, 1)
    }
    assert len(written) == len(set(written)), "a write was repeated"
    for i in (0, 1):
        assert results[f"write{i}"] == "interrupted" or str(i) in written, (
            "a write was lost without a word"
        )
        assert results[f"look{i}"] == results[f"remember{i}"] == "ok"
    assert (await b.sent())[-1] == "done" and await store.open_sessions() == []
    return failures, full.commits


async def test_disk_full_in_the_middle_of_a_turn(bench: MakeBench, tmp_path: Path) -> None:
    """At each commit in turn: the same call of drive goes on when there is room again, and no write
    is repeated."""
    _, commits = await live_with_a_full_disk(bench, tmp_path / "0", 1000)
    assert commits >= 6
    for at in range(1, commits + 1):
        failures, _ = await live_with_a_full_disk(bench, tmp_path / str(at), at)
        assert failures == 2


async def test_a_quick_read_and_its_call_are_one_commit(
    bench: MakeBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_tools, "COMMIT_DELAY_S", 60.0)  # also where this machine is busy

    def script(request: Request) -> Message:
        looked = len(request.messages) > 1
        return (
            say("seen") if looked else say("", ToolCall("c", "look", msgspec.Raw(b'{"text":"x"}')))
        )

    b = bench(ScriptedModel(script), [FileTool("look", tmp_path / "seen", replay="again")])
    counted = Full(b.store, 1000, 0)
    b.store = counted
    b.start()
    await b.tell("go")
    assert await b.drive() is None
    assert counted.commits == 3, "the message; the call with its result; the answer"


async def test_a_slow_read_is_in_the_log_while_it_runs(bench: MakeBench) -> None:
    slow = SlowTool(replay="again")
    b = bench(
        ScriptedModel(lambda request: say("", ToolCall("c", "slow", msgspec.Raw(b"{}")))), [slow]
    )
    await b.tell("go")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(b.drive)
        with anyio.fail_after(5):
            while not any(isinstance(event, ModelReplied) for event in await b.events()):
                await anyio.sleep(0.01)
        assert not await b.results()
        tasks.cancel_scope.cancel()


async def test_a_stop_that_comes_too_late_closes_nothing(bench: MakeBench) -> None:
    """It was meant for what ran. Only who types /stop at rest means the conversation."""
    b = bench(ScriptedModel(lambda request: say(f"{len(request.messages)} in view")), [])
    await b.say("one")
    await b.say(Command("stop", STOP_TURN_ONLY))
    assert (await b.sent())[-1] == "There is nothing to stop."
    await b.say("two")
    assert (await b.sent())[-1] == "3 in view"
    await b.say(Command("stop"))
    await b.say(Command("stop", STOP_TURN_ONLY))
    await b.say("three")
    assert (await b.sent())[-1] == "1 in view"


async def test_given_up_with_open_calls_it_can_be_used_again(bench: MakeBench) -> None:
    """Each closed call has a key of its own: a wire that remembers encoded messages would else
    repeat one."""
    slow = SlowTool()
    calls = [ToolCall(f"c{i}", "slow", msgspec.Raw(b"{}")) for i in range(3)]

    def script(request: Request) -> Message:
        return say("fine") if len(request.messages) > 1 else say("", *calls)

    b = bench(ScriptedModel(script), [slow])

    async def die() -> None:
        await slow.running.wait()
        tasks.cancel_scope.cancel()

    await b.tell("go")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(b.drive)
        await die()
    await b.accept(said("hello?"))
    await give_up(b.start(), "it broke")
    assert (await b.sent())[-1] == "Sorry, I encountered an error and gave this up: it broke"
    state = fold(State(""), await b.store.events(SESSION))
    keys = [(shown.n, shown.variant) for shown in show_messages(state)]
    assert state.turn is None and not state.calls and len(set(keys)) == len(keys)
    assert await b.say("next") is None
    assert (await b.sent())[-1] == "fine"


async def test_deliveries_enter_the_log(bench: MakeBench) -> None:
    b = bench(ScriptedModel(lambda request: say("fine")), [])
    await b.say("go")
    (row,) = await b.store.outbox_due(1e12, 9)
    await b.store.outbox_sending(row.outgoing.key, "")
    await b.store.outbox_sent(row.outgoing.key, "p7")
    await b.say("again")
    assert [e for e in await b.events() if isinstance(e, MessageDelivered)] == [
        MessageDelivered(row.outgoing.key, "p7")
    ]
    assert await b.store.list_delivered(SESSION) == []


async def test_what_was_folded_is_what_was_written(bench: MakeBench) -> None:
    """Time goes on between the events of one commit; the warm state must not know more than the
    log."""
    b = bench(ScriptedModel(slow_then_echo), [SlowTool(0.0)])
    now = b.clock.now

    def ticking() -> float:
        b.clock.advance(61.0)
        return now()

    b.clock.now = ticking  # type: ignore[method-assign]  # a clock of this test, not our code
    for text in ("go", "on"):
        await b.say(text)
        cold = fold(State(SESSION), await b.store.history(SESSION))
        warm = b.session.state
        assert warm is not None and warm == cold
    shown = [(r.n, r.at) for r in b.shown if not hasattr(r, "kind")]
    assert shown == [(r.n, r.at) for r in await b.store.events(SESSION)]


async def test_the_prompt_only_grows_over_twenty_turns(bench: MakeBench) -> None:
    """What a provider has cached stays valid: every request begins with all of the one before, byte
    for byte."""
    model = ScriptedModel(slow_then_echo)
    b = bench(model, [SlowTool(0.0)])
    for turn in range(20):
        await b.say(f"turn {turn}")
        if turn % 7 == 3:
            b.start()  # a restart changes nothing either
    encoded = [
        (
            r.system,
            [(m.n, m.variant) for m in r.messages],
            [msgspec.json.encode(m) for m in r.messages],
        )
        for r in model.requests
    ]
    assert len(encoded) == 21
    for (system, keys, before), (system_after, keys_after, after) in pairwise(encoded):
        assert (
            system_after == system
            and keys_after[: len(keys)] == keys
            and after[: len(before)] == before
        )
        assert len(after) > len(before)


async def test_reactions_and_edits_are_told_with_the_next_message(bench: MakeBench) -> None:
    asked: list[str] = []

    def script(request: Request) -> Message:
        asked.append(last_words(request))
        return say(f"answer {len(asked)}")

    b = bench(ScriptedModel(script), [])
    await b.say("one")
    (row,) = await b.store.outbox_due(1e12, 9)
    await b.store.outbox_sending(row.outgoing.key, "")
    await b.store.outbox_sent(row.outgoing.key, "p7")
    await b.say(Reaction("p7", "👍", True))
    await b.say(Edit("1", said("one, please").message))
    assert asked == ["one"], "nobody is answered for that"
    for restarted in (False, True):
        if restarted:
            b.start()
        await b.say("two")
    told = "[ann reacted 👍 to your answer “answer 1”]\n[edited an earlier message: one, please]\n"
    assert asked == ["one", f"{told}two", "two"]
    cold = fold(State(SESSION), await b.store.history(SESSION))
    assert [
        shown.message.text for shown in show_messages(cold) if shown.message.role == "user"
    ] == [
        "one",
        f"{told}two",
        "two",
    ]


async def test_who_takes_what_it_has_room_for_is_given_all(bench: MakeBench) -> None:
    """The embedded model has room for less than our tools take, and makes its own requests of
    ours."""

    class Own(ScriptedModel):
        selective = True

    limits = Limits(window=100)
    for model, said_last in (
        (Own(lambda request: say("fine")), "fine"),
        (ScriptedModel(), "choose a model with a larger"),
    ):
        talk = bench(model, [ChangeTool()])
        talk.configure(limits=limits)
        await talk.say("hello " * 100)
        assert said_last in (await talk.sent())[-1]


async def test_a_tool_that_is_gone_after_a_crash_may_have_run(bench: MakeBench) -> None:
    """The model must not believe that nothing happened because the tool is no longer there."""
    slow = SlowTool()
    b = bench(ScriptedModel(slow_then_echo), [slow])
    await b.tell("go")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(b.drive)
        await slow.running.wait()
        tasks.cancel_scope.cancel()
    b.agent = msgspec.structs.replace(b.agent, tools={})
    b.start()
    assert await b.drive() is None
    (result,) = await b.results()
    assert result.status == "interrupted" and "may or may not have happened" in result.text


async def test_messages_behind_the_same_event_have_keys_of_their_own(bench: MakeBench) -> None:
    """Also where the first is on disk already: a key that is there is no message to send."""
    b = bench(ScriptedModel(), [])
    await b.session.load()
    for text in ("one", "two"):
        b.session.journal.enqueue_message(PLACE, (Text(text),))
        await b.session.journal.commit()
    assert await b.sent() == ["one", "two"]
