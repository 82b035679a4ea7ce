"""What both wires do when they read a reply: lenient JSON, clean text, tool calls as the model
wrote them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from ..types.messages import ToolCall, clean_text
from .base import Request

T = TypeVar("T")


def make_event_decoder(kind: type[T]) -> Callable[[bytes], T]:
    """A decoder of stream events. It raises ValueError for what is no JSON or has other types."""
    fast = msgspec.json.Decoder(kind, strict=False).decode

    def decode(payload: bytes) -> T:
        try:
            return fast(payload)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        except ValueError:
            # Half of a surrogate pair is no text for msgspec, but some providers cut an emoji in
            # two.
            if b"\\u" not in payload:
                raise
        try:
            found: Any = json.loads(payload)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        return msgspec.convert(found, kind, strict=False)

    return decode


class TextCleaner:
    """Cleans the pieces of a text; a pair of surrogates that was cut in two is held back and
    joined."""

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    def feed(self, piece: str) -> str:
        if piece.isascii() and not self._half:
            return clean_text(piece)
        piece = self._half + piece
        self._half = ""
        if "\ud800" <= piece[-1:] <= "\udbff":
            self._half = piece[-1]
            piece = piece[:-1]
        return clean_text(piece.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))

    def close(self) -> str:
        """What is left: a half that never got its other half."""
        half = self._half
        self._half = ""
        return "\N{REPLACEMENT CHARACTER}" if half else ""


def encode_object(value: object) -> str:
    """JSON text of an object that came decoded. It may hold halves of surrogate pairs, which
    msgspec refuses."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def normalize_arguments(written: str | bytes) -> msgspec.Raw:
    """What the model wrote as arguments: its exact bytes if they are JSON, `{}` for nothing, else a
    JSON string."""
    if isinstance(written, str):
        # Halves of surrogate pairs are joined, or replaced.
        joined = written.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        written = joined.encode()
    data = written.strip()
    if not data:
        return msgspec.Raw(b"{}")
    try:
        msgspec.json.decode(data)
    except (ValueError, RecursionError):
        return msgspec.Raw(msgspec.json.encode(clean_text(data.decode("utf-8", "replace"))))
    return msgspec.Raw(data)


def make_calls(found: list[tuple[str, str, msgspec.Raw]], request: Request) -> list[ToolCall]:
    """Tool calls from (id, name, arguments), each with an id that is unique in the session."""
    messages = request.messages
    taken = set(request.encoded.look_through(messages).call_ids)
    base = messages[-1].n if messages else 0  # no other reply of this session is made from it
    calls = []
    for number, (given, name, arguments) in enumerate(found):
        name_id = clean_text(given)
        if not name_id or name_id in taken:
            name_id = f"call_{base}_{number}"
        while name_id in taken:
            name_id += "_"
        taken.add(name_id)
        calls.append(ToolCall(name_id, clean_text(name), arguments))
    return calls
