"""A turn of the log, run again: byte for byte where nothing is changed, and compared where
something is."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from datetime import UTC
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from deskhand.agent.state import State
from deskhand.evals.recordings import Made, Recording, select_recording, split_recordings
from deskhand.evals.replay import NOT_RECORDED, Trial, replay_recording
from deskhand.models.base import Model, Reply, Request
from deskhand.models.meter import UsageMeter
from deskhand.models.side_completion import Aside
from deskhand.policy.rules import Case, Decision
from deskhand.testing.bench import (
    ANN,
    BOB,
    SESSION,
    Bench,
    RuleJudge,
    ShortContext,
    said,
)
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.testing.tools import STATEMENTS, FileTool
from deskhand.tools.base import Context, Done, Outcome, PersonQuestion, Tool
from deskhand.tools.define import tool
from deskhand.types import events as e
from deskhand.types.errors import ContextOverflow, ModelOverloaded, Refused
from deskhand.types.identity import Body, Command, Configure, Deletion, Edit, Reaction, Rewind, Said
from deskhand.types.labels import LOCAL
from deskhand.types.limits import Limits
from deskhand.types.messages import Audio, Message, Text, ToolCall, Usage
from deskhand.types.options import SessionOptions

SESSIONS = 20
TURNS = 50


def call(name: str, arguments: object = None, call_id: str = "") -> ToolCall:
    return ToolCall(call_id or name, name, msgspec.Raw(msgspec.json.encode(arguments or {})))


def texts(request: Request) -> list[str]:
    return [shown.message.text for shown in request.messages]


# ------------------------------------------------------- byte for byte


class Talk:
    """A conversation in which everything happens that can, drawn from `random`: what models say and
    how they fail, what tools do meanwhile, and what people write, answer, edit and take back."""

    def __init__(self, path: Path, random: Random) -> None:
        self.random = random
        self.model = ScriptedModel(self.script, piece=1000)
        self.ran = self.ended = 0
        tools = (*self.tools(), FileTool("write", path / "notes"))
        self.bench = Bench(path / "talk.db", self.model, tools, STATEMENTS)
        self.bench.agent = replace(
            self.bench.agent,
            judge=RuleJudge(self.decide),
            limits=Limits(steps=5, tokens=9_000, window=4_000),
            zone=UTC,
        )
        self.bench.start()

    def one(self, *values: Any) -> Any:
        return self.random.choice(values)

    def script(self, request: Request) -> Reply:
        if not request.tools and len(request.system) == 1:
            return Reply(say("aside"), "stop", Usage(3, 2))
        if self.random.random() < 0.06:
            raise self.one(ModelOverloaded, ContextOverflow)("no")
        used = Usage(self.one(20, 300, 900, 2_500, 3_600), 10, 5)
        kind = self.one("say", "say", "say", "call", "call", "call", "long", "empty", "cut")
        if kind == "call" and request.tools:
            names = [self.one(*request.tools).name for _ in range(self.one(1, 1, 2, 3))]
            calls = [
                call(name, {"text": self.one("a", "b")}, f"c{i}") for i, name in enumerate(names)
            ]
            return Reply(say(self.one("", "I look."), *calls), "calls", used)
        text = {"long": "word " * 400, "empty": " ", "cut": "and so "}.get(
            kind, self.one("Fine.", "Done é.")
        )
        return Reply(
            say(text), "length" if kind == "cut" else self.one("stop", "stop", "filtered"), used
        )

    def tools(self) -> Sequence[Tool]:
        @tool(reads=LOCAL)
        async def look(text: str = "") -> str:
            """Look."""
            self.ran += 1
            return f"seen {self.ran}"

        @tool(reads=LOCAL)
        async def much(text: str = "") -> str:
            """Returns much."""
            self.ran += 1
            return "line\n" * self.random.choice((10, 300))

        @tool(effect="host", replay="never", reads=LOCAL)
        async def risky(text: str = "") -> str:
            """Is asked about."""
            self.ran += 1
            return "done"

        @tool
        async def choose(text: str = "") -> Outcome:
            """Asks the person."""
            self.ran += 1
            return PersonQuestion("Which?", ("a", "b"))

        @tool(reads=LOCAL)
        async def meanwhile(context: Context, text: str = "") -> str:
            """Somebody writes, or stops it, while it runs."""
            self.ran += 1
            await self.bench.accept(
                self.one(
                    said("By the way."), said("Also."), Command("stop"), Reaction("1", "x", True)
                )
            )
            self.bench.session.inbox.has_news = True
            return "over"

        @tool(reads=LOCAL)
        async def ponder(context: Context, text: str = "") -> str:
            """Asks a model aside."""
            self.ran += 1
            return await context.ask(Aside("You sum up.", text))

        @tool
        async def finish(text: str = "") -> Done:
            """Ends the turn."""
            self.ran += 1
            return Done((Text("The end.", LOCAL),), end_turn=True)

        @tool(reads=LOCAL)
        async def breaks(text: str = "") -> str:
            """Breaks."""
            self.ran += 1
            raise ValueError("it broke")

        return look, much, risky, choose, meanwhile, ponder, finish, breaks

    def decide(self, case: Case) -> Decision:
        if case.tool == "risky":
            return Decision(self.one("ask", "ask", "deny"), "it is risky")
        return Decision("allow", "it is free")

    def retry(
        self, models: Sequence[str], failures: Sequence[e.ModelFailed], now: float
    ) -> tuple[str, float] | None:
        return None if len(failures) > 1 else (models[len(failures) % len(models)], now)

    async def step(self) -> None:
        """A person does something, and it is driven until it rests."""
        bench = self.bench
        bench.clock.advance(self.one(0.0, 1.0, 61.0, 7_200.0))
        body: Body = self.one(
            *[said("Do it."), said("Look again."), said("Once more.")] * 3,
            Said(Message("user", (Audio(f"sha256:{self.one(1, 2)}", "audio/ogg"),))),
            Edit("1", Message("user", (Text("Not so."),))),
            Reaction("1", "👍", True),
            Deletion("1", "Do it."),
            Command(self.one("undo", "retry", "status", "clean", "stop", "compact", "uncompact")),
            Rewind(self.one(0, 2, 5), self.one(None, Message("user", (Text("Rather this."),)))),
            Configure(
                SessionOptions(plan_mode=self.one(True, False), model=self.one("", "test/other"))
            ),
        )
        await bench.say(
            body, self.one(ANN, ANN, ANN, BOB), self.one("steer", "steer", "queue", "interrupt")
        )
        state = bench.session.state
        while state is not None and state.turn is not None:
            if self.random.random() < 0.1:
                bench.clock.advance(90_000.0)
                bench.session.inbox.has_news = True
                await bench.drive()
            else:
                await bench.answer(self.one("once", "once", "no", "a"))
            state = bench.session.state
        self.ended = sum(
            isinstance(getattr(each, "event", None), e.TurnEnded) for each in bench.shown
        )
        if self.random.random() < 0.1:
            bench.start()  # as after a restart


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: thousands of commits need not wait for a disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(
        dir=memory if os.access(memory, os.W_OK) else tmp_path
    ) as folder:
        yield Path(folder)


async def test_a_thousand_turns_come_out_byte_for_byte(quick: Path) -> None:
    turns = 0
    kinds = set[str]()
    asked = 0
    for number in range(SESSIONS):
        folder = quick / str(number)
        folder.mkdir()
        talk = Talk(folder, Random(number))
        bench = talk.bench
        while talk.ended < TURNS:
            await talk.step()
        log = await bench.store.events(SESSION)
        ran = talk.ran
        sent = [r for r in talk.model.requests if len(r.system) > 1]
        seen = list[Request]()
        meter = UsageMeter()
        for each in split_recordings(SESSION, log):
            found = await replay_recording(
                each, Trial(agent=bench.agent, host=Asked(bench), meter=meter)
            )
            assert found.same and not found.differs, (number, each.number, found.differs)
            assert found.now == found.was and found.asked == 0
            seen += found.requests
            turns += 1
        assert talk.ran == ran, "a tool was run again"
        assert [asked_for(request) for request in seen] == [asked_for(request) for request in sent]
        asked += len(seen)
        kinds |= {e.event_kind(recorded.event) for recorded in log}
        await bench.close()
    assert turns >= 1_000 and asked > turns
    never = {"erased", "recalled", "branched", "message_delivered"}
    never |= {
        "history_message",
        "calls_handed_over",
        "results_returned",
    }  # of programs: tests/web/test_openai_tools.py
    assert kinds == {str(each.__struct_config__.tag) for each in e.AnyEvent.__args__} - never


def asked_for(request: Request) -> Any:
    told = (request.model, request.system, request.messages, request.tools)
    return (*told, request.max_output_tokens, request.thinking, request.temperature)


# ------------------------------------------------------- what if


@tool(effect="local_write", reads=LOCAL)
async def look(place: str) -> str:
    """Look at a place."""
    SEEN.append(place)
    return f"there are {len(SEEN)} things in {place}"


SEEN: list[str] = []
"""What was really looked at."""


def script(*replies: Message | Reply | Exception) -> Callable[[Request], Reply]:
    """Says these one after the other."""
    left = list(replies)

    def next_(request: Request) -> Reply:
        reply = left.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return (
            reply
            if isinstance(reply, Reply)
            else Reply(reply, "calls" if reply.calls else "stop", Usage(100, 10))
        )

    return next_


@pytest.fixture
async def recorded(tmp_path: Path) -> AsyncIterator[tuple[Bench, Recording]]:
    """A turn in which two places were looked at, one of them twice, and something was said
    meanwhile."""

    @tool(reads=LOCAL)
    async def pause(context: Context) -> str:
        """Somebody writes while it runs."""
        await bench.accept(said("And the attic."))
        bench.session.inbox.has_news = True
        return "over"

    SEEN.clear()
    replies = (
        say("", call("look", {"place": "cellar"}, "a"), call("look", {"place": "roof"}, "b")),
        say("", call("look", {"place": "cellar"}, "c"), call("pause", {}, "d")),
        say("There are 3 things."),
    )
    bench = Bench(tmp_path / "b.db", ScriptedModel(script(*replies)), (look, pause))
    await bench.say("Count the things.")
    assert SEEN == ["cellar", "roof", "cellar"]
    yield bench, select_recording(SESSION, await bench.store.events(SESSION))
    await bench.close()


class Asked:
    """Who is asked in a replay, and what. `served` are what calls read of what is tried."""

    def __init__(self, bench: Bench, *replies: Message | Reply | Exception) -> None:
        self._bench = bench
        self._script = script(*replies)
        self.requests: list[Request] = []
        self.models: list[str] = []
        self.served: dict[str, str] = {}

    def open_model(self, model: str) -> Model:
        return self._bench.session.runtime.models.open(model)

    async def ask(self, model: str, request: Request) -> Reply:
        self.models.append(model)
        self.requests.append(request)
        return self._script(request)

    def serve(self, call: ToolCall) -> str | None:
        return self.served.get(call.name)

    def redact(self, event: e.AnyEvent) -> e.AnyEvent:
        return event


def results(request: Request) -> list[str]:
    return [
        part.text  # type: ignore[union-attr]
        for shown in request.messages
        if shown.message.role == "tool"
        for part in shown.message.parts
    ]


async def test_another_model_gets_the_recorded_results(recorded: tuple[Bench, Recording]) -> None:
    bench, turn = recorded
    asked = Asked(
        bench,
        say("", call("look", {"place": "cellar"}, "z"), call("look", {"place": "attic"}, "y")),
        say("", call("look", {"place": "cellar"}), call("look", {"place": "cellar"}, "x")),
        say("There are many."),
    )
    found = await replay_recording(turn, Trial(agent=bench.agent, host=asked, model="other/model"))
    assert asked.models == ["other/model"] * 3 and asked.requests[0].model == "model"
    assert results(asked.requests[2]) == [
        "there are 1 things in cellar",
        NOT_RECORDED,
        "there are 3 things in cellar",
        "there are 3 things in cellar",
    ]
    assert SEEN == ["cellar", "roof", "cellar"], "nothing is looked at again"
    assert [(d.kind, "attic" in d.words) for d in found.differs] == [("call", True)]
    assert not found.same and found.asked == 3 and found.spent == Usage(300, 30)
    assert found.was.answer == "There are 3 things." and found.now.answer == "There are many."
    assert (
        found.now.models == ("other/model",) and found.now.reason == "done" and found.now.steps == 3
    )
    assert Made("look", '{"place":"attic"}', "error", known=False) in found.now.calls
    assert [each.known for each in found.now.calls] == [True, False, True, True]
    assert "And the attic." in texts(asked.requests[2])[-1], (
        "what was said meanwhile is said at its place"
    )
    assert "And the attic." not in texts(asked.requests[1])[-1]


async def test_another_prompt_is_asked_from_the_first_request_that_differs(
    recorded: tuple[Bench, Recording],
) -> None:
    bench, turn = recorded

    class Brief(ShortContext):
        def blocks(self, state: State) -> tuple[str, ...]:
            blocks = super().blocks(state)
            steps = state.turn.steps if state.turn is not None else 0
            return ("Be brief.", *blocks[1:]) if steps else blocks

    other = replace(bench.agent, context=Brief())
    asked = Asked(bench, say("Three."))
    found = await replay_recording(turn, Trial(agent=bench.agent, host=asked, other=other))
    assert len(asked.requests) == 1 and asked.requests[0].system[0] == "Be brief."
    assert asked.models == ["test/model"] and found.now.steps == 2 and found.now.answer == "Three."
    assert [d.kind for d in found.differs] == ["unread"], "it was over before that was said"
    same = await replay_recording(
        turn, Trial(agent=bench.agent, host=Asked(bench), other=replace(bench.agent, name="twin"))
    )
    assert same.same and not same.asked


async def test_what_is_tried_may_be_read(recorded: tuple[Bench, Recording]) -> None:
    bench, turn = recorded
    asked = Asked(bench, say("", call("read_skill", {"skill": "counting"})), say("Three."))
    asked.served = {"read_skill": "Count twice."}
    trial = Trial(
        agent=bench.agent,
        host=asked,
        model="m/x",
    )
    found = await replay_recording(turn, trial)
    assert results(asked.requests[1]) == ["Count twice."] and [d.kind for d in found.differs] == [
        "unread"
    ]


async def test_it_ends_where_it_may_go_no_further(recorded: tuple[Bench, Recording]) -> None:
    bench, turn = recorded
    again = [say("", call("look", {"place": "roof"}, str(i))) for i in range(9)]
    few = await replay_recording(
        turn, Trial(agent=bench.agent, host=Asked(bench, *again), model="m/x", steps=2)
    )
    assert (
        few.asked == 2 and "2 model calls" in few.differs[-1].words and few.now.reason == "failed"
    )
    spent = await replay_recording(
        turn, Trial(agent=bench.agent, host=Asked(bench, *again), model="m/x", tokens=250)
    )
    assert spent.asked == 3 and "250 tokens" in spent.differs[-1].words
    away = await replay_recording(
        turn, Trial(agent=bench.agent, host=Asked(bench, ModelOverloaded("busy")), model="m/x")
    )
    assert away.now.reason == "failed" and "busy" in away.differs[0].words
    stuck = await replay_recording(
        turn, Trial(agent=bench.agent, host=Asked(bench, *again), model="m/x")
    )
    assert stuck.now.reason == "loop", "the guards of the agent hold here too"


async def test_a_decision_that_would_be_another_now_is_told(
    recorded: tuple[Bench, Recording],
) -> None:
    bench, turn = recorded
    found = await replay_recording(
        turn, Trial(agent=replace(bench.agent, limits=Limits(steps=1)), host=Asked(bench))
    )
    assert found.differs and {d.kind for d in found.differs} == {"decision"}
    assert found.now.answer == found.was.answer


async def test_a_small_model_that_selects_was_given_all_and_is_again(tmp_path: Path) -> None:
    model = ScriptedModel(script(say("", call("look", {"place": "roof"})), say("One.")))
    model.selective = True  # type: ignore[attr-defined]
    bench = Bench(tmp_path / "b.db", model, (look,))

    class Long(ShortContext):
        def blocks(self, state: State) -> tuple[str, ...]:
            return "You help. " * 900, ""

    bench.agent = replace(bench.agent, context=Long(), limits=Limits(window=2_000))
    bench.start()
    await bench.say("Look.")
    turn = select_recording(SESSION, await bench.store.events(SESSION))
    found = await replay_recording(turn, Trial(agent=bench.agent, host=Asked(bench)))
    assert found.same and [asked_for(each) for each in found.requests] == [
        asked_for(each) for each in model.requests
    ]
    del model.selective  # type: ignore[attr-defined]
    tight = await replay_recording(turn, Trial(agent=bench.agent, host=Asked(bench)))
    assert tight.was == tight.now and len(tight.requests) == 1, (
        "what would not be asked now is none"
    )
    assert "a larger window" in tight.differs[0].words
    await bench.close()


async def test_which_turn(recorded: tuple[Bench, Recording]) -> None:
    bench, turn = recorded
    await bench.say(Command("stop"))
    log = await bench.store.events(SESSION)
    assert select_recording(SESSION, log, 1) == turn and turn.asked == "Count the things."
    for number in (-1, 2):
        with pytest.raises(Refused, match="this conversation has turns 1 to 1"):
            select_recording(SESSION, log, number)
    with pytest.raises(Refused, match="nothing was said"):
        select_recording(SESSION, ())
