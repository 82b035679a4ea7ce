"""A model that says what a script says: for tests, for the demonstration, and for a first run
without any key."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import anyio

from ..models.base import Item, Model, Reply, Request, TextDelta
from ..types.errors import ConfigError
from ..types.messages import Audio, Message, Text, ToolCall, Usage

Script = Callable[[Request], Message | Reply]
"""What to say to this request. May raise ModelError."""


class ScriptedModel:
    """Replies by rule. `latency_s` passes before the first piece; text comes in pieces of `piece`
    characters, and `pause_s` between them. `requests` has what it was asked, unless it is not to
    `remember` that."""

    def __init__(
        self,
        script: Script | None = None,
        *,
        latency_s: float = 0.0,
        piece: int = 16,
        pause_s: float = 0.0,
        remember: bool = True,
    ) -> None:
        self.script = script or echo
        self.latency_s = latency_s
        self.piece = piece
        self.pause_s = pause_s
        self.remember = remember
        self.requests: list[Request] = []

    async def reply(self, request: Request) -> AsyncIterator[Item]:
        if self.remember:
            self.requests.append(request)
        await anyio.sleep(self.latency_s)
        said = self.script(request)
        reply = (
            said
            if isinstance(said, Reply)
            else Reply(said, "calls" if said.calls else "stop", Usage(10, 10))
        )
        text = reply.message.text
        for start in range(0, len(text), self.piece):
            yield TextDelta(text[start : start + self.piece])
            if self.pause_s:
                await anyio.sleep(self.pause_s)
        yield reply


def say(text: str, *calls: ToolCall) -> Message:
    """An assistant message of this text and these calls."""
    return Message("assistant", (*((Text(text),) if text else ()), *calls))


def echo(request: Request) -> Message:
    """Says back what the person said last."""
    last = next(
        (shown.message for shown in reversed(request.messages) if shown.message.role == "user"),
        say(""),
    )
    written = [part.text for part in last.parts if isinstance(part, Text)]
    spoken = [part.transcript or "" for part in last.parts if isinstance(part, Audio)]
    said = [*written, *spoken]
    return say(
        f"You said: {''.join(said[1:] if len(said) > 1 else said)}"
    )  # the first piece is the date


def open_scripted(name: str, key: str = "", base_url: str = "") -> ScriptedModel:
    """The scripted model `scripted/name`. Raises ConfigError for a name that is not known."""
    from .tour import tour  # noqa: PLC0415 -- it says things with what is defined here

    scripts = {"echo": echo, "tour": tour}
    if name not in scripts:
        raise ConfigError(f"There is no scripted model {name!r}; there are: {', '.join(scripts)}.")
    return ScriptedModel(scripts[name], pause_s=0.02 if name == "tour" else 0.0, remember=False)


_: type[Model] = ScriptedModel
