"""What was said in recordings, put where they are in the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from ..types import events as e
from ..types.messages import Audio, Message
from ..types.turn import render_transcript


def with_transcripts(log: Iterable[e.Recorded]) -> Iterator[e.Recorded]:
    """The same log, in which each recording has what was heard in it, as far as that is known."""
    events = list(log)
    heard: dict[str, str] = {}
    for recorded in events:
        if isinstance(event := recorded.event, e.Transcribed):
            heard[event.blob] = render_transcript(event)
    for recorded in events:
        event = recorded.event
        if heard and isinstance(event, e.MessageReceived):
            message = _with_transcripts(event.message, heard)
            yield replace(recorded, event=replace(event, message=message))
        else:
            yield recorded


def _with_transcripts(message: Message, heard: dict[str, str]) -> Message:
    parts = [
        replace(part, transcript=heard.get(part.blob))
        if isinstance(part, Audio) and part.transcript is None
        else part
        for part in message.parts
    ]
    return replace(message, parts=tuple(parts))


def text_with_transcripts(message: Message) -> str:
    """What was written and said in it."""
    said = [part.transcript for part in message.parts if isinstance(part, Audio)]
    return "\n".join(filter(None, (message.text, *said)))
