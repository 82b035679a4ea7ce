"""What a tool is: a specification that policy can judge, and a function that does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec

from ..types.clock import Clock, Ids
from ..types.commit import Change, Outgoing
from ..types.effects import Effect, Replay
from ..types.identity import Address, Principal
from ..types.labels import LOCAL, Label
from ..types.messages import ResultPart, ResultStatus, Text


class Spec(msgspec.Struct, frozen=True):
    """What the model and the gate know of a tool. `parameters` is its JSON schema; `reads` labels what it returns.

    `alone`: it must not run beside other calls of the same reply. Tools whose effect is `none` or `fetch` may.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    effect: Effect = "none"
    replay: Replay = "again"
    reads: Label = LOCAL
    timeout_s: float = 120.0

    @property
    def parallel(self) -> bool:
        return self.effect in ("none", "fetch") and self.replay != "never"


class Context(msgspec.Struct, frozen=True):
    """All that a tool reaches. `emit` shows output while the tool runs; it may be dropped and never blocks.

    `key` names this call for ever: the same after a crash, different for every other call.
    """

    session: str
    principal: Principal
    address: Address
    agent: str
    workspace: Path
    clock: Clock
    ids: Ids
    emit: Callable[[str], None]
    key: str


class Done(msgspec.Struct, frozen=True):
    """The call is over. `changes` and `outbox` are committed with the result; only tools that replay by `commit`
    may have any."""

    parts: tuple[ResultPart, ...]
    status: ResultStatus = "ok"
    changes: tuple[Change, ...] = ()
    outbox: tuple[Outgoing, ...] = ()


class Ask(msgspec.Struct, frozen=True):
    """The call rests until a person answers, for at most `wait_s`."""

    question: str
    choices: tuple[str, ...] = ()
    wait_s: float = 24 * 3600.0


Outcome = Done | Ask


class Tool(Protocol):
    """Something the agent can do."""

    @property
    def spec(self) -> Spec: ...

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        """Do it. Raises ToolError with a sentence for the model; anything else that it raises is reported to the
        model too, by its type and text. It is cancelled when its time is up or a person stops it."""
        ...


Tools = Mapping[str, Tool]


def done(text: str, label: Label = LOCAL) -> Done:
    """A result that is text; nothing said is `[no output]`."""
    return Done((Text(text or "[no output]", label),))
