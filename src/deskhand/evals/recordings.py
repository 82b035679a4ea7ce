"""The turns of a log, and how each of them went. The log itself is the recording."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from ..tools.aliases import TOOL_ALIASES, normalize_arguments
from ..tools.define import decode_json
from ..types import events as e
from ..types.errors import Refused
from ..types.messages import ToolCall, ToolResult, Usage


class Recording(msgspec.Struct, frozen=True):
    """A turn of the log, by its number in the session from 1 on. `before` are the events before it,
    `tape` its own. `rewound`: it ended because somebody rewound the session."""

    session: str
    number: int
    before: tuple[e.Recorded, ...]
    tape: tuple[e.Recorded, ...]
    rewound: bool = False

    @property
    def asked(self) -> str:
        """The text of the message that opened it."""
        event = self.tape[0].event
        return event.message.text if isinstance(event, e.MessageReceived) else ""


class Made(msgspec.Struct, frozen=True):
    """A tool call: its arguments as JSON, the same for all spellings, and its status. `known`: the
    recorded turn has a result for it."""

    tool: str
    arguments: str
    status: str = "open"
    known: bool = True


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn went. `reason` is why it ended, or `open` while it has not."""

    answer: str
    reason: str
    models: tuple[str, ...]
    calls: tuple[Made, ...]
    steps: int
    usage: Usage

    @property
    def tokens(self) -> int:
        return self.usage.input_tokens + self.usage.output_tokens


def split_recordings(session: str, log: Sequence[e.Recorded]) -> Iterator[Recording]:
    """The turns of a log, in order. Erased turns are left out."""
    start = -1
    number = 0
    for i, recorded in enumerate(log):
        if start < 0 and isinstance(recorded.event, e.MessageReceived):
            start = i
        elif start >= 0 and isinstance(recorded.event, e.TurnEnded):
            number += 1
            rewound = i + 1 < len(log) and isinstance(log[i + 1].event, e.Undone)
            yield Recording(session, number, tuple(log[:start]), tuple(log[start : i + 1]), rewound)
            start = -1
    if start >= 0:
        yield Recording(session, number + 1, tuple(log[:start]), tuple(log[start:]))


def select_recording(session: str, log: Sequence[e.Recorded], number: int = 0) -> Recording:
    """The turn with this number; 0 is the last. Raises Refused."""
    found = list(split_recordings(session, log))
    if not found:
        raise Refused(
            "no turn of this conversation can be replayed: nothing was said, or it has been erased"
        )
    if not 0 <= number <= len(found):
        raise Refused(f"there is no turn {number}: this conversation has turns 1 to {len(found)}")
    return found[number - 1]


def make_course(events: Sequence[e.AnyEvent], known: set[tuple[str, str]] | None = None) -> Course:
    """How a turn with these events went. `known` are the calls that have a recorded result; None
    means all."""
    pieces: list[str] = []
    said = ""
    reason = "open"
    steps = 0
    usage = Usage()
    models: dict[str, None] = {}
    calls: dict[tuple[int, str], Made] = {}
    for event in events:
        match event:
            case e.MessageReceived():
                pieces = []
            case e.ModelReplied(message=message, model=model):
                steps += 1
                usage += event.usage
                models[model] = None
                pieces = [] if message.calls else [*pieces, message.text]
                for call in message.calls:
                    key = make_call_key(call)
                    calls[steps, call.id] = Made(*key, known=known is None or key in known)
            case e.AskedAside():
                usage += event.usage
            case e.ToolFinished(result=ToolResult(call_id=call_id, status=status)):
                calls[steps, call_id] = replace(calls[steps, call_id], status=status)
            case e.CallClosed(call_id=call_id, status=status):
                calls[steps, call_id] = replace(calls[steps, call_id], status=status)
            case e.TurnEnded():
                said = event.said
                reason = event.reason
            case _:
                pass
    return Course(
        answer=said or "".join(pieces),
        reason=reason,
        models=tuple(models),
        calls=tuple(calls.values()),
        steps=steps,
        usage=usage,
    )


def make_call_key(call: ToolCall) -> tuple[str, str]:
    """Two calls with the same key are the same: our name of the tool, and its arguments as JSON
    under our names, sorted."""
    name = TOOL_ALIASES.get(call.name, call.name)
    try:
        given = decode_json(bytes(call.arguments))
        if isinstance(given, dict):
            given = normalize_arguments(name, given)
        return name, msgspec.json.encode(given, order="sorted").decode()
    except (ValueError, RecursionError, TypeError):
        return name, bytes(call.arguments).decode(errors="replace")


def list_calls(tape: Sequence[e.Recorded]) -> list[ToolCall]:
    return [
        call
        for each in tape
        if isinstance(each.event, e.ModelReplied)
        for call in each.event.message.calls
    ]
