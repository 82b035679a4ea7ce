"""Replays a turn of the log. The log is the recording, and nothing is done a second time.

As long as a model would be asked what it was asked then, its reply is the recorded one, and the
turn must come out byte for byte. From the first request that differs (another model, prompt or
skill) a model is really asked, and its calls get the results that such calls got in the recorded
turn. Tools never run: a call that was not made then gets an error that says so, and is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec
from msgspec.structs import replace

from ..agent.agent import Agent, with_options
from ..agent.compacted_event import make_compaction
from ..agent.context import build_request
from ..agent.fold import fold
from ..agent.masking import next_mask_point
from ..agent.next_step import next_step
from ..agent.state import State
from ..models.base import Model, Reply, Request
from ..models.meter import UsageMeter
from ..models.usable import sanitize_reply
from ..models.window import fit_messages
from ..types import events as e
from ..types.errors import ModelError
from ..types.labels import LOCAL
from ..types.messages import Text, ToolCall, ToolResult, Usage
from ..types.steps import AskModel, Compact, Condensed, EndTurn, RunTools
from .recordings import Course, Recording, list_calls, make_call_key, make_course

NOT_RECORDED = (
    "This is a replay, in which no tool is run: this call was not made in the recorded "
    "turn, so there is no result for "
    "it. Go on without it, and say what you would have done with it."
)
REPLAY_STEPS = 20
REPLAY_TOKENS = 200_000


class ReplayHost(Protocol):
    """What a replay needs from outside. Implemented by `runner.LiveHost`."""

    def open_model(self, model: str) -> Model:
        """The model `provider/name`. Raises ConfigError."""
        ...

    async def ask(self, model: str, request: Request) -> Reply:
        """One real call of `provider/name`. Raises ModelError."""
        ...

    def serve(self, call: ToolCall) -> str | None:
        """What a call would read of the skills that are tried, or None for every other call."""
        ...

    def redact(self, event: e.AnyEvent) -> e.AnyEvent:
        """The event without secrets."""
        ...


class Difference(msgspec.Struct, frozen=True):
    """Where the replay left the recording. `decision`: Deskhand would decide otherwise now. `call`:
    a call has no recorded result. `unread`: the replay ended before a message of the recording was
    read. `stopped`: the replay could not go on."""

    kind: Literal["decision", "call", "unread", "stopped"]
    words: str


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a replay. `same`: every event is byte for byte the recorded one. `asked` counts
    real calls of models, `spent` is what they used. `requests` are those of the recording."""

    recording: Recording
    was: Course
    now: Course
    same: bool
    differs: tuple[Difference, ...]
    events: tuple[e.Recorded, ...]
    asked: int
    spent: Usage
    requests: tuple[Request, ...]


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """How to replay. `agent` drives the conversation as it is now. With `other` that agent is tried
    in its place, with `model` that model in place of the recorded one. `steps` and `tokens` limit
    what is really asked. `meter` learns how models count tokens, as it did then."""

    agent: Agent
    host: ReplayHost
    other: Agent | None = None
    model: str = ""
    steps: int = REPLAY_STEPS
    tokens: int = REPLAY_TOKENS
    meter: UsageMeter = msgspec.field(default_factory=UsageMeter)


def _build_request(agent: Agent, state: State, model: str, trial: Trial, *, tools: bool) -> Request:
    """What this agent asks `provider/name` in this state. Raises ContextOverflow when it does not
    fit into the window of the model."""
    schemas = agent.schemas.offered(state.options) if tools else ()
    draft = Request(model, (), (), schemas)
    return build_request(agent, state, draft, trial.meter.scale(model), trial.host.open_model)


def is_same_request(one: Request, two: Request) -> bool:
    """Whether both requests ask a model the same."""
    return _comparison_key(one) == _comparison_key(two)


def _comparison_key(request: Request) -> tuple[object, ...]:
    return (
        request.model,
        request.system,
        request.messages,
        request.tools,
        request.max_output_tokens,
        request.thinking,
        request.temperature,
    )


async def replay_recording(recorded: Recording, trial: Trial) -> Replayed:
    """Replay the turn."""
    player = _Player(recorded, trial)
    at = player.follow()
    if at is not None:
        await player.continue_live(at)
    known = {make_call_key(call) for call in list_calls(recorded.tape)}
    return Replayed(
        recording=recorded,
        was=make_course([each.event for each in recorded.tape]),
        now=make_course([each.event for each in player.made], known),
        same=_encode_all(player.made) == _encode_all(recorded.tape),
        differs=tuple(player.differs),
        events=tuple(player.made),
        asked=player.asked,
        spent=player.spent,
        requests=tuple(player.requests),
    )


def _encode_all(events: Sequence[e.Recorded]) -> list[tuple[int, float, bytes]]:
    return [(each.n, each.at, e.encode_event(each.event)) for each in events]


class _Results:
    """The results of a recorded turn by call, each with the options that it set. The same call gets
    them in the recorded order, and then the last one again and again."""

    def __init__(self, tape: Sequence[e.Recorded], at: int) -> None:
        self._left = dict[tuple[str, str], list[list[e.AnyEvent]]]()
        self._last = dict[tuple[str, str], list[e.AnyEvent]]()
        calls = dict[str, ToolCall]()
        latest = list[e.AnyEvent]()
        for i, recorded in enumerate(tape):
            match recorded.event:
                case e.ModelReplied(message=message):
                    calls = {call.id: call for call in message.calls}
                case e.ToolFinished(result=result) as event if result.call_id in calls:
                    latest = self._add(calls[result.call_id], event, i >= at)
                case e.CallClosed(call_id=call_id, status=status, reason=reason) if (
                    call_id in calls
                ):
                    closed = e.ToolFinished(ToolResult(call_id, (Text(reason, LOCAL),), status))
                    latest = self._add(calls[call_id], closed, i >= at)
                case e.OptionsSet() as event if _is_set_by_tool(event):
                    latest.append(event)
                case _:
                    pass

    def _add(self, call: ToolCall, event: e.ToolFinished, ahead: bool) -> list[e.AnyEvent]:
        key = make_call_key(call)
        found = list[e.AnyEvent]((event,))
        if ahead:
            self._left.setdefault(key, []).append(found)
        else:
            self._last[key] = found
        return found

    def take(self, call: ToolCall) -> tuple[e.AnyEvent, ...]:
        """The events that the call led to; none when it was not made."""
        key = make_call_key(call)
        if left := self._left.get(key):
            self._last[key] = left.pop(0)
        events: list[e.AnyEvent] = []
        for event in self._last.get(key, ()):
            if isinstance(event, e.ToolFinished):
                event = replace(event, result=replace(event.result, call_id=call.id))
            events.append(event)
        return tuple(events)


def _is_set_by_tool(event: e.AnyEvent) -> bool:
    """Whether the call before this event has set these options."""
    return isinstance(event, e.OptionsSet) and not event.inbox_id


_EXTERNAL_EVENTS = (
    e.MessageReceived,
    e.HistoryMessage,
    e.ResultsReturned,
    e.MessageEdited,
    e.MessageDeleted,
    e.Reacted,
    e.OptionsSet,
    e.Recalled,
)
"""Events that come from outside, whatever the model says."""


class _Player:
    """One replay. Its time is the time of the recorded events."""

    def __init__(self, recorded: Recording, trial: Trial) -> None:
        self._recorded = recorded
        self._trial = trial
        self._tape = recorded.tape
        self._state = fold(State(recorded.session, zone=trial.agent.zone), recorded.before)
        self._at = recorded.tape[0].at
        self.made: list[e.Recorded] = []
        self.differs: list[Difference] = []
        self.requests: list[Request] = []
        self.asked = 0
        self.spent = Usage()

    # Following the recording

    def follow(self) -> int | None:
        """Follow the recording. Returns the index of the first reply that a model must really be
        asked for, or None when all of it was followed."""
        for i, recorded in enumerate(self._tape):
            self._at = recorded.at
            event = self._redecide(recorded.event)
            if isinstance(event, (e.ModelReplied, e.ModelFailed)) and self._is_asked_differently(
                event
            ):
                return i
            self._record(event)
        return None

    def _redecide(self, event: e.AnyEvent) -> e.AnyEvent:
        """The event as Deskhand would make it now. Events from outside are returned as they
        are."""
        if not isinstance(event, (e.Hinted, e.Masked, e.ModelReplied, e.ModelFailed, e.TurnEnded)):
            return event
        state = self._state
        agent = with_options(self._trial.agent, self._state.options)
        step = next_step(state, agent.limits, self._at)
        due = next_mask_point(
            state.messages, state.masked_up_to, state.context_tokens, agent.limits.window
        )
        ours: e.AnyEvent | None = None
        match event, step:
            case e.Hinted(), AskModel(hints=(first, *_)):
                ours = first
            case e.Masked(), AskModel(hints=()):
                ours = e.Masked(due)
            case ((e.ModelReplied() | e.ModelFailed()), AskModel(hints=())) if not due:
                ours = event
            case e.Compacted(), Compact():
                ours = event
            case e.TurnEnded(), EndTurn(reason=reason, said=said):
                if agent.hooks is not None:  # a plugin may have had the last word
                    said = event.said
                ours = e.TurnEnded(
                    reason, tuple(state.turn.answers) if state.turn else (), said, event.note
                )
            case e.TurnEnded(reason=reason), _ if reason == "dead" or self._recorded.rewound:
                ours = event
            case _:
                pass
        if ours != event:
            then = e.event_kind(event)
            now = type(step).__name__ if ours is None or step is None else e.event_kind(ours)
            words = (
                f"event {self._state.n + 1} was {then}, and would be {now} now: the settings or "
                "Deskhand have changed"
            )
            self.differs.append(Difference("decision", words))
        return event if ours is None else ours

    def _is_asked_differently(self, event: e.ModelReplied | e.ModelFailed) -> bool:
        """Note what the model was asked, and learn how it counts tokens. Returns whether this trial
        asks it something else."""
        trial = self._trial
        state = self._state
        model = event.model
        tools = "final" not in state.turn.hinted if state.turn is not None else True
        then = self._request_or_error(trial.agent, model, tools)
        if isinstance(then, Request):
            self.requests.append(then)
        elif isinstance(event, e.ModelReplied):
            self.differs.append(Difference("decision", f"{model} would not be called now: {then}"))
        if trial.model:
            return True
        if trial.other is not None:
            other = self._request_or_error(trial.other, model, tools)
            if not isinstance(then, Request) or not isinstance(other, Request):
                return True
            if not is_same_request(then, other):
                return True
        if isinstance(event, e.ModelReplied) and isinstance(then, Request):
            trial.meter.learn(model, then, event.usage.input_tokens)
        return False

    def _request_or_error(self, agent: Agent, model: str, tools: bool) -> Request | ModelError:
        try:
            return _build_request(
                with_options(agent, self._state.options),
                self._state,
                model,
                self._trial,
                tools=tools,
            )
        except ModelError as error:
            return error

    # Leaving the recording

    async def continue_live(self, at: int) -> None:
        """Really ask models, from this index of the tape on."""
        then = self._tape[at].event
        model = self._trial.model
        if not model and isinstance(then, (e.ModelReplied, e.ModelFailed)):
            model = then.model
        results = _Results(self._tape, at)
        given = self._list_inputs_after(at)
        while self._state.turn is not None:
            agent = self._make_agent(model)
            step = next_step(self._state, agent.limits, self._at)
            # A finished answer goes out before what was said meanwhile is read.
            if not isinstance(step, EndTurn) and self._admit_next(given):
                continue
            match step:
                case AskModel():
                    if not await self._ask_model(agent, model, step):
                        break
                case RunTools(calls=calls):
                    for call in calls:
                        self._record(*self._find_result(call.call, results))
                case Compact(budget=budget, focus=focus):
                    messages = [shown.message for shown in self._state.messages]
                    sizes = (1, budget) if focus else (budget,)
                    cut = fit_messages(messages, *sizes)
                    self._record(make_compaction(self._state, cut, Condensed()))
                case EndTurn(reason=reason, said=said):
                    self._record(e.TurnEnded(reason, tuple(self._state.turn.answers), said))
                case _:
                    self._stop(f"no outcome was recorded for this step: {type(step).__name__}")
        for _, event in given:
            if isinstance(event, e.MessageReceived):
                text = " ".join(event.message.text.split())[:80]
                words = f"a message that came meanwhile was not read: “{text}”"
                self.differs.append(Difference("unread", words))

    def _make_agent(self, model: str) -> Agent:
        agent = with_options(self._trial.other or self._trial.agent, self._state.options)
        if not self._trial.model:
            return agent
        limits = agent.limits_for(model)
        return replace(agent, models=(model,), limits=limits)

    def _list_inputs_after(self, at: int) -> list[tuple[int, e.AnyEvent]]:
        """The events from outside after this index of the tape, each with the number of replies
        before it."""
        found: list[tuple[int, e.AnyEvent]] = []
        replies = 0
        for i, recorded in enumerate(self._tape):
            event = recorded.event
            replies += isinstance(event, e.ModelReplied)
            is_external = isinstance(event, _EXTERNAL_EVENTS) and not _is_set_by_tool(event)
            if i > at and is_external:
                found.append((replies, event))
        return found

    def _admit_next(self, given: list[tuple[int, e.AnyEvent]]) -> bool:
        """Record the next event from outside if it had come by now and no call is open. Returns
        whether there was one."""
        replies = sum(isinstance(recorded.event, e.ModelReplied) for recorded in self.made)
        if not given or given[0][0] > replies or self._state.calls:
            return False
        self._record(given.pop(0)[1])
        return True

    async def _ask_model(self, agent: Agent, model: str, step: AskModel) -> bool:
        """Really ask the model once. False when the replay is over."""
        trial = self._trial
        spent = self.spent.input_tokens + self.spent.output_tokens
        if self.asked >= trial.steps or spent >= trial.tokens:
            limit = f"{trial.tokens:,} tokens"
            if self.asked >= trial.steps:
                limit = f"{trial.steps} model calls"
            return self._stop(f"it has reached its limit of {limit}")
        self._record(*step.hints)
        state = self._state
        if due := next_mask_point(
            state.messages, state.masked_up_to, state.context_tokens, agent.limits.window
        ):
            self._record(e.Masked(due))
        self.asked += 1
        try:
            request = _build_request(agent, state, model, trial, tools=step.tools)
            reply = await trial.host.ask(model, request)
        except ModelError as error:
            return self._stop(f"{model} did not answer: {error}")
        self.spent += reply.usage
        said = e.ModelReplied(
            sanitize_reply(reply.message, step.tools), model, reply.finish, reply.usage
        )
        self._record(trial.host.redact(said))
        return True

    def _find_result(self, call: ToolCall, results: _Results) -> tuple[e.AnyEvent, ...]:
        if (text := self._trial.host.serve(call)) is not None:
            return (e.ToolFinished(ToolResult(call.id, (Text(text, LOCAL),))),)
        if found := results.take(call):
            return found
        name, arguments = make_call_key(call)
        self.differs.append(
            Difference(
                "call",
                f"{name} {arguments} was not called in the recorded turn, so it has no result",
            )
        )
        return (e.ToolFinished(ToolResult(call.id, (Text(NOT_RECORDED, LOCAL),), "error")),)

    def _stop(self, why: str) -> bool:
        self.differs.append(Difference("stopped", why))
        answers = tuple(self._state.turn.answers) if self._state.turn else ()
        self._record(e.TurnEnded("failed", answers, f"[the replay stopped: {why}]"))
        return False

    def _record(self, *events: e.AnyEvent) -> None:
        for event in events:
            recorded = e.Recorded(0, self._recorded.session, self._state.n + 1, self._at, event)
            fold(self._state, (recorded,))
            self.made.append(recorded)
