"""What a model call is: one request in, pieces of text out, and the whole reply last."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from ..types.events import Finish
from ..types.messages import Image, Message, ToolCall, Usage

ThinkingLevel = Literal["off", "low", "medium", "high", "max"]


class ToolSchema(msgspec.Struct, frozen=True, gc=False):
    """A tool as the model sees it. `parameters` is a JSON schema of type object without a top-level
    `$ref`, `size` the characters of all of it; 0 where nobody has counted them yet."""

    name: str
    description: str
    parameters: dict[str, Any]
    size: int = 0


def make_tool_schema(name: str, description: str, parameters: dict[str, Any]) -> ToolSchema:
    """The schema, with its size."""
    size = len(description) + len(msgspec.json.encode(parameters)) + 40
    return ToolSchema(name, description, parameters, size)


Variant = Literal["full", "no_images", "one_line"]


class ContextMessage(msgspec.Struct, frozen=True, gc=False):
    """A message as a request shows it: the message of event `n`, in this variant. Together they
    name its bytes within the session for ever, so that a wire may keep them once they are
    encoded."""

    n: int
    message: Message
    variant: Variant = "full"


class Start(msgspec.Struct, frozen=True):
    """What a wire made of the first messages of a request, in one piece. `tail` is what it must
    know to go on."""

    messages: tuple[ContextMessage, ...]
    data: bytes
    tail: bool | None = None


class Contents(msgspec.Struct):
    """What some messages hold: the ids of all calls, and whether somebody has sent a picture. One
    that a tool gave does not count."""

    messages: tuple[ContextMessage, ...] = ()
    call_ids: set[str] = msgspec.field(default_factory=set)
    has_pictures: bool = False


class Encoded:
    """A session's memory of what wires made of its messages: each by (wire, n, variant), and by
    wire all that came first, so that a long conversation costs the next call no more than a short
    one. `tokens` is how long each is, by (n, variant)."""

    def __init__(self) -> None:
        self.messages: dict[tuple[str, int, Variant], bytes] = {}
        self.prefixes: dict[str, Start] = {}
        self.tokens: dict[tuple[int, Variant], int] = {}
        self._contents = Contents()

    def look_through(self, messages: tuple[ContextMessage, ...]) -> Contents:
        """What these messages hold. Those that the last ones began with are not looked at again."""
        found = self._contents
        if messages[: len(found.messages)] != found.messages:
            found = self._contents = Contents()
        for shown in messages[len(found.messages) :]:
            for part in shown.message.parts:
                if isinstance(part, ToolCall):
                    found.call_ids.add(part.id)
                elif isinstance(part, Image):
                    found.has_pictures = True
        found.messages = messages
        return found

    def find_prefix(self, wire: str, messages: tuple[ContextMessage, ...]) -> Start:
        """The longest beginning of `messages` that is known in one piece; an empty one if they
        begin otherwise."""
        known = self.prefixes.get(wire, _EMPTY_START)
        return known if messages[: len(known.messages)] == known.messages else _EMPTY_START

    def clear(self) -> None:
        self.messages.clear()
        self.prefixes.clear()
        self.tokens.clear()
        self._contents = Contents()


_EMPTY_START = Start((), b"")


class Request(msgspec.Struct, frozen=True):
    """One call.

    `system` are blocks of the system prompt, the stable ones first; only the last may change from
    call to call. `messages` alternate properly: every tool call is followed by its result.
    `encoded` is the session's memory of encoded messages: it belongs to the caller, who drops it
    with the session. `blob` reads the bytes of an image. `max_output_tokens` None means the model's
    own maximum. `extra` is a JSON object whose fields are put into the body as they are, for what
    only one wire has (a response_format, a grammar). `form` is the JSON schema of the answer, where
    it is to have one; who asks says so in words as well, since few wires force it. `strict_form`:
    it may be enforced word by word, as OpenAI's strict mode does.

    `must_call` is the tool that has to be called, `*` for any, '' for none. `one_call`: not several
    at once. `top_p`, `seed` and `stop` are sent where the wire has them; `stop` is no promise, so
    who asks cuts the reply as well.
    """

    model: str
    system: tuple[str, ...]
    messages: tuple[ContextMessage, ...]
    tools: tuple[ToolSchema, ...] = ()
    max_output_tokens: int | None = None
    thinking: ThinkingLevel = "off"
    temperature: float | None = None
    encoded: Encoded = msgspec.field(default_factory=Encoded)
    blob: Callable[[str], Awaitable[bytes]] | None = None
    extra: msgspec.Raw | None = None
    form: dict[str, Any] | None = None
    strict_form: bool = False
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    must_call: str = ""
    one_call: bool = False


class TextDelta(msgspec.Struct, frozen=True, gc=False):
    text: str


class ThinkingDelta(msgspec.Struct, frozen=True, gc=False):
    text: str


class Reply(msgspec.Struct, frozen=True):
    """The whole reply: an assistant message whose text is exactly the text deltas joined."""

    message: Message
    finish: Finish
    usage: Usage = Usage()


Item = TextDelta | ThinkingDelta | Reply


class Model(Protocol):
    """Something that replies. Every implementation passes `deskhand.testing.model_suite`."""

    def reply(self, request: Request) -> AsyncIterator[Item]:
        """Yield deltas as they come, then exactly one Reply, last.

        Raises only ModelError and its kin. Closing the iterator early ends the call and frees its
        connection. A model never retries by itself and never waits for longer than its limits: the
        agent decides what comes next.
        """
        ...


def is_selective(model: Model) -> bool:
    """Whether it takes of a request what it has room for, so that none is too long for it: its
    `selective` says so."""
    return bool(getattr(model, "selective", False))


@runtime_checkable
class Closable(Protocol):
    """A model with connections of its own, which whoever opened it frees at the end."""

    async def aclose(self) -> None: ...
