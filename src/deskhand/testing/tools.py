"""Tools whose effects a test can count, across processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from ..config.clock import RandomIds, SystemClock
from ..tools.base import Context, Done, Outcome, Spec, ToolScope, call_label, make_result
from ..types.commit import Change
from ..types.effects import Effect, Replay
from ..types.identity import Address, Principal
from ..types.labels import OWNER
from .crash import Fuse


class NoteArguments(msgspec.Struct, frozen=True):
    """The arguments of a `FileTool`."""

    text: str = ""


SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}


class FileTool:
    """Appends the key of its call and its argument as a line to `path`. It writes, unless it
    replays `again`."""

    def __init__(
        self, name: str, path: Path, *, replay: Replay = "never", fuse: Fuse | None = None
    ) -> None:
        effect: Effect = "none" if replay == "again" else "local_write"
        self.spec = Spec(name, f"Notes a line ({replay}).", SCHEMA, effect, replay)
        self._path, self._fuse = path, fuse or Fuse()

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        note = msgspec.json.decode(arguments, type=NoteArguments)
        self._fuse.tick(f"before {self.spec.name}")
        with self._path.open("a") as file:
            file.write(f"{context.key} {note.text}\n")
        self._fuse.tick(f"after {self.spec.name}")
        return make_result("noted", call_label(context))


class ChangeTool:
    """Writes its argument as a key-value, in the commit that journals its result."""

    def __init__(self, name: str = "remember") -> None:
        self.spec = Spec(name, "Remembers a line.", SCHEMA, "local_write", "commit")

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        note = msgspec.json.decode(arguments, type=NoteArguments)
        change = Change("test_append", (context.agent, "test", context.key, note.text, None))
        return Done(make_result("remembered", call_label(context)).parts, changes=(change,))


STATEMENTS = {
    "test_append": "INSERT INTO kv(agent, namespace, key, value, expires_at) VALUES(?, ?, ?, ?, ?)"
}
"""What ChangeTool needs registered."""


def owner_context(reach: ToolScope, **changes: Any) -> Context:
    """What a tool gets in a call of the owner in a terminal, with these changes."""
    ids = RandomIds()
    usual: dict[str, Any] = {
        "session": "default/terminal:t",
        "principal": Principal("owner", ("owner",)),
        "address": Address("terminal", chat="t"),
        "agent": "default",
        "reach": reach,
        "clock": SystemClock(),
        "ids": ids,
        "key": ids.new("call"),
        "label": OWNER,
    }
    return Context(**usual | changes)
