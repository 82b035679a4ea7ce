"""What people and models said in a conversation, read from its log to learn from it.

Results of tools, contents of files and recalled memories are left out, so that no facts are made of
them.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ..agent.fold import fold
from ..agent.state import State
from ..memory.fact_extraction import MODEL, TOOL, TranscriptLine
from ..types import events as e
from ..types.identity import EVERYBODY
from ..types.labels import LOCAL, join_labels
from ..types.messages import Message, Text


class Transcript(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation after event `n`. `person` is who is alone with the agent, or EVERYBODY.
    `recalled_ids` are the facts that memory had put into it, `calls` how tool calls ended, each
    with the number of its event. `busy`: a turn is running."""

    n: int
    lines: tuple[TranscriptLine, ...]
    person: str
    recalled_ids: tuple[int, ...]
    calls: tuple[tuple[int, str], ...]
    busy: bool

    def lines_since(self, n: int) -> tuple[TranscriptLine, ...]:
        """What was said after event n."""
        return tuple(line for line in self.lines if line.n > n)

    def vouched_lines(self) -> tuple[TranscriptLine, ...]:
        """The lines without those that a model said after it had read untrusted words: it may only
        repeat them."""
        return tuple(
            line for line in self.lines if line.who != MODEL or line.label.integrity != "untrusted"
        )

    @property
    def is_private(self) -> bool:
        """Whether one person alone takes part."""
        return self.person not in ("", EVERYBODY)


class TranscriptReader:
    """Reads a log, or its end from a `Compacted` on, piece by piece: of what was read it keeps the
    lines that were said. Rewound turns are left out."""

    def __init__(self, session: str) -> None:
        self._state = State(session)
        self._lines: list[TranscriptLine] = []
        self._calls: list[tuple[int, str]] = []
        self._names: dict[str, str] = {}
        self._recalled: list[int] = []

    def read(self, log: Iterable[e.Recorded]) -> None:
        for recorded in log:
            self._read(recorded)
            fold(self._state, (recorded,))

    def _read(self, recorded: e.Recorded) -> None:
        n = recorded.n
        event = recorded.event
        match event:
            case e.MessageReceived(principal=principal, message=message) if (
                principal.kind == "person"
            ):
                self._lines += _make_lines(recorded, principal.id, message)
            case e.ModelReplied(message=message):
                self._names |= {call.id: call.name for call in message.calls}
                if message.text.strip():
                    label = join_labels((self._state.label, LOCAL))
                    self._lines.append(TranscriptLine(n, MODEL, message.text, label, recorded.at))
            case e.ToolFinished(result=result):
                name = self._names.pop(result.call_id, "a tool")
                self._calls.append((n, f"{name}: {result.status}"))
            case e.Recalled(facts=facts):
                self._recalled += facts
            case e.Undone(to_n=to_n):
                self._lines = [line for line in self._lines if line.n <= to_n]
                self._calls = [call for call in self._calls if call[0] <= to_n]
            case _:
                pass

    def transcript(self) -> Transcript:
        """What was read until now."""
        return Transcript(
            n=self._state.n,
            lines=tuple(self._lines),
            person=self._state.person,
            recalled_ids=tuple(self._recalled),
            calls=tuple(self._calls),
            busy=self._state.turn is not None,
        )


def _make_lines(recorded: e.Recorded, who: str, message: Message) -> list[TranscriptLine]:
    parts = [part for part in message.parts if isinstance(part, Text) and part.text.strip()]
    if not parts:
        return []
    if who in (MODEL, TOOL):  # nobody passes for another by their name
        who = f"person {who}"
    text = "\n".join(part.text for part in parts)
    label = join_labels(part.label for part in parts)
    return [TranscriptLine(recorded.n, who, text, label, recorded.at)]
