"""What a small model needs to know of a conversation, read from the messages of a request alone:
nothing is kept."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import msgspec

from ..types.labels import LOCAL
from ..types.messages import Audio, File, Image, Message, Text, ToolResult
from ..types.turn import MEMORIES_PREFIX, RUNTIME_PREFIXES
from . import encode
from .base import ContextMessage

EARLIER_EXCHANGES = 3
EARLIER_TOKENS = 120
EARLIER_CHARS = 4_000
"""So many exchanges are told from before this turn, each at most so long."""
_STAMP = re.compile(r"\[(\w+), (\d{4}-\d\d-\d\d) \d\d:\d\d\]")
_FACT = re.compile(r"^- #\d+ \([\d-]+\) (.+)$", re.MULTILINE)


class Move(msgspec.Struct, frozen=True):
    """A call of a tool."""

    tool: str
    arguments: dict[str, Any]


class Did(msgspec.Struct, frozen=True):
    """A step of this turn and what came of it."""

    move: Move
    result: str
    status: str

    @property
    def failed(self) -> bool:
        """The world is not as the step wanted it."""
        return self.status != "ok"

    @property
    def first_line(self) -> str:
        """What the result says first."""
        lines = [
            line
            for line in self.result.splitlines()
            if line.strip() and not line.startswith("[stderr]")
        ]
        return lines[0][:300] if lines else "it did not say why"


class ShimTurn(msgspec.Struct, frozen=True):
    """The request of a person, what was said before it, and the steps since. `key` is that of the
    request's message, `known` what memory found for it, `today` the weekday and date on which it
    was said."""

    request: str
    key: int
    earlier: tuple[tuple[str, str], ...] = ()
    did: tuple[Did, ...] = ()
    known: tuple[str, ...] = ()
    today: str = ""


Chat = list[tuple[str, str]]
"""(role, text) in turn."""


def read_turn(messages: Sequence[ContextMessage]) -> ShimTurn:
    """The turn that these messages end with. Hints of the runtime are for models that read them,
    and are left out."""
    start = max((i for i, shown in enumerate(messages) if person_text(shown.message)), default=-1)
    if start < 0:
        last = messages[-1] if messages else None
        return ShimTurn(last.message.text if last else "", last.n if last else 0)
    earlier = list[tuple[str, str]]()
    for shown in messages[:start]:
        message = shown.message
        text = person_text(message) if message.role == "user" else _answer_text(message)
        if text:
            earlier.append((message.role, text[:EARLIER_CHARS]))

    asked = messages[start]
    return ShimTurn(
        request=person_text(asked.message),
        key=asked.n,
        earlier=tuple(earlier),
        did=list_steps(messages[start + 1 :]),
        known=_parse_facts(asked.message),
        today=_parse_today(asked.message),
    )


def person_text(message: Message) -> str:
    """What a person said in it; '' for everything else. The date in front and the runtime's notes
    are its own."""
    if message.role != "user":
        return ""
    texts = list[str]()
    for part in message.parts:
        if isinstance(part, Image | Audio | File):
            texts.append(encode.render_placeholder(part))
        elif isinstance(part, Text) and not _is_note(part):
            texts.append(part.text)
    return "\n".join(texts).strip()


def _is_note(part: Text) -> bool:
    """Whether the runtime says it."""
    return part.label == LOCAL or part.text.startswith(RUNTIME_PREFIXES)


def _parse_today(message: Message) -> str:
    for part in message.parts:
        if not isinstance(part, Text) or part.label != LOCAL:
            continue
        if found := _STAMP.search(part.text):
            return f"{found[1]} {found[2]}"
    return ""


def _parse_facts(message: Message) -> tuple[str, ...]:
    """The facts that memory found for it, the best first."""
    texts = [
        part.text
        for part in message.parts
        if isinstance(part, Text) and part.text.startswith(MEMORIES_PREFIX)
    ]
    return tuple(match[1] for text in texts for match in _FACT.finditer(text))


def _answer_text(message: Message) -> str:
    return message.text if message.role == "assistant" and not message.calls else ""


def list_steps(messages: Sequence[ContextMessage]) -> tuple[Did, ...]:
    """The calls in these messages that have a result."""
    parts = [part for shown in messages for part in shown.message.parts]
    results = {part.call_id: part for part in parts if isinstance(part, ToolResult)}
    calls = [call for shown in messages for call in shown.message.calls]

    steps = list[Did]()
    for call in calls:
        result = results.get(call.id)
        if result is not None:
            move = Move(call.name, _decode_arguments(bytes(call.arguments)))
            steps.append(Did(move, result.text, result.status))
    return tuple(steps)


def _decode_arguments(written: bytes) -> dict[str, Any]:
    try:
        given = msgspec.json.decode(written)
    except (ValueError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {}


MAX_OBJECTS = 100


def parse_objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in what a model wrote, each from where one begins; it is tried at
    MAX_OBJECTS places."""
    decoder = json.JSONDecoder(strict=False)
    for match in islice(re.finditer(r"\{", text), MAX_OBJECTS):
        with suppress(ValueError, RecursionError):
            found, _ = decoder.raw_decode(text, match.start())
            yield found


def render_earlier(turn: ShimTurn) -> str:
    """What was said before this turn, for a prompt; '' for nothing."""
    said = ""
    pairs = list[str]()
    for role, text in turn.earlier:
        if role == "user":
            said = text
        elif said:
            asked = clip_text(said, EARLIER_TOKENS)
            answered = clip_text(text, EARLIER_TOKENS)
            pairs.append(f"Earlier the person said: {asked}\nand you answered: {answered}\n")
            said = ""
    return "".join(pairs[-EARLIER_EXCHANGES:])


def estimate_text_tokens(text: str) -> int:
    """About how many tokens `text` has, rather too many."""
    plain = sum(character.isascii() for character in text)
    return plain // 3 + (len(text) - plain) + 4


def clip_text(text: str, tokens: int) -> str:
    """`text`, cut in its middle to about so many tokens."""
    if estimate_text_tokens(text) <= tokens:
        return text
    share = max(20, len(text) * tokens // estimate_text_tokens(text))
    left_out = len(text) - share
    head = text[: share * 2 // 3]
    tail = text[-(share // 3) :]
    return f"{head}\n…({left_out} characters left out)…\n{tail}"
