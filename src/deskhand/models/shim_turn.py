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
    earlier = tuple(
        (shown.message.role, text[:EARLIER_CHARS])
        for shown in messages[:start]
        if (
            text := person_text(shown.message)
            if shown.message.role == "user"
            else _answer_text(shown.message)
        )
    )
    asked = messages[start]
    did = list_steps(messages[start + 1 :])
    told = asked.message
    return ShimTurn(
        person_text(told), asked.n, earlier, did, _parse_facts(told), _parse_today(told)
    )


def person_text(message: Message) -> str:
    """What a person said in it; '' for everything else. The date in front and the runtime's notes
    are its own."""
    if message.role != "user":
        return ""
    texts = [
        part.text if isinstance(part, Text) else encode.render_placeholder(part)
        for part in message.parts
        if isinstance(part, Image | Audio | File)
        or (
            isinstance(part, Text)
            and part.label != LOCAL
            and not part.text.startswith(RUNTIME_PREFIXES)
        )
    ]
    return "\n".join(texts).strip()


def _parse_today(message: Message) -> str:
    texts = [part.text for part in message.parts if isinstance(part, Text) and part.label == LOCAL]
    found = next((match for text in texts if (match := _STAMP.search(text))), None)
    return f"{found[1]} {found[2]}" if found else ""


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
    results = {
        part.call_id: part
        for shown in messages
        for part in shown.message.parts
        if isinstance(part, ToolResult)
    }
    return tuple(
        Did(
            Move(call.name, _decode_arguments(bytes(call.arguments))),
            results[call.id].text,
            results[call.id].status,
        )
        for shown in messages
        for call in shown.message.calls
        if call.id in results
    )


def _decode_arguments(written: bytes) -> dict[str, Any]:
    try:
        given = msgspec.json.decode(written)
    except (ValueError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {}


MAX_OBJECTS = 100


def parse_objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in what a model wrote, each from where one begins; it is tried at
    MOST_OBJECTS places."""
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
    return (
        f"{text[: share * 2 // 3]}\n…({len(text) - share} characters left "
        f"out)…\n{text[-(share // 3) :]}"
    )
