"""Scripts stand in the place of a model: each call of theirs is one step of a turn, so that it goes
through the same gate, journal and undo as a model's.

After a crash a script runs again from its beginning, and what it asked for before is answered from
the log: nothing is done twice. One that asks for something else then is ended, with what it had
done.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

import anyio
import msgspec

from ..assembly.host import Host
from ..models.base import ContextMessage, Item, Reply, Request, TextDelta
from ..store.queries import find_subagent
from ..subagents.kinds import MACRO, MAX_CALLS
from ..types.events import CallClosed, ModelReplied, Recorded, ToolFinished, TurnEnded
from ..types.labels import LOCAL
from ..types.messages import Message, Text, ToolCall, ToolResult, Usage
from ..types.subagents import SCRIPT_MODEL
from .script_process import CallResult, RunningScript, ScriptMessage, WantedCall

LOOK_S = 10.0
"""So often it is looked whether a script is still wanted."""
SAME_CALLS = 4
TURNS = 8
MAX_DONE = 20
"""So many of the calls that were made are named when a script was interrupted."""


class MadeCall(msgspec.Struct, frozen=True):
    """A call that a script has made, and what came of it."""

    name: str
    arguments: Any
    result: CallResult


class Scripts:
    """The scripts that run in this process, by their conversations."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._running: dict[str, RunningScript] = {}
        self._wanted: list[RunningScript] = []
        self._poke = anyio.Event()
        self._is_listening = False

    listens_to = (TurnEnded,)

    def on_event(self, recorded: Recorded) -> None:
        """See `gateway.publisher.Listener`. A turn that is over needs its script no more."""
        if script := self._running.pop(recorded.session, None):
            script.stop()
            self._listen(wanted=bool(self._running))

    async def run(self) -> None:
        """Run scripts until cancelled."""
        try:
            async with anyio.create_task_group() as tasks:
                while True:
                    self._poke = anyio.Event()
                    while self._wanted:
                        tasks.start_soon(self._wanted.pop().run, self._host.sandbox)
                    self._stop_left_behind()
                    with anyio.move_on_after(LOOK_S if self._running else None):
                        await self._poke.wait()
        finally:
            self._running.clear()
            self._listen(wanted=False)

    def _listen(self, *, wanted: bool) -> None:
        """Only while a script runs, so that no other turn costs more."""
        if wanted and not self._is_listening:
            self._host.publisher.join(self)
        elif self._is_listening and not wanted:
            self._host.publisher.leave(self)
        self._is_listening = wanted

    def _stop_left_behind(self) -> None:
        """Stop those whose conversation was erased, has ended, or is driven elsewhere now."""
        for session in list(self._running):
            task = find_subagent(self._host.store, session)
            if task is None or not task.is_live or not self._host.dispatch.owns(session):
                self._running.pop(session).stop()
        self._listen(wanted=bool(self._running))

    def open(self, name: str) -> ScriptModel:
        """What replies for the script of the conversation in this name."""
        return ScriptModel(self, name.removeprefix(SCRIPT_MODEL))

    async def next_step(
        self, session: str, request: Request
    ) -> tuple[ScriptMessage, list[MadeCall]]:
        """What the script of this conversation asks for next, and the calls that it has made so
        far."""
        made = list_calls(await self._host.store.events(session), request.messages)
        script = self._running.get(session) or self._start(session, request)
        while (asked := await script.wait()).calls and script.answered < len(made):
            earlier = made[script.answered : script.answered + len(asked.calls)]
            if why := _find_difference(asked.calls, earlier):
                script.stop()
                return ScriptMessage(said=asked.said, failed=why), made
            await script.answer([each.result for each in earlier])
        if asked.calls and (why := self._find_excess(session, asked.calls, made)):
            script.stop()
            return ScriptMessage(said=asked.said, failed=why), made
        return asked, made

    def _find_excess(
        self, session: str, wanted: tuple[WantedCall, ...], made: list[MadeCall]
    ) -> str:
        if len(made) + len(wanted) > MAX_CALLS:
            return f"it may make at most {MAX_CALLS} calls"
        task = find_subagent(self._host.store, session)
        # A macro has an end, and may press Tab ten times.
        is_macro = task is not None and task.request.kind == MACRO
        return "" if is_macro else _find_circle(wanted, made)

    def _start(self, session: str, request: Request) -> RunningScript:
        task = find_subagent(self._host.store, session)
        tools = {tool.name: list(tool.parameters.get("properties", {})) for tool in request.tools}
        script = RunningScript(task.request.task if task is not None else "", tools)
        self._running[session] = script
        self._listen(wanted=True)
        self._wanted.append(script)
        self._poke.set()
        return script


def list_calls(events: Iterable[Recorded], messages: Iterable[ContextMessage]) -> list[MadeCall]:
    """The calls of a conversation that have results, in their order. The latest may not be on disk
    yet: they stand in the messages of a request."""
    results: dict[str, CallResult] = {}
    calls: dict[str, ToolCall] = {}
    for recorded in events:
        match recorded.event:
            case ModelReplied(message=message):
                calls |= {call.id: call for call in message.calls}
            case ToolFinished(result=result):
                results[result.call_id] = CallResult(result.status, result.text)
            case CallClosed(call_id=call_id, status=status, reason=reason):
                results[call_id] = CallResult(status, reason)
            case _:
                pass
    for shown in messages:
        calls |= {call.id: call for call in shown.message.calls}
        for part in shown.message.parts:
            if isinstance(part, ToolResult) and part.call_id not in results:
                results[part.call_id] = CallResult(part.status, part.text)
    return [
        MadeCall(call.name, msgspec.json.decode(call.arguments), results[id_])
        for id_, call in calls.items()
        if id_ in results
    ]


class ScriptModel:
    """Implements `models.base.Model` for one conversation: it replies with the calls that the
    script asks for, and in the end with what it has printed."""

    def __init__(self, scripts: Scripts, session: str) -> None:
        self._scripts = scripts
        self._session = session

    async def reply(self, request: Request) -> AsyncIterator[Item]:
        asked, made = await self._scripts.next_step(self._session, request)
        if asked.calls:
            calls = tuple(_make_call(len(made) + n, call) for n, call in enumerate(asked.calls, 1))
            yield Reply(Message("assistant", calls), "calls", Usage())
            return
        text = render_end(asked, made)
        yield TextDelta(text)
        yield Reply(Message("assistant", (Text(text, LOCAL),)), "stop", Usage())


def _make_call(number: int, wanted: WantedCall) -> ToolCall:
    arguments = msgspec.Raw(msgspec.json.encode(wanted.arguments))
    return ToolCall(f"s{number}", wanted.name, arguments)


def render_end(asked: ScriptMessage, made: list[MadeCall]) -> str:
    """What is handed back of a script: what it has printed; where it failed, why, and what it had
    done until then."""
    number = f"{len(made)} call{'s' * (len(made) != 1)}"
    if not asked.failed:
        return asked.said.strip() or f"[the script printed nothing; it made {number}]"
    lines = [f"- {each.name}: {each.result.status}" for each in made[-MAX_DONE:]]
    told = [f"[the script failed: {asked.failed}; before that it made {number}]", *lines]
    return "\n".join([*filter(None, [asked.said.strip()]), *told])


def _find_circle(wanted: tuple[WantedCall, ...], made: list[MadeCall]) -> str:
    """Why a script may not go on with these calls, as it goes round in circles; '' where it
    may."""
    marks = [_make_mark(each) for each in made[-TURNS + 1 :]]
    first = (wanted[0].name, msgspec.json.encode(wanted[0].arguments))
    last = marks[-SAME_CALLS:]
    if len(last) == SAME_CALLS and set(last) == {last[0]} and last[0][:2] == first:
        return f"it has made the call of {wanted[0].name} with the same result {SAME_CALLS} times"
    in_turns = len(marks) == TURNS - 1 and marks == [marks[i % 2] for i in range(TURNS - 1)]
    if in_turns and marks[1][:2] == first:
        return f"{marks[0][0]} and {marks[1][0]} have taken turns with the same results"
    return ""


def _make_mark(call: MadeCall) -> tuple[str, bytes, str]:
    return call.name, msgspec.json.encode(call.arguments), call.result.text


def _find_difference(wanted: tuple[WantedCall, ...], made: list[MadeCall]) -> str:
    """Why a script that runs again is not the same as before; '' where it is."""
    same = len(wanted) == len(made) and all(
        (call.name, call.arguments) == (before.name, before.arguments)
        for call, before in zip(wanted, made, strict=False)
    )
    if same:
        return ""
    return (
        "it was interrupted, and asked for something else when it ran again: look at what it has "
        "done, and write one for what is left"
    )
