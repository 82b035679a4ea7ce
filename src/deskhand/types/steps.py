"""What an agent may owe next: call the model, run tools, shorten its context, end the turn, or
wait."""

from __future__ import annotations

from math import inf

import msgspec

from .events import AskedAside, Hinted, TurnReason
from .messages import Text
from .turn import OpenCall


class AskModel(msgspec.Struct, frozen=True):
    """Call `model` ('' for the first of the chain), not before `at`, telling it `hints` first.
    Without `tools` it can only answer in words."""

    hints: tuple[Hinted, ...] = ()
    tools: bool = True
    model: str = ""
    not_before: float = 0.0


class RunTools(msgspec.Struct, frozen=True):
    """Go on with these open calls, in order; none of them waits for a person."""

    calls: tuple[OpenCall, ...]


class Transcribe(msgspec.Struct, frozen=True):
    """Listen to the recording `blob`, which somebody has sent."""

    blob: str


class Compact(msgspec.Struct, frozen=True):
    """Shorten the context to this many tokens before the next call; 0 means to half of what it is.
    With a `focus` only the last exchange stays as it is, and of all others above all this."""

    budget: int
    focus: str = ""


class Condensed(msgspec.Struct, frozen=True):
    """What is told of messages that are no longer shown: in `parts` to the model, in a `note` to
    people. `asked` is the call of a model that it took."""

    parts: tuple[Text, ...] = ()
    note: str = ""
    asked: AskedAside | None = None


class EndTurn(msgspec.Struct, frozen=True):
    reason: TurnReason
    said: str = ""


class Wait(msgspec.Struct, frozen=True):
    """Nothing can be done before somebody answers, or until then (seconds since the epoch). That
    was `longest_s` away when it began: whatever the clock shows now, nobody waits for longer."""

    until: float
    longest_s: float = inf


Step = AskModel | RunTools | Transcribe | Compact | EndTurn | Wait
