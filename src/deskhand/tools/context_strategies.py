"""Plugins that shorten what a model is shown of a conversation, beside what Deskhand does itself.

Each is a plugin of its own: `plugin = SlidingWindowStrategy(window=40)` in a file of the plugins
folder. The log is never changed, and every call stays followed by its results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from ..types.labels import Label, join_labels
from ..types.messages import Message, Part, Text, ToolResult
from .hooks import Handler, HookContext, HookName
from .plugin import Plugin

MASKED = "[masked \N{EM DASH} call the tool again if needed]"
LINE_CHARS = 160


class ContextStrategy(Plugin):
    """What they share: `shorten` says what is shown instead."""

    def get_hooks(self) -> Mapping[HookName, Handler]:
        return {"before_llm_call": self._before_call}

    async def _before_call(self, context: HookContext) -> None:
        context.messages = self.shorten(context.messages)

    def shorten(self, messages: Sequence[Message]) -> list[Message]:
        """The messages that a model is shown instead of these."""
        raise NotImplementedError


class SlidingWindowStrategy(ContextStrategy):
    """Shows the last `window` messages, and those before them up to the last message of a person,
    so that no call loses its results."""

    def __init__(self, window: int = 20) -> None:
        self._window = window

    def shorten(self, messages: Sequence[Message]) -> list[Message]:
        return list(messages[_find_begin(messages, self._window) :])


class CompactionStrategy(ContextStrategy):
    """Where there are more than `threshold` messages, those before the last half of them are shown
    as one message with a line for each. No model is asked."""

    def __init__(self, threshold: int = 20) -> None:
        self._threshold = threshold

    def shorten(self, messages: Sequence[Message]) -> list[Message]:
        if len(messages) <= self._threshold:
            return list(messages)
        begin = _find_begin(messages, max(self._threshold // 2, 1))
        earlier = messages[:begin]
        if not earlier:
            return list(messages)
        lines = "\n".join(f"- {_describe(message)}" for message in earlier)
        label = join_labels(label for message in earlier for label in _labels(message.parts))
        said = Text(f"[{len(earlier)} earlier messages, in short]\n{lines}", label)
        return [Message("user", (said,)), *messages[begin:]]


class ObservationMaskingStrategy(ContextStrategy):
    """Shows the results of tools but the last `keep_recent` as one line each."""

    def __init__(self, keep_recent: int = 10) -> None:
        self._keep_recent = keep_recent

    def shorten(self, messages: Sequence[Message]) -> list[Message]:
        left = sum(isinstance(part, ToolResult) for each in messages for part in each.parts)
        left -= self._keep_recent
        shown = []
        for message in messages:
            parts: list[Part] = []
            for part in message.parts:
                if isinstance(part, ToolResult):
                    parts.append(_mask(part) if left > 0 else part)
                    left -= 1
                else:
                    parts.append(part)
            shown.append(replace(message, parts=tuple(parts)))
        return shown


def _mask(result: ToolResult) -> ToolResult:
    return replace(result, parts=(Text(MASKED, join_labels(_labels(result.parts))),))


def _labels(parts: Sequence[object]) -> Iterator[Label]:
    for part in parts:
        if isinstance(part, Text):
            yield part.label
        elif isinstance(part, ToolResult):
            yield from _labels(part.parts)


def _find_begin(messages: Sequence[Message], window: int) -> int:
    """Where the last `window` messages begin, or before: at a message of a person or a program."""
    begin = max(len(messages) - window, 0)
    while begin > 0 and messages[begin].role != "user":
        begin -= 1
    return begin


def _describe(message: Message) -> str:
    """Who said it, and its first words."""
    calls = [call.name for call in message.calls]
    said = message.text or "; ".join(
        part.text for part in message.parts if isinstance(part, ToolResult)
    )
    words = " ".join(said.split())[:LINE_CHARS]
    return ": ".join(filter(None, (message.role, words, ", ".join(calls))))
