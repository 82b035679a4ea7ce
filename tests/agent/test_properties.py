"""Random conversations, made with the real admission and the real decision: what must hold after
every event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from deskhand.agent.context import show_messages
from deskhand.agent.fold import fold
from deskhand.agent.masking import next_mask_point
from deskhand.agent.next_admission import admit_next
from deskhand.agent.next_step import next_step
from deskhand.agent.rewind import RewindView, plan_rewind
from deskhand.agent.state import State
from deskhand.assembly.chat_commands import ChatCommands
from deskhand.models.base import ContextMessage
from deskhand.models.usable import sanitize_reply
from deskhand.testing.shorten import compact
from deskhand.types import events as e
from deskhand.types.errors import Refused
from deskhand.types.identity import (
    Address,
    Answer,
    Body,
    Command,
    Configure,
    Deletion,
    Edit,
    Inbound,
    Principal,
    Reaction,
    Result,
    Rewind,
    Said,
    Waiting,
    When,
)
from deskhand.types.labels import LOCAL, Label
from deskhand.types.limits import Limits
from deskhand.types.messages import Image, Message, Text, ToolCall, ToolResult, Usage
from deskhand.types.options import SessionOptions
from deskhand.types.steps import AskModel, Compact, EndTurn, RunTools, Wait
from deskhand.types.turn import OpenCall

from ..examples import examples

COMMANDS = ChatCommands(lambda principal, session, options: "")
LIMITS = Limits(steps=6, tokens=6_000, window=2_000)
PEOPLE = (Principal("ann", ("owner",)), Principal("bob"))
LABELS = (Label("owner", source="ann"), Label("untrusted", source="https://a.example"), LOCAL)
texts = st.sampled_from(["", " ", "hello", "yes", "no", "long " * 60, "é\u2028\U0001f600"])


class Conversation:
    """One session: what waits, the warm state, and its log. Every choice is drawn from `data`."""

    def __init__(self, data: DataObject) -> None:
        self.data, self.state, self.log = data, State("s"), list[e.Recorded]()
        self.waiting: list[Waiting] = []
        self.now = 1_700_000_000.0
        self.count = 0
        self.asks = ["none"]
        self.undone = 0

    def one(self, *values: Any) -> Any:
        return self.data.draw(st.sampled_from(values))

    def text(self) -> str:
        return self.data.draw(texts)

    def parts(self) -> tuple[Any, ...]:
        picture = Image("sha256:" + "ab" * 32, "image/png", label=self.one(*LABELS))
        return (
            Text(self.text(), self.one(*LABELS)),
            *((picture,) if self.one(True, False, False) else ()),
        )

    def record(self, *events: e.AnyEvent) -> None:
        for event in events:
            recorded = e.Recorded(0, "s", self.state.n + 1, self.now, event)
            self.log.append(recorded)
            before = self.state.pictures[:]
            keys = [(shown.n, shown.variant) for shown in show_messages(self.state)]
            archived = self.state.archived
            fold(self.state, (recorded,))
            self.check(event, before, keys, archived)

    def check(
        self,
        event: e.AnyEvent,
        pictures: list[int],
        keys: Sequence[tuple[int, str]],
        archived: bool,
    ) -> None:
        assert e.decode_event(e.encode_event(event)) == event
        shown = show_messages(self.state)
        after = [(s.n, s.variant) for s in shown]
        assert len(set(after)) == len(after), "two messages under one key"
        moved = (
            isinstance(event, e.Masked | e.Compacted) or archived or self.state.pictures != pictures
        )
        assert moved or after[: len(keys)] == keys, "the prompt changed before its end"
        assert_paired(shown, self.state.calls)

    # ---------------------------------------------------------- the world

    def arrive(self) -> None:
        self.count += 1
        who: Principal = self.one(*PEOPLE)
        kinds: tuple[Callable[[], Body], ...] = (
            lambda: Said(Message("user", self.parts())),
            lambda: Said(Message("user", self.parts())),
            lambda: Answer(
                self.one(self.asks[-1], self.asks[-1], "none"),
                self.one("once", "no", "always", "each", "blue"),
            ),
            lambda: Command(self.one("stop", "start", "status", "help", "nonsense")),
            lambda: Result(self.one("c1", "c9"), self.parts()[:1]),
            lambda: Edit("1", Message("user", self.parts())),
            lambda: Reaction("1", "x", True),
            lambda: Deletion(str(self.count - self.one(1, 2)), self.one("", "never mind")),
            lambda: Rewind(
                self.one(*range(len(self.log) + 2)), self.one(None, Message("user", self.parts()))
            ),
            lambda: Command(self.one("undo", "retry"), self.one("", "2")),
            lambda: Configure(
                SessionOptions(
                    approval=self.one(None, True, False), model=self.one(None, "", "p/m")
                )
            ),
        )
        when: When = self.one("steer", "steer", "queue", "interrupt")
        inbound = Inbound(
            str(self.count),
            Address("chat", chat="1", group=True),
            who.id,
            self.now,
            self.one(*kinds)(),
            when=when,
        )
        self.waiting.append(Waiting(self.count, who, inbound))

    def drive(self) -> None:
        """What the loop does, with outcomes drawn."""
        step = next_step(self.state, LIMITS, self.now)
        if not isinstance(step, EndTurn):
            while taken := admit_next(self.state, self.waiting, COMMANDS):
                self.waiting.remove(taken[0])
                self.record(*(taken[1] or self.go_back(taken[0])))
            step = next_step(self.state, LIMITS, self.now)
        match step:
            case AskModel():
                self.ask_model(step)
            case RunTools(calls=calls):
                self.run_tool(calls[0])
            case Compact(budget=budget):
                self.record(compact(self.state, budget))
            case EndTurn(reason=reason, said=said):
                assert self.state.turn is not None and not self.state.calls
                self.record(e.TurnEnded(reason, tuple(self.state.turn.answers), said))
            case Wait(until=until):
                assert until > self.now
                self.now += self.one(1.0, until - self.now)
            case None:
                assert self.state.turn is None and not self.waiting

    def go_back(self, row: Waiting) -> list[e.AnyEvent]:
        past = RewindView("s", self.log)
        try:
            events = plan_rewind(self.state, row, past)
        except Refused as error:
            return [e.CommandRun(row.inbox_id, row.principal, "rewind", "", str(error))]
        to_n = next(event.to_n for event in events if isinstance(event, e.Undone))
        end = next(i for i, event in enumerate(events) if isinstance(event, e.Compacted))
        after = fold(
            past.state_at(len(self.log)),
            [e.Recorded(0, "s", 0, self.now, event) for event in events[: end + 1]],
        )
        then = past.state_at(to_n)
        then.n = after.n
        then.usage = self.state.usage
        then.options = self.state.options
        then.compacted_at = after.compacted_at
        # they read it still
        then.shared = self.state.shared
        then.person = self.state.person or then.person
        then.participants = self.state.participants or then.participants
        same(after, then)
        self.undone += 1
        return events

    def ask_model(self, step: AskModel) -> None:
        self.record(*step.hints)
        used = (self.state.masked_up_to, self.state.context_tokens, LIMITS.window)
        if up_to := next_mask_point(self.state.messages, *used):
            self.record(e.Masked(up_to))
        if self.one(False, False, False, True):
            error = self.one("ModelOverloaded", "ContextOverflow", "MalformedReply")
            retry = self.one(None, self.now, self.now + 30)
            self.record(
                e.ModelFailed(
                    "m", error, "detail", None if error == "ContextOverflow" else retry, "m"
                )
            )
            return
        calls = (
            ToolCall(i, self.one("a", "b"), msgspec.Raw(b"{}"))
            for i in ("c1", "c2", "c2")[: self.one(0, 0, 1, 2, 3)]
        )
        message = sanitize_reply(Message("assistant", (Text(self.text()), *calls)), step.tools)
        finish: e.Finish = (
            "calls"
            if message.calls
            else self.one("stop", "stop", "length", "filtered", "interrupted")
        )
        self.record(e.ModelReplied(message, "m", finish, Usage(self.one(10, 300, 1700), 10)))

    def run_tool(self, call: OpenCall) -> None:
        call_id = call.call.id
        self.count = self.count + 1
        finished = e.ToolFinished(ToolResult(call_id, self.parts(), self.one("ok", "error")))
        if (
            call.answer is not None
            or call.refusal
            or call.ask is not None
            or call.yes_at is not None
            or call.started
        ):
            self.record(finished)
            return
        ask_id = f"ask{self.count}"
        until = self.now + self.one(5, 500)
        behind = [
            other.call.id
            for other in self.state.calls.values()
            if other is not call and other.ask is None
        ]
        others = tuple(e.BoundCall(other, "hash") for other in behind[: self.one(0, 0, 2)])
        approval = e.ApprovalAsked(ask_id, call_id, "hash", "?", "r", until, others=others)
        started = e.ToolStarted(call_id)
        question = e.QuestionAsked(ask_id, call_id, "?", (), until)
        outcome = self.one((finished,), (started, finished), (started,), (approval,), (question,))
        self.asks += [ask_id] if outcome[0] in (approval, question) else []
        self.record(*outcome)


def assert_paired(shown: tuple[ContextMessage, ...], open_calls: dict[str, OpenCall]) -> None:
    """Each call is followed by its result before anybody else speaks, unless it is still open."""
    missing: list[str] = []
    for message in (s.message for s in shown):
        if message.role == "tool":
            for part in message.parts:
                assert isinstance(part, ToolResult) and part.call_id in missing
                missing.remove(part.call_id)
        else:
            assert not missing, f"{missing} have no result"
            missing = [call.id for call in message.calls]
    assert sorted(missing) == sorted(open_calls)


def cold(log: list[e.Recorded]) -> State:
    """What a restart knows: the fold from the last compaction on."""
    start = max(
        (i for i, recorded in enumerate(log) if isinstance(recorded.event, e.Compacted)), default=0
    )
    stored = (
        e.Recorded(0, "s", r.n, r.at, e.decode_event(e.encode_event(r.event))) for r in log[start:]
    )
    return fold(State("s"), stored)


def same(one: State, two: State) -> None:
    """All but the name of the last model, which is only for people."""
    one.model = two.model = ""
    assert one == two


@settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.data_too_large, HealthCheck.too_slow],
)
@given(st.data())
def test_every_conversation(data: DataObject) -> None:
    talk = Conversation(data)
    for _ in range(data.draw(st.integers(5, 60))):
        if talk.one(True, False, False, False) or not talk.log:
            talk.arrive()
        talk.drive()
    same(talk.state, fold(State("s"), talk.log))
    if talk.log:
        same(talk.state, cold(talk.log))
        assert next_step(cold(talk.log), LIMITS, talk.now) == next_step(
            talk.state, LIMITS, talk.now
        )


@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.data_too_large, HealthCheck.too_slow],
)
@given(st.data())
def test_every_conversation_comes_to_rest(data: DataObject) -> None:
    """When nobody writes any more, it ends, or it waits for a person."""
    talk = Conversation(data)
    for _ in range(3):
        talk.arrive()
    for _ in range(150):
        talk.drive()
        if talk.state.turn is None and not talk.waiting:
            break
        talk.now += 1.0
    assert talk.state.turn is None and not talk.waiting
