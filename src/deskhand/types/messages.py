"""What people, models and tools say to each other: messages made of parts."""

from __future__ import annotations

from typing import Literal

import msgspec

from .labels import UNTRUSTED, Label


class Text(msgspec.Struct, frozen=True, tag="text", omit_defaults=True, gc=False):
    text: str
    label: Label = UNTRUSTED


class Image(msgspec.Struct, frozen=True, tag="image", omit_defaults=True, gc=False):
    """`blob` names the bytes in the blob store (`sha256:…`); they are never in the log."""

    blob: str
    mime: str
    name: str = ""
    label: Label = UNTRUSTED


class Audio(msgspec.Struct, frozen=True, tag="audio", omit_defaults=True, gc=False):
    """`transcript` is what was heard in it, once somebody listened."""

    blob: str
    mime: str
    transcript: str | None = None
    label: Label = UNTRUSTED


class File(msgspec.Struct, frozen=True, tag="file", omit_defaults=True, gc=False):
    """`shown` is what the model reads in its place: its text, or where it lies. The Door writes it,
    once."""

    blob: str
    name: str
    mime: str
    size_bytes: int
    label: Label = UNTRUSTED
    shown: str = ""

    @property
    def display_name(self) -> str:
        """Its name as people read it: printable, and no longer than a line."""
        return "".join(char for char in self.name if char.isprintable())[:120] or "unnamed"


class Thinking(msgspec.Struct, frozen=True, tag="thinking", omit_defaults=True, gc=False):
    """The model's reasoning, kept to be given back to the wire that made it, in its own form, and
    to no other.

    `signature` is the provider's seal over the text; `redacted` is reasoning that only the provider
    can read.
    """

    text: str
    wire: str
    signature: str = ""
    redacted: str = ""


class ToolCall(msgspec.Struct, frozen=True, tag="tool_call", gc=False):
    """`arguments` are the exact bytes that the model wrote, so that an approval binds what was
    shown.

    They are valid JSON; where the model wrote something else, they are that text as a JSON string.
    """

    id: str
    name: str
    arguments: msgspec.Raw


ResultStatus = Literal["ok", "error", "denied", "expired", "unasked", "interrupted", "superseded"]
"""`denied`: a person or a rule said no. `expired`: nobody answered in time. `unasked`: nobody who
takes part may allow it, and nobody else did."""
ResultPart = Text | Image | File


class ToolResult(msgspec.Struct, frozen=True, tag="tool_result", omit_defaults=True, gc=False):
    call_id: str
    parts: tuple[ResultPart, ...]
    status: ResultStatus = "ok"

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))


Part = Text | Image | Audio | File | Thinking | ToolCall | ToolResult
Role = Literal["user", "assistant", "tool"]


class Message(msgspec.Struct, frozen=True, gc=False):
    role: Role
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        parts = self.parts
        if len(parts) == 1 and isinstance(first := parts[0], Text):  # nearly every message
            return first.text
        return "".join([part.text for part in parts if isinstance(part, Text)])

    @property
    def own_text(self) -> str:
        """The words that whoever sent it wrote for us: not those that they passed on."""
        parts = self.parts
        if len(parts) == 1 and isinstance(first := parts[0], Text):
            return first.text if first.label.integrity != "untrusted" else ""
        own = [
            part for part in parts if isinstance(part, Text) and part.label.integrity != "untrusted"
        ]
        return "".join([part.text for part in own])

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        parts = self.parts
        if len(parts) == 1 and isinstance(parts[0], Text):
            return ()
        return tuple([part for part in parts if isinstance(part, ToolCall)])


class Usage(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Tokens of one model call. `input_tokens` counts everything that was read, the cached part
    included."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )


def clean_text(text: str) -> str:
    """`text` as every database, wire and terminal can hold it: no NUL, no half of a surrogate
    pair."""
    if text.isascii():
        return text.replace("\0", "\N{REPLACEMENT CHARACTER}") if "\0" in text else text
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")
