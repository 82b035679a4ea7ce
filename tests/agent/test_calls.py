"""Tools that misbehave, and what a person's yes covers: driven with a scripted model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import anyio
import msgspec
import pytest

from deskhand.agent.loop import drive
from deskhand.agent.protocols import NoApprovers
from deskhand.models.base import Model, Request
from deskhand.policy.approval import ASK_WAIT_S
from deskhand.policy.rules import Case, Decision
from deskhand.store.base import Store
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.bench import ANN, BOB, SESSION, Bench, said
from deskhand.testing.clock import SetClock
from deskhand.testing.crash import Crash
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.testing.tools import ChangeTool, FileTool
from deskhand.tools.base import (
    CallPreview,
    Context,
    Delegated,
    Done,
    Outcome,
    PersonQuestion,
    Spec,
    Tool,
    make_result,
)
from deskhand.tools.define import tool
from deskhand.types.commit import Commit
from deskhand.types.effects import Replay
from deskhand.types.errors import ToolError
from deskhand.types.events import (
    ApprovalAsked,
    CallClosed,
    CommandRun,
    QuestionAnswered,
    QuestionAsked,
    ToolFinished,
    TurnEnded,
)
from deskhand.types.identity import Answer, Command, Principal
from deskhand.types.labels import LOCAL, Label
from deskhand.types.messages import Message, Text, ToolCall, ToolResult
from deskhand.types.options import SessionOptions

MakeBench = Callable[[Model, Sequence[Tool]], Bench]


def call(name: str, arguments: bytes = b"{}", call_id: str = "") -> ToolCall:
    return ToolCall(call_id or name, name, msgspec.Raw(arguments))


def once(*calls: ToolCall) -> ScriptedModel:
    """Makes these calls, then says `fine`."""

    def script(request: Request) -> Message:
        results = any(shown.message.role == "tool" for shown in request.messages)
        return say("fine") if results else say("", *calls)

    return ScriptedModel(script)


class Odd:
    """A tool that does what it is told, wrong as it may be."""

    def __init__(
        self, act: Callable[[], Any], *, replay: Replay = "again", timeout_s: float = 5.0
    ) -> None:
        self.spec = Spec("odd", "", {"type": "object"}, "none", replay, timeout_s=timeout_s)
        self.act = act
        self.ran = 0

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        self.ran += 1
        outcome = self.act()
        if outcome == "hang":
            await anyio.sleep(60)
        return outcome  # type: ignore[no-any-return]  # whatever it is: a plugin is not type-checked


def raising(error: Exception) -> Callable[[], Any]:
    def act() -> Any:
        raise error

    return act


ODD = [
    (raising(ToolError("no such file")), "error", "no such file"),
    (
        raising(ValueError("half \ud800 of a pair\0")),
        "error",
        "odd broke: ValueError: half ? of a pair\ufffd",
    ),
    (raising(ExceptionGroup("two", [OSError(5, "gone")])), "error", "odd broke: ExceptionGroup"),
    (lambda: "hang", "error", "odd took longer than 1 s and was stopped"),
    (lambda: "a plain string", "error", "odd broke: TypeError: it returned 'a plain string'"),
    (lambda: None, "error", "odd broke: TypeError: it returned None"),
    (lambda: make_result("text \ud800\0", LOCAL), "ok", "text ?\ufffd"),
    (lambda: make_result("", LOCAL), "ok", "[no output]"),
    (lambda: Done((), "error"), "error", ""),
]


@pytest.mark.parametrize(("act", "status", "text"), ODD)
async def test_whatever_a_tool_does_is_a_result(
    bench: MakeBench, act: Any, status: str, text: str
) -> None:
    hangs = "took longer" in text
    odd = Odd(act, timeout_s=1.0 if hangs else 60.0)
    b = bench(once(call("odd")), [odd])
    await b.say("go")
    (result,) = await b.results()
    assert (result.status, result.text[: len(text)], odd.ran) == (status, text, 1)
    assert await b.sent() == ["fine"]


@tool(reads=LOCAL)
async def add(a: int, b: int = 1) -> str:
    """Adds."""
    return str(a + b)


ARGUMENTS = [
    (b'{"a": 1, "b": "2"}', "ok", "3"),
    (
        b'{"b": 2}',
        "error",
        "invalid arguments: Object missing required field `a`. Expected an object with: a, b?",
    ),
    (b'{"a": [1]}', "error", "invalid arguments"),
    (b'{"a": 1, "c": 2}', "error", "invalid arguments"),
    (b'{"a": 1', "error", "invalid arguments"),
    (b"", "error", "invalid arguments"),
    (b'{"a": "\xff"}', "error", "invalid arguments"),
    (b'{"a": "\\ud800"}', "error", "invalid arguments"),
    (b"[" * 100_000, "error", "invalid arguments"),
    (b"[" * 950 + b"]" * 950, "error", "invalid arguments"),
]


@pytest.mark.parametrize(("arguments", "status", "text"), ARGUMENTS, ids=range(len(ARGUMENTS)))
async def test_arguments_are_checked_and_the_log_stays_readable(
    bench: MakeBench, arguments: bytes, status: str, text: str
) -> None:
    b = bench(once(call("add", arguments)), [add])
    await b.say("go")
    b.start()  # it reads its own log again
    assert await b.say("and again") is None
    result = (await b.results())[0]
    assert (result.status, result.text[: len(text)]) == (status, text)
    assert await b.sent() == ["fine", "fine"]


async def test_unknown_tools_are_answered_with_the_nearest(bench: MakeBench) -> None:
    b = bench(once(call("ad"), call("zzz"), call("", call_id="x")), [add])
    await b.say("go")
    near, far, empty = await b.results()
    assert near.text == "there is no tool 'ad'; did you mean 'add'?"
    assert far.text == "there is no tool 'zzz'; there are: add" and empty.status == "error"


async def test_two_hundred_calls_with_one_id_each_get_their_result(bench: MakeBench) -> None:
    b = bench(once(*(call("add", b'{"a": %d}' % i, "same") for i in range(200))), [add])
    await b.say("go")
    results = await b.results()
    assert [result.text for result in results] == [str(i + 1) for i in range(200)]
    assert len({result.call_id for result in results}) == 200
    assert await b.sent() == ["fine"]


def asking(case: Case) -> Decision:
    return Decision("ask", "because")


async def test_approved_from_another_handle_it_runs_once(bench: MakeBench, tmp_path: Path) -> None:
    path = tmp_path / "written"
    b = bench(once(call("write", b'{"text": "x"}')), [FileTool("write", path)])
    b.configure(asking)
    assert await b.say("go") == b.clock.now() + 24 * 3600
    (asked,) = await b.sent()
    assert (
        asked.startswith('write {"text": "x"} (once / always / no / never)\nAsked because ')
        and not path.exists()
    )
    assert "For ann on chat. It changes files in the workspace" in asked
    other = SqliteStore(b.path)
    await b.accept(Answer("ask_1", "once"), store=other)
    await other.close()
    b.start()
    assert await b.drive() is None
    assert len(path.read_text().splitlines()) == 1
    for _ in range(2):  # the same button again
        await b.answer("once")
    assert len(path.read_text().splitlines()) == 1
    late = [event.reply for event in await b.events() if isinstance(event, CommandRun)]
    assert late == ["That question is no longer open."] * 2


@pytest.mark.parametrize(
    ("choice", "status"),
    [
        ("no", "denied"),
        ("never", "denied"),
        ("whatever", "denied"),
        ("once", "ok"),
        ("always", "ok"),
    ],
)
async def test_choices(bench: MakeBench, choice: str, status: str) -> None:
    b = bench(once(call("add", b'{"a": 1}')), [add])
    b.configure(asking)
    await b.say("go")
    await b.answer(choice)
    assert [result.status for result in await b.results()] == [status]
    assert (await b.sent())[-1] == "fine"


class Shell(Odd):
    """Has the name of a tool that has other names, and shows what it is about."""

    def __init__(self) -> None:
        super().__init__(lambda: make_result("did", LOCAL))
        self.spec = Spec("shell", "", {"type": "object"}, "none")

    def preview(
        self, arguments: msgspec.Raw, session: str, options: SessionOptions, label: Label
    ) -> CallPreview:
        return CallPreview("host", "about this window")


@pytest.mark.parametrize("name", ["shell", "bash"])
async def test_always_holds_for_a_call_by_another_name(bench: MakeBench, name: str) -> None:
    def script(request: Request) -> Message:
        last = request.messages[-1]
        return say("fine") if last.message.role == "tool" else say("", call(name))

    b = bench(ScriptedModel(script), [Shell()])
    b.configure(asking)
    await b.say("go")
    assert "about this window" in (await b.sent())[-1]
    assert await b.answer("always") is None
    assert await b.say("go") is None
    assert [result.status for result in await b.results()] == ["ok", "ok"]


async def test_only_who_was_asked_or_an_owner_may_answer(bench: MakeBench) -> None:
    b = bench(once(call("add", b'{"a": 1}')), [add])
    b.configure(asking)
    await b.say("go", BOB)
    eve = BOB.__class__("eve")
    await b.answer("once", eve)
    await b.say("yes", eve)
    assert await b.results() == []
    await b.answer("once", ANN)
    assert [result.status for result in await b.results()] == ["ok"]


async def test_a_yes_is_void_after_ten_minutes_and_for_anything_else(
    bench: MakeBench, tmp_path: Path
) -> None:
    def denied(case: Case) -> Decision:
        return Decision("deny", "a new rule")

    changes: dict[str, Callable[[Bench], None]] = {
        "": lambda b: b.clock.advance(599),
        "the approval has expired": lambda b: b.clock.advance(601),
        "the call has changed since it was approved": lambda b: b.configure(
            asking, workspace=tmp_path / "elsewhere"
        ),
        "a new rule": lambda b: b.configure(denied),
    }
    for words, change in changes.items():
        odd = Odd(lambda: make_result("ran", LOCAL))
        b = bench(once(call("odd")), [odd])
        b.configure(asking)
        await b.say("go")
        row = await b.accept(Answer("ask_1", "once"))
        store = b.store
        b.store = Dying(b.store, after=row.inbox_id)
        with pytest.raises(Died):
            await drive(b.start())
        b.store = store
        change(b)
        await drive(b.start())
        (result,) = await b.results()
        assert (words in result.text, odd.ran) == (True, int(not words)), words


class Died(BaseException):
    """The process ended here."""


class Dying:
    """A store whose process dies once this inbox row was taken in."""

    def __init__(self, store: Any, after: int) -> None:
        self._store = store
        self._after = after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, commit: Any) -> int:
        await self._store.commit(commit)
        if self._after in commit.admitted:
            raise Died
        return 0


async def test_an_unanswered_question_expires(bench: MakeBench) -> None:
    for decide in (asking, None):
        b = bench(
            once(call("odd")),
            [Odd(lambda: PersonQuestion("which?", ("a", "b"), 60.0), replay="never")],
        )
        if decide:
            b.configure(decide)
        until = await b.say("go")
        assert until is not None and until > b.clock.now()
        b.clock.advance(until - b.clock.now() - 1)
        assert await drive(b.start()) == until
        b.clock.advance(1)
        assert await drive(b.start()) is None
        (result,) = await b.results()
        assert result.status == "expired" and "nobody answered in time" in result.text


class Jumping(SetClock):
    """Somebody sets the time of day just before it is looked at for the `nth` time."""

    def __init__(self, nth: int, by_s: float) -> None:
        super().__init__()
        self.looks = 0
        self._nth = nth
        self._by_s = by_s

    def now(self) -> float:
        self.looks += 1
        if self.looks == self._nth:
            self.at += self._by_s
        return super().now()


def waiting(kind: str, bench: MakeBench) -> Bench:
    """One whose turn will rest for a minute."""
    if kind == "approval":
        b = bench(once(call("odd")), [Odd(lambda: make_result("did", LOCAL))])
        b.configure(asking)
    else:
        outcome: Outcome = PersonQuestion("which?", ("a", "b"), 60.0)
        if kind == "sub-agent":
            outcome = Delegated("task", wait_s=60.0)
        b = bench(once(call("odd")), [Odd(lambda: outcome, replay="never")])
    return b


@pytest.mark.parametrize("by_s", [-2 * 86_400.0, -20.0])
@pytest.mark.parametrize(
    ("kind", "wait_s"), [("question", 60.0), ("approval", ASK_WAIT_S), ("sub-agent", 60.0)]
)
async def test_a_clock_that_is_set_back_at_any_moment_makes_no_rest_longer(
    kind: str, wait_s: float, by_s: float, bench: MakeBench
) -> None:
    nth = 0
    looks = 1
    while nth < looks:
        nth += 1
        b = waiting(kind, bench)
        b.clock = Jumping(nth, by_s)
        b.start()
        await b.say("go")
        while b.session.rest.tick > b.clock.monotonic():
            looks = max(looks, b.clock.looks)
            assert b.session.rest.tick <= wait_s + 0.001
            b.clock.elapsed_s = b.session.rest.tick
            await b.drive()
        if kind == "sub-agent":
            closed = [each.status for each in await b.events() if isinstance(each, CallClosed)]
            assert closed == ["ok"]
        else:
            assert [each.status for each in await b.results()] == ["expired"]
        assert b.clock.elapsed_s == pytest.approx(wait_s)
    assert looks > 5


@pytest.mark.parametrize("by_s", [-2 * 86_400.0, -20.0])
async def test_a_rest_that_goes_on_is_no_longer_for_that(by_s: float, bench: MakeBench) -> None:
    """Neither what comes in meanwhile nor a restart makes anybody wait for a clock to catch up."""
    b = waiting("question", bench)
    until = await b.say("go")
    b.clock.elapsed_s += 40
    b.clock.at += by_s
    assert (await b.drive(), b.session.rest.tick) == (until, 60)
    assert await drive(b.start()) == until
    assert b.session.rest.tick == 40 + 60, "what passed before the restart, nobody knows"
    b.clock.elapsed_s += 60
    assert await b.drive() is None
    (result,) = await b.results()
    assert result.status == "expired"


async def test_two_questions_of_one_reply_are_answered_one_after_the_other(
    bench: MakeBench,
) -> None:
    asked = iter(["colour?", "size?"])
    odd = Odd(lambda: PersonQuestion(next(asked), ()))
    b = bench(once(call("odd", call_id="c1"), call("odd", call_id="c2")), [odd])
    assert await b.say("go") is not None
    assert await b.say("blue") is not None
    assert await b.say("large") is None
    found = [(result.status, result.text) for result in await b.results()]
    assert found == [("ok", "blue"), ("ok", "large")]


@pytest.mark.parametrize("replay", ["again", "never"])
async def test_a_tool_that_asks_gets_the_answer(bench: MakeBench, replay: Replay) -> None:
    """Also one that is journalled before it starts: that it asked is no interruption."""
    odd = Odd(lambda: PersonQuestion("which?", ("a", "b")), replay=replay)
    b = bench(once(call("odd")), [odd])
    assert await b.say("go") is not None
    assert await b.sent() == ["which? (a / b)"]
    assert await drive(b.start()) is not None
    assert await b.say("b, of course") is None
    (result,) = await b.results()
    assert (result.status, result.text, odd.ran) == ("ok", "b, of course", 1)
    end = (await b.events())[-1]
    assert isinstance(end, TurnEnded) and end.answers == (1, 2)


async def test_another_message_supersedes_an_approval(bench: MakeBench) -> None:
    b = bench(
        once(call("odd", call_id="1"), call("odd", call_id="2")),
        [Odd(lambda: make_result("ran", LOCAL))],
    )
    b.configure(asking)
    await b.say("go")
    assert await b.say("do something else") is None
    closed = [event for event in await b.events() if isinstance(event, CallClosed)]
    assert [(event.call_id, event.status) for event in closed] == [
        ("1", "superseded"),
        ("2", "superseded"),
    ]
    assert len([e for e in await b.events() if isinstance(e, ApprovalAsked | QuestionAsked)]) == 1


async def test_stop_while_it_waits_for_an_answer(bench: MakeBench) -> None:
    b = bench(once(call("odd")), [Odd(lambda: make_result("ran", LOCAL))])
    b.configure(asking)
    await b.say("go")
    assert await b.say(Command("stop")) is None
    assert (await b.sent())[-1] == "Stopped." and await b.store.open_sessions() == []


async def test_a_tool_may_end_the_turn(bench: MakeBench) -> None:
    """With its own words, once the other calls have their results, and without another call of the
    model."""
    asked: list[int] = []

    @tool
    async def restart() -> Done:
        """Starts again."""
        return Done((Text("Back in \ud800 a minute."),), end_turn=True)

    def script(request: Request) -> Message:
        asked.append(len(request.messages))
        return say("", call("restart"), call("odd"))

    b = bench(ScriptedModel(script), [restart, Odd(lambda: make_result("fine", LOCAL))])
    await b.say("restart")
    assert asked == [1] and [result.text for result in await b.results()] == [
        "Back in ? a minute.",
        "fine",
    ]
    end = (await b.events())[-1]
    assert await b.sent() == ["Back in ? a minute."]
    assert isinstance(end, TurnEnded) and (end.reason, end.said) == ("done", "Back in ? a minute.")
    await b.say("and now?")
    assert asked == [1, 6]


async def test_a_turn_that_a_tool_ended_is_ended_after_a_crash(bench: MakeBench) -> None:
    """The log alone says it: the process dies after the result is written, before the end is."""
    ended = Done((Text("Back soon."),), end_turn=True)
    b = bench(once(call("odd")), [Odd(lambda: ended)])
    store = b.store

    class Dying:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        async def commit(self, commit: Commit) -> int:
            if any(isinstance(event, TurnEnded) for event in commit.events):
                first = msgspec.structs.replace(
                    commit, events=commit.events[:-1], outbox=(), admitted=(), close=False
                )
                await store.commit(first)
                raise Crash("between the result and the end")
            return await store.commit(commit)

    b.store = cast(Store, Dying())
    b.start()
    with pytest.raises(Crash):
        await b.say("go")
    b.store = store
    b.start()
    await b.drive()
    assert await b.sent() == ["Back soon."] and isinstance((await b.events())[-1], TurnEnded)


async def test_rows_of_a_tool_come_with_its_result(bench: MakeBench) -> None:
    b = bench(once(call("remember", b'{"text": "x"}')), [ChangeTool()])
    await b.say("go")
    assert isinstance(b.store, SqliteStore)
    assert b.store._fetch_all("SELECT key, value FROM kv") == [(f"{SESSION}#2.remember", "x")]
    assert await b.results() == [ToolResult("remember", make_result("remembered", LOCAL).parts)]
    assert isinstance((await b.results())[0].parts[0], Text)


# ---------------------------------------------------------- asking too often, too late, or where
# nobody may


def many(number: int, name: str = "write") -> ScriptedModel:
    """Makes a call in each of so many replies, then says `fine`."""

    def script(request: Request) -> Message:
        made = sum(shown.message.role == "tool" for shown in request.messages)
        return (
            say("fine")
            if made >= number
            else say("", call(name, b'{"text":"%d"}' % made, f"c{made}"))
        )

    return ScriptedModel(script)


async def test_a_person_is_asked_five_times_in_a_turn(bench: MakeBench, tmp_path: Path) -> None:
    b = bench(many(8), [FileTool("write", tmp_path / "out")])
    b.configure(decide=lambda case: Decision("ask", "because"))
    await b.say("go")
    for _ in range(5):
        await b.answer("once")
    events = await b.events()
    assert sum(isinstance(event, ApprovalAsked) for event in events) == 5
    refused = [event for event in events if isinstance(event, CallClosed)]
    assert [event.status for event in refused] == ["denied"] * 3
    assert all(event.reason.startswith("denied: this turn has asked 5 times") for event in refused)
    assert (
        isinstance(events[-1], TurnEnded) and len((tmp_path / "out").read_text().splitlines()) == 5
    )
    assert sum("has asked 5 times" in text for text in await b.sent()) == 1, (
        "the person is told once"
    )
    await b.say("more")
    assert isinstance((await b.events())[-1], TurnEnded) is True


async def test_the_next_turn_may_ask_again(bench: MakeBench, tmp_path: Path) -> None:
    b = bench(many(6), [FileTool("write", tmp_path / "out")])
    b.configure(decide=lambda case: Decision("ask", "because"))
    await b.say("go")
    for _ in range(5):
        await b.answer("no")
    b.answer_with(many(7))  # one more call
    await b.say("again")
    assert isinstance((await b.events())[-1], ApprovalAsked)


async def test_a_no_that_expires_and_nobody_there_are_three_things(
    bench: MakeBench, tmp_path: Path
) -> None:
    texts: dict[str, str] = {}
    for name, who in (("denied", ANN), ("expired", ANN), ("unasked", BOB)):
        b = bench(once(call("write")), [FileTool("write", tmp_path / name)])
        b.configure(decide=lambda case: Decision("ask", "because"))
        b.session.runtime = msgspec.structs.replace(b.session.runtime, approvers=AnnAlone())
        await b.say("go", who)
        asked = (await b.events())[-1]
        assert isinstance(asked, ApprovalAsked) and asked.elsewhere == (
            ("ann",) if who is BOB else ()
        )
        told = (await b.sent())[-1]
        assert ("Only ann may allow this" in told) == (who is BOB)
        if name == "denied":
            await b.answer("no")
        else:
            b.clock.at += 25 * 3600.0
            await b.drive()
        (result,) = await b.results()
        assert result.status == name and not (tmp_path / name).exists()
        texts[name] = result.text
    assert texts["denied"] == "not permitted: ann said no"
    assert texts["expired"].startswith("nobody answered in time: write")
    assert (
        texts["unasked"].startswith("nobody in this conversation may approve it")
        and "Only ann" in texts["unasked"]
    )


class AnnAlone(NoApprovers):
    """Nobody but ann may approve a call."""

    async def outside(self, session: str) -> tuple[str, ...]:
        return ("ann",)


async def test_an_answer_overtakes_what_waits(bench: MakeBench, tmp_path: Path) -> None:
    """Messages that queued before it do not hold it up: else the turn that waits for it would wait
    for them."""
    b = bench(once(call("write")), [FileTool("write", tmp_path / "out")])
    b.configure(decide=lambda case: Decision("ask", "because"))
    await b.say("go")
    for number in range(20):
        await b.accept(said(f"later {number}"), ANN, "queue")
    await b.answer("once")
    kinds = [type(event).__name__ for event in await b.events()]
    assert (
        kinds.index("ApprovalAnswered")
        < kinds.index("ToolFinished")
        < kinds.index("MessageReceived", 1)
    )
    assert (tmp_path / "out").exists()


class Overheard(Odd):
    """While it runs, ann says something."""

    def __init__(self, text: str) -> None:
        super().__init__(lambda: make_result("fine", LOCAL))
        self.text = text
        self.bench: Bench

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        await self.bench.accept(said(self.text), ANN, "steer")
        self.bench.session.inbox.has_news = True
        return await super().run(arguments, context)


async def test_a_yes_from_before_the_question_approves_nothing(
    bench: MakeBench, tmp_path: Path
) -> None:
    odd = Overheard("yes")
    b = odd.bench = bench(
        once(call("odd"), call("write")), [odd, FileTool("write", tmp_path / "out")]
    )
    asks = {"write": Decision("ask", "because")}
    b.configure(decide=lambda case: asks.get(case.tool, Decision("allow", "")))
    await b.say("go")
    assert odd.ran == 1 and not (tmp_path / "out").exists()
    events = await b.events()
    assert [event.behind for event in events if isinstance(event, ApprovalAsked)] == [2]
    assert [event.status for event in events if isinstance(event, CallClosed)] == ["superseded"]


async def test_words_from_before_the_question_do_not_answer_it(bench: MakeBench) -> None:
    odd = Overheard("and the tmp folder")
    which = Odd(lambda: PersonQuestion("which?", ("a", "b")))
    which.spec = Spec("which", "", {"type": "object"})
    b = odd.bench = bench(once(call("odd"), call("which")), [odd, which])
    await b.say("go")
    assert [result.text for result in await b.results()] == ["fine"]
    assert not any(isinstance(event, QuestionAnswered) for event in await b.events())


async def test_the_approver_need_not_have_asked(bench: MakeBench, tmp_path: Path) -> None:
    olga = Principal("olga", ("approver",))
    b = bench(once(call("write")), [FileTool("write", tmp_path / "out")])
    b.configure(decide=lambda case: Decision("ask", "because"))
    await b.say("go", ANN)
    await b.answer("once", olga)
    assert (tmp_path / "out").exists()


async def test_each_of_those_that_run_side_by_side_has_its_own_time(bench: MakeBench) -> None:
    """Their results are written together; how long each took is not what the slowest did."""
    quick_is_over = anyio.Event()

    class Timed(Odd):
        def __init__(self, name: str, seconds: float) -> None:
            super().__init__(lambda: make_result("fine", LOCAL))
            self.spec = Spec(name, "", {"type": "object"}, "none", "again")
            self.seconds = seconds

        async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
            if self.seconds > 1:
                await quick_is_over.wait()
            b.clock.advance(self.seconds)
            quick_is_over.set()
            return make_result("fine", LOCAL)

    b = bench(once(call("slow"), call("quick")), [Timed("slow", 29.0), Timed("quick", 1.0)])
    await b.say("go")
    finished = [event for event in await b.events() if isinstance(event, ToolFinished)]
    assert [(event.result.call_id, event.took_s) for event in finished] == [
        ("slow", 30.0),
        ("quick", 1.0),
    ]


async def test_what_was_stopped_has_the_time_that_it_ran(bench: MakeBench) -> None:
    def act() -> str:
        b.clock.advance(7.0)
        b.session.interrupt_step()
        return "hang"

    b = bench(once(call("odd")), [Odd(act)])
    await b.say("go")
    assert [event.took_s for event in await b.events() if isinstance(event, ToolFinished)][:1] == [
        7.0
    ]
