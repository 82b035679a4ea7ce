"""A reply of any model, made fit for the log."""

from __future__ import annotations

import msgspec

from ..types.labels import LOCAL
from ..types.messages import Message, Part, Text, Thinking, ToolCall, clean_text


def sanitize_reply(message: Message, tools: bool) -> Message:
    """A reply as the log can hold it: every call with an id of its own and arguments that are JSON,
    clean text, and no call where no tools were offered."""
    parts: list[Part] = []
    seen: set[str] = set()
    for part in message.parts:
        if isinstance(part, Text):
            parts.append(Text(clean_text(part.text), LOCAL))
        elif isinstance(part, Thinking):
            parts.append(part)
        elif isinstance(part, ToolCall) and tools:
            call_id = part.id or "call"
            tries = 1
            while call_id in seen:
                tries += 1
                call_id = f"{part.id or 'call'}_{tries}"
            seen.add(call_id)
            parts.append(ToolCall(call_id, clean_text(part.name), _ensure_json(part.arguments)))
    return Message("assistant", tuple(parts))


def _ensure_json(arguments: msgspec.Raw) -> msgspec.Raw:
    """The arguments, as a JSON string where they are no JSON: the log holds them verbatim, and must
    stay readable."""
    try:
        msgspec.json.decode(
            arguments
        )  # and a hundred levels deeper than they will be when the log is read
        msgspec.json.decode(b"[" * 100 + bytes(arguments) + b"]" * 100)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return msgspec.Raw(msgspec.json.encode(bytes(arguments).decode(errors="replace")))
    return arguments
