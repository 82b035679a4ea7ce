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


def parse_transcript(session: str, log: Iterable[e.Recorded]) -> Transcript:
    """Read a log, or its end from a `Compacted` on. Rewound turns are left out."""
    state = State(session)
    lines: list[TranscriptLine] = []
    calls: list[tuple[int, str]] = []
    names: dict[str, str] = {}
    recalled: list[int] = []
    for recorded in log:
        n = recorded.n
        event = recorded.event
        match event:
            case e.MessageReceived(principal=principal, message=message) if (
                principal.kind == "person"
            ):
                lines += _make_lines(recorded, principal.id, message)
            case e.ModelReplied(message=message):
                names |= {call.id: call.name for call in message.calls}
                if message.text.strip():
                    label = join_labels((state.label, LOCAL))
                    lines.append(TranscriptLine(n, MODEL, message.text, label, recorded.at))
            case e.ToolFinished(result=result):
                calls.append((n, f"{names.get(result.call_id, 'a tool')}: {result.status}"))
            case e.Recalled(facts=facts):
                recalled += facts
            case e.Undone(to_n=to_n):
                lines = [line for line in lines if line.n <= to_n]
                calls = [call for call in calls if call[0] <= to_n]
            case _:
                pass
        fold(state, (recorded,))
    return Transcript(
        n=state.n,
        lines=tuple(lines),
        person=state.person,
        recalled_ids=tuple(recalled),
        calls=tuple(calls),
        busy=state.turn is not None,
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
