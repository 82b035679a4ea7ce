"""A conversation as pydantic-ai's messages."""

from __future__ import annotations

from typing import Any

import msgspec
from pydantic_ai import messages as theirs

from ..types.messages import (
    Audio,
    File,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    clean_text,
)
from . import encode
from .base import Request


async def convert_messages(
    request: Request, wire: str, pictures: bool
) -> list[theirs.ModelMessage]:
    """The messages of `request`. Reasoning that was filed under `wire` goes back as it came;
    `pictures`: the model takes some."""
    found: list[theirs.ModelMessage] = []
    asked: list[theirs.ModelRequestPart] = []
    calls = [call for shown in request.messages for call in shown.message.calls]
    names = {call.id: encode.safe_tool_name(call.name) for call in calls}

    def flush() -> None:
        if asked:
            found.append(theirs.ModelRequest(parts=list(asked)))
            asked.clear()

    for shown in request.messages:
        message = shown.message
        if message.role == "assistant":
            if parts := _convert_reply(message, wire):
                flush()
                found.append(theirs.ModelResponse(parts=parts))
            continue
        said: list[theirs.UserContent] = []
        for part in message.parts:
            if isinstance(part, ToolResult):
                content = await _convert_content(part.parts, request, pictures)
                asked.append(_convert_result(part, names.get(part.call_id, "unnamed"), content))
            elif isinstance(part, Text | Image | Audio | File):
                said += await _convert_content((part,), request, pictures)
        if said:
            asked.append(theirs.UserPromptPart(content=_join_texts(said)))
    flush()
    system = "\n\n".join(clean_text(block) for block in request.system if block)
    if system and found and isinstance(found[-1], theirs.ModelRequest):
        found[-1].instructions = system
    return found


def _convert_reply(message: Message, wire: str) -> list[theirs.ModelResponsePart]:
    """The parts of a reply. A seal (a Thinking without text) belongs to the part behind it."""
    parts: list[theirs.ModelResponsePart] = []
    seal: dict[str, Any] = {}
    said = False
    for part in message.parts:
        match part:
            case Thinking() if part.wire == wire and part.signature == "part":
                parts.append(theirs.ThinkingPart(**msgspec.json.decode(part.redacted)))
            case Thinking() if part.wire == wire and part.redacted:
                seal = msgspec.json.decode(part.redacted)
            case Text() if part.text.strip():
                parts.append(theirs.TextPart(content=clean_text(part.text), **seal))
                seal = {}
                said = True
            case ToolCall():
                name = encode.safe_tool_name(part.name)
                given = encode.safe_call_id(part.id)
                arguments = encode.encode_arguments(part).decode("utf-8", "replace")
                parts.append(
                    theirs.ToolCallPart(tool_name=name, args=arguments, tool_call_id=given, **seal)
                )
                seal = {}
                said = True
            case _:
                pass
    return parts if said else []


def _convert_result(
    result: ToolResult, name: str, content: list[theirs.UserContent]
) -> theirs.ToolReturnPart:
    if result.status != "ok":
        content = [f"[{result.status}]", *content]
    given = encode.safe_call_id(result.call_id)
    return theirs.ToolReturnPart(
        tool_name=name, content=_join_texts(content or ["[no output]"]), tool_call_id=given
    )


async def _convert_content(
    parts: tuple[Any, ...], request: Request, pictures: bool
) -> list[theirs.UserContent]:
    found: list[theirs.UserContent] = []
    for part in parts:
        shown = part
        if isinstance(part, Image) and pictures:
            shown = await encode.load_pixels(part, request.blob)
        match shown:
            case encode.Pixels(mime, data):
                found.append(theirs.BinaryContent(data=data, media_type=mime))
            case Text(text=text):
                found.append(clean_text(text))
            case other:
                found.append(encode.render_placeholder(other))
    return found


def _join_texts(content: list[theirs.UserContent]) -> Any:
    """A string where there is nothing but text."""
    texts = [piece for piece in content if isinstance(piece, str)]
    return "\n".join(texts) if len(texts) == len(content) else content
