"""Messages as openagent-core's clients read them: text, or the content blocks of Anthropic's
Messages API.

https://docs.anthropic.com/en/api/messages
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from ..types import events as e
from ..types.messages import Audio, File, Image, Message, Part, Text, Thinking, ToolCall, ToolResult
from .transcripts import with_transcripts

Redact = Callable[[str], str]
Block = dict[str, Any]


class ComputerMessage(msgspec.Struct):
    """A message of the conversation. `created_at` is ISO 8601."""

    role: str
    content: Any
    created_at: str


def content_of(message: Message, redact: Redact) -> str | list[Block]:
    """The text where there is nothing else, and all parts otherwise. What an assistant says is
    always parts."""
    plain = message.role == "user" and all(isinstance(part, Text) for part in message.parts)
    if plain:
        return redact(message.text)
    return [block_of(part, redact) for part in message.parts]


def block_of(part: Part, redact: Redact) -> Block:
    match part:
        case Text(text=text):
            return {"type": "text", "text": redact(text)}
        case Thinking(text=text):
            return {"type": "thinking", "thinking": redact(text)}
        case ToolCall():
            return {
                "type": "tool_use",
                "id": part.id,
                "name": part.name,
                "input": input_of(part, redact),
            }
        case ToolResult():
            return result_block(part.call_id, part.text, redact)
        case Image(name=name) | File(name=name):
            return {"type": "text", "text": redact(f"[{name or 'a picture'}]")}
        case Audio(transcript=transcript):
            return {"type": "text", "text": redact(transcript or "[a recording]")}


def result_block(call_id: str, text: str, redact: Redact) -> Block:
    return {"type": "tool_result", "tool_use_id": call_id, "content": redact(text)}


def input_of(call: ToolCall, redact: Redact) -> Any:
    """The arguments of a call."""
    return msgspec.json.decode(redact(bytes(call.arguments).decode()))


def messages_of(messages: Iterable[Message], redact: Redact) -> list[Block]:
    """All messages of a request: results of tools are the user's word there."""
    return [
        {
            "role": "user" if message.role == "tool" else message.role,
            "content": content_of(message, redact),
        }
        for message in messages
    ]


def messages_from_log(log: Iterable[e.Recorded], redact: Redact) -> list[ComputerMessage]:
    """The messages of a conversation, the results of tools that came in a row as one."""
    lines: list[ComputerMessage] = []
    results: list[Block] = []
    for recorded in with_transcripts(log):
        found = _result_blocks(recorded.event, redact)
        if found:
            if not results:
                lines.append(ComputerMessage("user", results, to_iso(recorded.at)))
            results += found
            continue
        line = _message_from_event(recorded, redact)
        if line is not None:
            lines.append(line)
            results = []
    return lines


def _result_blocks(event: e.AnyEvent, redact: Redact) -> list[Block]:
    match event:
        case e.ToolFinished(result=result):
            return [result_block(result.call_id, result.text, redact)]
        case e.CallClosed(call_id=call_id, reason=reason):
            return [result_block(call_id, reason, redact)]
        case e.HistoryMessage(message=Message(role="tool", parts=parts)):
            return [block_of(part, redact) for part in parts]
        case _:
            return []


def _message_from_event(recorded: e.Recorded, redact: Redact) -> ComputerMessage | None:
    at = to_iso(recorded.at)
    match recorded.event:
        case (
            e.MessageReceived(message=message)
            | e.HistoryMessage(message=message)
            | e.ModelReplied(message=message)
        ):
            return ComputerMessage(message.role, content_of(message, redact), at)
        case e.TurnEnded(said=said) if said:
            return ComputerMessage("assistant", [{"type": "text", "text": redact(said)}], at)
        case _:
            return None


def to_iso(seconds: float) -> str:
    """Seconds since the epoch as ISO 8601 in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()
