"""Runs a turn of the log again. The log is the recording: nothing is done a second time.

As long as a model would be asked exactly what it was asked then, its reply is the recorded one, and
the turn must come out byte for byte as it did. From the first request that is another one (another
model, prompt or skill) a model is asked for real, and its calls get the results that such calls got
in that turn. A tool is never run: a call that was not made then is told so, and reported.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from ..agent.asking import build_request
from ..agent.compact import make_compaction
from ..agent.profile import Agent, with_options
from ..agent.state import State, fold
from ..agent.step import next_step
from ..models.base import Model, Reply, Request
from ..models.message_variants import next_mask_point
from ..models.meter import UsageMeter
from ..models.usable import sanitize_reply
from ..models.window import fit_messages
from ..tools.deferred import schemas_of
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

ModelCaller = Callable[[str, Request], Awaitable[Reply]]
"""Asks `provider/name`. Raises ModelError."""


class Difference(msgspec.Struct, frozen=True):
    """Where the replay left the recording. `decision`: the runtime would go on otherwise now;
    `call`: a call without a recorded result; `unread`: a message that the replay did not come to;
    `stopped`: it ended before its end."""

    kind: Literal["decision", "call", "unread", "stopped"]
    words: str


class Replayed(msgspec.Struct, frozen=True):
    """What came of it. `same`: every event is byte for byte the recorded one. `asked` counts the
    calls of models that were made for real, `spent` is what they used; `requests` is what the
    models were asked in the recording."""

    recording: Recording
    was: Course
    now: Course
    same: bool
    differs: tuple[Difference, ...]
    events: tuple[e.Recorded, ...]
    asked: int
    spent: Usage
    requests: tuple[Request, ...]


class Trial(msgspec.Struct, frozen=True):
    """How to replay. `agent` drives the conversation now, `other` is the agent that is tried (None:
    nothing is). `model` is asked in place of the recorded one. `serve` gives what a tool would read
    that is tried itself, None for all else; `hide` takes secrets out of what is said. `meter`
    learns how models count, as it did then. `opened` opens `provider/name`; raises ModelError."""

    agent: Agent
    ask: ModelCaller
    open_model: Callable[[str], Model]
    other: Agent | None = None
    model: str = ""
    serve: Callable[[ToolCall], str | None] = lambda call: None
    hide: Callable[[e.AnyEvent], e.AnyEvent] = lambda event: event
    steps: int = REPLAY_STEPS
    tokens: int = REPLAY_TOKENS
    meter: UsageMeter = msgspec.field(default_factory=UsageMeter)


def _build_request(agent: Agent, state: State, model: str, trial: Trial, *, tools: bool) -> Request:
    """What this agent asks `provider/name` in this state. Raises ContextOverflow where it has no
    room for it."""
    bare = Request(model, (), (), schemas_of(agent.tools) if tools else ())
    return build_request(agent, state, bare, trial.meter.scale(model), trial.open_model)


def is_same_request(one: Request, two: Request) -> bool:
    """Whether a model is asked the same."""
    return _comparison_key(one) == _comparison_key(two)


def _comparison_key(request: Request) -> tuple[object, ...]:
    told = (request.model, request.system, request.messages, request.tools)
    return (*told, request.max_output_tokens, request.thinking, request.temperature)


async def replay_recording(recorded: Recording, trial: Trial) -> Replayed:
    """Run the turn again."""
    player = _Player(recorded, trial)
    at = player.follow()
    if at is not None:
        await player.continue_live(at)
    made = player.made
    was = recorded.tape
    same = [(r.n, r.at, e.encode_event(r.event)) for r in made] == [
        (r.n, r.at, e.encode_event(r.event)) for r in was
    ]
    known = {make_call_key(call) for call in list_calls(was)}
    return Replayed(
        recorded,
        make_course([r.event for r in was]),
        make_course([r.event for r in made], known),
        same,
        tuple(player.differs),
        tuple(made),
        player.asked,
        player.spent,
        tuple(player.requests),
    )


class _Results:
    """The results of a recorded turn by what was called, each with the options that it set. The
    same call gets them in the order in which they came, and the last one from then on."""

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
        """What came of it; nothing where it was not made."""
        key = make_call_key(call)
        if left := self._left.get(key):
            self._last[key] = left.pop(0)
        return tuple(
            replace(event, result=replace(event.result, call_id=call.id))
            if isinstance(event, e.ToolFinished)
            else event
            for event in self._last.get(key, ())
        )


def _is_set_by_tool(event: e.AnyEvent) -> bool:
    """Whether these options were set by the call whose result stands before them."""
    return isinstance(event, e.OptionsSet) and not event.inbox_id


_EXTERNAL_EVENTS = (
    e.MessageReceived,
    e.HistoryMessage,
    e.ResultsReturned,
    e.MessageEdited,
    e.Reacted,
    e.OptionsSet,
    e.Recalled,
)
"""What reaches a conversation from outside, whatever the model says."""


class _Player:
    """One replay. Time is that of the events, and stands still after them."""

    def __init__(self, recorded: Recording, trial: Trial) -> None:
        self._recorded = recorded
        self._trial = trial
        self._tape = recorded.tape
        self._state = fold(State(recorded.session, zone=trial.agent.zone), recorded.before)
        self._at = recorded.tape[0].at
        self.made, self.differs, self.requests = (
            list[e.Recorded](),
            list[Difference](),
            list[Request](),
        )
        self.asked, self.spent = 0, Usage()

    # As it was

    def follow(self) -> int | None:
        """Go along with the recording. Returns the place of the first reply that a model is to be
        asked for; None where all of it was recorded."""
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
        """The event as we make it now, where the runtime makes it; what came from outside is as it
        was."""
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
                said = (
                    event.said if agent.hooks is not None else said
                )  # a plugin may have had the last word
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
        """Note what this model is asked, and learn how it counts. Whether something else is to be
        tried on it."""
        trial = self._trial
        state = self._state
        model = event.model
        tools = "final" not in state.turn.hinted if state.turn is not None else True
        then = self._request_or_error(trial.agent, model, tools)
        if isinstance(then, Request):
            self.requests.append(then)
        elif isinstance(event, e.ModelReplied):
            self.differs.append(Difference("decision", f"{model} would not be asked now: {then}"))
        other = (
            self._request_or_error(trial.other, model, tools) if trial.other is not None else then
        )
        known = (
            isinstance(then, Request)
            and isinstance(other, Request)
            and is_same_request(then, other)
        )
        if trial.model or (trial.other is not None and not known):
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

    # As it would be

    async def continue_live(self, at: int) -> None:
        """Ask models for real from this place of the tape on."""
        then = self._tape[at].event
        model = self._trial.model or (
            then.model if isinstance(then, (e.ModelReplied, e.ModelFailed)) else ""
        )
        results = _Results(self._tape, at)
        given = self._list_inputs_after(at)
        while self._state.turn is not None:
            agent = self._make_agent(model)
            step = next_step(self._state, agent.limits, self._at)
            if not isinstance(step, EndTurn) and self._admit_next(
                given
            ):  # an answer that is there is given first
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
                    cut = (
                        fit_messages(messages, 1, budget)
                        if focus
                        else fit_messages(messages, budget)
                    )
                    self._record(make_compaction(self._state, cut, Condensed()))
                case EndTurn(reason=reason, said=said):
                    self._record(e.TurnEnded(reason, tuple(self._state.turn.answers), said))
                case _:
                    self._stop(
                        f"it came to a step that has no recorded outcome ({type(step).__name__})"
                    )
        for _, event in given:
            if isinstance(event, e.MessageReceived):
                words = (
                    "what was said meanwhile was not read: "
                    f"“{' '.join(event.message.text.split())[:80]}”"
                )
                self.differs.append(Difference("unread", words))

    def _make_agent(self, model: str) -> Agent:
        agent = with_options(self._trial.other or self._trial.agent, self._state.options)
        if not self._trial.model:
            return agent
        return replace(
            agent,
            models=(model,),
            limits=agent.limits_for(model) if agent.limits_for else agent.limits,
        )

    def _list_inputs_after(self, at: int) -> list[tuple[int, e.AnyEvent]]:
        """What came in after this place of the tape, each with how many replies there were before
        it."""
        found = list[tuple[int, e.AnyEvent]]()
        replies = 0
        for i, recorded in enumerate(self._tape):
            replies += isinstance(recorded.event, e.ModelReplied)
            if (
                i > at
                and isinstance(recorded.event, _EXTERNAL_EVENTS)
                and not _is_set_by_tool(recorded.event)
            ):
                found.append((replies, recorded.event))
        return found

    def _admit_next(self, given: list[tuple[int, e.AnyEvent]]) -> bool:
        """The next thing that had come in by so many replies, if no call is open."""
        replies = sum(isinstance(recorded.event, e.ModelReplied) for recorded in self.made)
        if not given or given[0][0] > replies or self._state.calls:
            return False
        self._record(given.pop(0)[1])
        return True

    async def _ask_model(self, agent: Agent, model: str, step: AskModel) -> bool:
        """One call of a model for real. False: the replay is over."""
        trial = self._trial
        spent = self.spent.input_tokens + self.spent.output_tokens
        if self.asked >= trial.steps or spent >= trial.tokens:
            what = (
                f"{trial.steps} calls of models"
                if self.asked >= trial.steps
                else f"{trial.tokens:,} tokens"
            )
            return self._stop(f"a replay may use {what}, and that is used up")
        self._record(*step.hints)
        state = self._state
        if due := next_mask_point(
            state.messages, state.masked_up_to, state.context_tokens, agent.limits.window
        ):
            self._record(e.Masked(due))
        self.asked += 1
        try:
            request = _build_request(agent, state, model, trial, tools=step.tools)
            reply = await trial.ask(model, request)
        except ModelError as error:
            return self._stop(f"{model} did not answer: {error}")
        self.spent += reply.usage
        said = e.ModelReplied(
            sanitize_reply(reply.message, step.tools), model, reply.finish, reply.usage
        )
        self._record(trial.hide(said))
        return True

    def _find_result(self, call: ToolCall, results: _Results) -> tuple[e.AnyEvent, ...]:
        if (text := self._trial.serve(call)) is not None:
            return (e.ToolFinished(ToolResult(call.id, (Text(text, LOCAL),))),)
        if found := results.take(call):
            return found
        name, arguments = make_call_key(call)
        self.differs.append(
            Difference("call", f"{name} {arguments} was not called then, so it has no result")
        )
        return (e.ToolFinished(ToolResult(call.id, (Text(NOT_RECORDED, LOCAL),), "error")),)

    def _stop(self, why: str) -> bool:
        self.differs.append(Difference("stopped", why))
        turn = self._state.turn
        self._record(
            e.TurnEnded(
                "failed", tuple(turn.answers) if turn else (), f"[the replay stopped: {why}]"
            )
        )
        return False

    def _record(self, *events: e.AnyEvent) -> None:
        for event in events:
            recorded = e.Recorded(0, self._recorded.session, self._state.n + 1, self._at, event)
            fold(self._state, (recorded,))
            self.made.append(recorded)
