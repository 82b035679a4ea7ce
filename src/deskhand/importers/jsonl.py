"""A conversation as JSON lines of role and content, as other systems keep them: written from the
log, read into it.

A line has `role` (user, assistant, tool, or meta for what a reply used), `content`, `timestamp`
(ISO 8601, UTC), and for tools `tool_call_id` and `tool_name`. Our own lines of the assistant also
have `tool_calls`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any, Literal

import msgspec

from ..types.errors import ConfigError
from ..types.events import (
    AnyEvent,
    CallClosed,
    Compacted,
    HistoryMessage,
    MessageReceived,
    ModelReplied,
    Recorded,
    ToolFinished,
    TurnEnded,
)
from ..types.identity import Address, Principal
from ..types.labels import Label
from ..types.messages import Message, Text, ToolCall, ToolResult, Usage, clean_text

MISSING_START = "[the beginning of this conversation is not in the file]"
UNKNOWN_MODEL = "imported/unknown"
_USAGE_KEYS = {
    "input_tokens": ("input_tokens", "prompt_tokens"),
    "output_tokens": ("output_tokens", "completion_tokens"),
    "cached_tokens": ("cached_tokens",),
    "cache_write_tokens": ("cache_write_tokens",),
}
Commits = list[tuple[float, tuple[AnyEvent, ...]]]
"""(time, events) of each commit."""


class JsonlCall(msgspec.Struct, frozen=True):
    """A call as a line of the assistant has it; `arguments` is JSON."""

    id: str
    name: str
    arguments: str = "{}"


class JsonlRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the file. `content` may also be parts, of which the texts count, or an object.
    `by` names who spoke, where that is known, `before` is what was put before their words, by
    nobody known."""

    role: str
    content: Any = ""
    timestamp: str | float | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    tool_calls: Any = None
    by: str = ""
    before: str = ""


# ---------------------------------------------------------------------- out


def export_lines(events: Iterable[Recorded]) -> Iterator[dict[str, Any]]:
    """The conversation as lines, in order."""
    names: dict[str, str] = {}
    for recorded in events:
        when = {"timestamp": datetime.fromtimestamp(recorded.at, UTC).isoformat()}
        match recorded.event:
            case MessageReceived(message=message):
                yield {"role": "user", "content": message.text, **when}
            case HistoryMessage(message=Message(role="tool", parts=parts)):
                for part in parts:
                    if isinstance(part, ToolResult):
                        yield _tool_line(part.call_id, names, part.text, when)
            case HistoryMessage(message=message):
                yield _message_line(message, names, when)
            case ModelReplied(message=message, usage=usage, model=model):
                yield _message_line(message, names, when)
                used = {name: getattr(usage, name) for name in _USAGE_KEYS}
                yield {"role": "meta", "content": {"model": model, "usage": used}, **when}
            case ToolFinished(result=result):
                yield _tool_line(result.call_id, names, result.text, when)
            case CallClosed(call_id=call_id, reason=reason):
                yield _tool_line(call_id, names, reason, when)
            case TurnEnded(said=said) if said:
                yield {"role": "assistant", "content": said, **when}
            case _:
                pass


def before_compaction(events: Sequence[Recorded], number: int) -> list[Recorded]:
    """The log as it was when the conversation was compacted for this time: 1 is the first, -1 the
    last.

    Raises ConfigError where it was not compacted so often.
    """
    places = [i for i, recorded in enumerate(events) if _is_compaction(recorded.event)]
    if not number or abs(number) > len(places):
        often = f"{len(places)} times" if len(places) != 1 else "once"
        raise ConfigError(
            f"this conversation was compacted {often}: there is no compaction {number}"
        )
    return list(events[: places[number - 1 if number > 0 else number]])


def _is_compaction(event: AnyEvent) -> bool:
    """Whether the model is shown less from here on. What goes back or branches off writes the same
    event, and leaves nothing out."""
    return isinstance(event, Compacted) and event.dropped > 0


def _message_line(message: Message, names: dict[str, str], when: dict[str, str]) -> dict[str, Any]:
    """What a person or the model said; the `names` of its calls are remembered for their
    results."""
    names |= {call.id: call.name for call in message.calls}
    calls = [
        JsonlCall(each.id, each.name, bytes(each.arguments).decode()) for each in message.calls
    ]
    made = {"tool_calls": msgspec.to_builtins(calls)} if calls else {}
    return {"role": message.role, "content": message.text, **when, **made}


def _tool_line(
    call_id: str, names: dict[str, str], text: str, when: dict[str, str]
) -> dict[str, Any]:
    return {
        "role": "tool",
        "content": text,
        **when,
        "tool_call_id": call_id,
        "tool_name": names.get(call_id, ""),
    }


# ---------------------------------------------------------------------- in


def read_lines(data: bytes, name: str) -> list[JsonlRecord]:
    """The lines of a file. Raises ConfigError that names the line."""
    found = []
    for number, raw in enumerate(data.decode(errors="replace").split("\n"), 1):
        if not raw.strip():
            continue
        try:
            found.append(msgspec.convert(json.loads(raw), JsonlRecord))
        except (ValueError, RecursionError) as error:
            raise ConfigError(
                f"{name!r}, line {number}: {error}; a line is an object with role and content"
            ) from error
    if not any(line.role in ("user", "assistant") for line in found):
        raise ConfigError(
            f"{name!r} holds no message: its lines have the roles user, assistant, tool and meta"
        )
    return found


class JsonlReader:
    """Makes the events of a conversation from its lines. The same lines always make the same
    events.

    What people and the model said becomes content of this machine, what tools returned stays
    untrusted: nobody knows any more where it came from. `voices` are those of whom it is known, by
    `JsonlRecord.by`: then it is their word.
    """

    def __init__(
        self,
        principal: Principal,
        address: Address,
        source: str,
        now: float,
        voices: Mapping[str, tuple[Principal, Label]] | None = None,
    ) -> None:
        self._principal = principal
        self._address = address
        self._at = now
        self._voices = voices or {}
        self._said, self._read = (
            Label("tool_local", source=source),
            Label("untrusted", source=source),
        )
        self._commits: Commits = []
        self._turn = self._answered = False
        self._open: list[str] = []
        self.left_out = 0

    def make_commits(self, lines: Sequence[JsonlRecord]) -> Commits:
        """What is to be written, in order."""
        self._at = next((at for line in lines if (at := _parse_time(line)) is not None), self._at)
        for number, line in enumerate(lines):
            at = _parse_time(line)
            self._at = self._at if at is None else at
            match line.role:
                case "user":
                    self._add_user_message(_content_text(line.content), line)
                case "assistant":
                    self._add_reply(line, lines[number + 1 :])
                case "tool":
                    self._add_tool_result(line)
                case "meta":
                    pass
                case _:
                    self.left_out += 1
        self._end_turn()
        return self._commits

    def _add_commit(self, *events: AnyEvent) -> None:
        self._commits.append((self._at, events))

    def _add_user_message(self, text: str, line: JsonlRecord | None = None) -> None:
        self._close_calls("interrupted")
        if self._turn and self._answered:
            self._end_turn()
        self._turn = True
        self._answered = False
        principal, label = self._voices.get(line.by if line else "", (self._principal, self._said))
        before = (
            (Text(f"{clean_text(line.before)}\n\n", self._read),) if line and line.before else ()
        )
        message = Message("user", (*before, Text(clean_text(text), label)))
        self._add_commit(MessageReceived(0, principal, self._address, message))

    def _add_reply(self, line: JsonlRecord, after: Sequence[JsonlRecord]) -> None:
        """A reply, with the calls that it or the results behind it name."""
        if not self._turn:
            self._add_user_message(MISSING_START)
        self._close_calls("interrupted")
        calls = {call.id: call for call in _parse_calls(line.tool_calls)}
        after = list(takewhile(lambda each: each.role not in ("user", "assistant"), after))
        for each in after:
            if each.role == "tool":
                calls.setdefault(
                    _call_id(each), JsonlCall(_call_id(each), each.tool_name or "unknown")
                )
        text = _content_text(line.content)
        parts = (
            *((Text(clean_text(text), self._said),) if text else ()),
            *map(_make_tool_call, calls.values()),
        )
        model, usage = _find_usage(after)
        finish: Literal["calls", "stop"] = "calls" if calls else "stop"
        self._add_commit(ModelReplied(Message("assistant", parts), model, finish, usage))
        self._open = list(calls)
        self._answered = not calls

    def _add_tool_result(self, line: JsonlRecord) -> None:
        if _call_id(line) not in self._open:  # nobody called it
            self._add_reply(JsonlRecord("assistant"), (line,))
        self._open.remove(_call_id(line))
        text = Text(clean_text(_content_text(line.content)), self._read)
        self._add_commit(ToolFinished(ToolResult(_call_id(line), (text,))))

    def _close_calls(self, status: Literal["interrupted"]) -> None:
        if self._open:
            self._add_commit(
                *(
                    CallClosed(call_id, status, "its result is not in the file")
                    for call_id in self._open
                )
            )
        self._open = []

    def _end_turn(self) -> None:
        self._close_calls("interrupted")
        if self._turn:
            self._add_commit(TurnEnded("done" if self._answered else "stopped", (0,)))
        self._turn = False


def _call_id(line: JsonlRecord) -> str:
    return clean_text(line.tool_call_id or f"call_{line.tool_name or 'unknown'}")


def _parse_calls(given: Any) -> Iterator[JsonlCall]:
    """The calls of a line, as we write them, or with `function` around name and arguments."""
    for each in given if isinstance(given, list) else ():
        if isinstance(each, dict):
            function = each.get("function")
            inner = function if isinstance(function, dict) else each
            arguments = inner.get("arguments", "{}")
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            name = clean_text(str(inner.get("name") or "unknown"))
            yield JsonlCall(
                clean_text(str(each.get("id") or f"call_{name}")), name, clean_text(text)
            )


def _make_tool_call(call: JsonlCall) -> ToolCall:
    """The call as the log can hold it: what is no JSON, or nested too deeply to be read again,
    becomes a string."""
    raw = call.arguments.encode()
    try:
        msgspec.json.decode(raw)
        msgspec.json.decode(b"[" * 100 + raw + b"]" * 100)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raw = msgspec.json.encode(call.arguments)
    return ToolCall(call.id, call.name, msgspec.Raw(raw))


def _content_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(
            _content_text(part.get("text", "")) if isinstance(part, dict) else _content_text(part)
            for part in content
        )
    return "" if content is None else json.dumps(content, ensure_ascii=False)


def _parse_time(line: JsonlRecord) -> float | None:
    """When it was said, in seconds since the epoch; without a zone it counts as UTC."""
    if isinstance(line.timestamp, str):
        try:
            at = datetime.fromisoformat(line.timestamp)
            return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return None
    return line.timestamp if line.timestamp and 0 < line.timestamp < 1e11 else None


def _find_usage(after: Sequence[JsonlRecord]) -> tuple[str, Usage]:
    """The model and the tokens of a reply, by the meta line behind it."""
    line = next((each for each in after if each.role == "meta"), None)
    content = line.content if line is not None else {}
    if isinstance(content, str):
        try:
            content = json.loads(content)
        except (ValueError, RecursionError):
            content = {}
    if not isinstance(content, dict):
        return UNKNOWN_MODEL, Usage()
    usage = content.get("usage")
    model = content.get("model")
    usage = usage if isinstance(usage, dict) else content
    found = {ours: _first_count(usage, theirs) for ours, theirs in _USAGE_KEYS.items()}
    return clean_text(model) if isinstance(model, str) and model else UNKNOWN_MODEL, Usage(**found)


def _first_count(usage: dict[str, Any], names: Iterable[str]) -> int:
    found = next((usage[name] for name in names if isinstance(usage.get(name), int)), 0)
    return max(int(found), 0)
