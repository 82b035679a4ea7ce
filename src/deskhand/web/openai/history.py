"""The client's messages as ours: what was said before, what is said now, and what its tools
gave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ...models.decode import normalize_arguments
from ...types.client import CLIENT_HISTORY_SOURCE, tool_source
from ...types.labels import LOCAL, Label
from ...types.messages import Image, Message, Part, Text, ToolCall, ToolResult
from ..errors import bad_request
from .pictures import Pictures
from .schema import ChatMessage

BLANK = "\n\n"
NO_RESULT = "the client gave no result for this call"
ASSISTANT = Label("untrusted", source=CLIENT_HISTORY_SOURCE)


class ClientHistory(msgspec.Struct, frozen=True):
    """`message` is what is said now: the last message of a person, or the last result where that is
    what the client ends with. `earlier` is all before it, `exchange` the part of that which
    `message` cannot do without. `results` are those that stand at the end, under the client's own
    ids, and `after` what a person said behind them. `stray` is the field that is wrong where the
    last message is a result of no call in `messages`, '' for none: it can only be taken where one
    of our own turns waits for it."""

    system: str
    earlier: tuple[Message, ...]
    message: Message
    exchange: tuple[Message, ...] = ()
    results: tuple[ToolResult, ...] = ()
    after: Message | None = None
    stray: str = ""


async def parse_history(messages: Sequence[ChatMessage], pictures: Pictures) -> ClientHistory:
    """Raises HttpProblem that names what cannot be taken."""
    system = [
        message_text(each, i)
        for i, each in enumerate(messages)
        if each.role in ("system", "developer")
    ]
    talk = [
        (i, each) for i, each in enumerate(messages) if each.role not in ("system", "developer")
    ]
    if not talk or talk[-1][1].role == "assistant":
        raise bad_request(
            "The last of `messages` is what the user says, or the result of a tool.",
            param="messages",
        )
    builder = _Builder(pictures)
    for i, each in talk:
        await builder.add(each, i)
    said = builder.close()
    if builder.blank or not (said or builder.stray):
        raise bad_request("The last of `messages` has no text.", param="messages")
    said = said or [Message("tool", tuple(builder.returned))]
    start = len(said) - 1
    while start and said[start].role == "tool":
        start -= 1
    return ClientHistory(
        system=BLANK.join(filter(str.strip, system)),
        earlier=tuple(said[:-1]),
        message=said[-1],
        exchange=tuple(said[start:-1]),
        results=tuple(builder.returned),
        after=Message("user", tuple(builder.after)) if builder.after else None,
        stray=builder.stray,
    )


def message_text(message: ChatMessage, place: int) -> str:
    """Raises HttpProblem for what is no text."""
    if not isinstance(message.content, list):
        return message.content or ""
    return "".join(
        _part_text(part, f"messages[{place}].content[{i}]")
        for i, part in enumerate(message.content)
    )


def _part_text(part: dict[str, Any], param: str) -> str:
    kind = part.get("type")
    text = part.get(kind) if kind in ("text", "refusal") else None
    if not isinstance(text, str):
        raise bad_request(f"A part of the type {str(kind)[:40]!r} is not taken here.", param=param)
    return text


class _Builder:
    """Makes our messages of the client's, one after the other. Every call gets its result, and no
    result is left that has no call: providers refuse either.

    `returned` are the results since the assistant's last message, `after` is what a person said
    behind them. `blank`: the last message of a person says nothing. `stray` is the field of the
    last message that names no call.
    """

    def __init__(self, pictures: Pictures) -> None:
        self._pictures = pictures
        self.returned: list[ToolResult] = []
        self.after: list[Part] = []
        self._said: list[Message] = []
        self._open: dict[str, ToolCall] = {}
        self._results: dict[str, ToolResult] = {}
        self._ids: set[str] = set()
        self._numbers: dict[str, int] = {}  # the last that was put behind an id
        self.blank = False
        self.stray = ""

    async def add(self, message: ChatMessage, place: int) -> None:
        self.blank = False
        self.stray = ""
        if message.role == "tool":
            self._add_result(message, place)
            return
        self._close_calls()
        if message.role == "assistant":
            self._add_assistant(message, place)
            return
        parts = await self._user_parts(message, place)
        self.blank = not any(isinstance(part, Image) or part.text.strip() for part in parts)
        if not self.blank:
            self._said.append(Message("user", tuple(parts)))
            self.after += parts if self.returned else []

    def close(self) -> list[Message]:
        self._close_calls()
        return self._said

    async def _user_parts(self, message: ChatMessage, place: int) -> list[Text | Image]:
        if not isinstance(message.content, list):
            return [Text(message.content or "")]
        parts: list[Text | Image] = []
        for i, part in enumerate(message.content):
            param = f"messages[{place}].content[{i}]"
            if part.get("type") == "image_url":
                parts.append(await self._pictures.load(part, param))
            elif parts and isinstance(before := parts[-1], Text):
                parts[-1] = Text(before.text + _part_text(part, param))
            else:
                parts.append(Text(_part_text(part, param)))
        return parts

    def _add_assistant(self, message: ChatMessage, place: int) -> None:
        self.returned = []
        self.after = []
        text = message_text(message, place) or message.refusal or ""
        parts: list[Part] = [Text(text, ASSISTANT)] if text.strip() else []
        for i, item in enumerate(message.tool_calls or ()):
            if item.id in self._open:
                said = f"Two calls of this message have the id {item.id[:100]!r}."
                raise bad_request(said, param=f"messages[{place}].tool_calls[{i}].id")
            call = ToolCall(
                self._new_id(item.id),
                item.function.name,
                normalize_arguments(item.function.arguments),
            )
            self._open[item.id] = call
            parts.append(call)
        if parts:
            self._said.append(Message("assistant", tuple(parts)))

    def _new_id(self, given: str) -> str:
        """Some clients count their calls anew in each message; here an id is unique in the whole
        conversation."""
        id_ = given
        while id_ in self._ids:
            self._numbers[given] = self._numbers.get(given, 1) + 1
            id_ = f"{given}_{self._numbers[given]}"
        self._ids.add(id_)
        return id_

    def _add_result(self, message: ChatMessage, place: int) -> None:
        given = message.tool_call_id or ""
        call = self._open.get(given)
        source = CLIENT_HISTORY_SOURCE if call is None else tool_source(call.name)
        parts = (Text(message_text(message, place), Label("untrusted", source=source)),)
        self.returned.append(ToolResult(given, parts))
        if call is None:
            self.stray = f"messages[{place}].tool_call_id"
        else:
            self._results[call.id] = ToolResult(call.id, parts)

    def _close_calls(self) -> None:
        for call in self._open.values():
            missing = ToolResult(call.id, (Text(NO_RESULT, LOCAL),), "interrupted")
            self._said.append(Message("tool", (self._results.get(call.id, missing),)))
        self._open = {}
        self._results = {}
