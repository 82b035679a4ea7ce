"""What was said in recordings, put where they are in the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from ..types import events as e
from ..types.messages import Audio, Message
from ..types.turn import render_transcript, transcribe_parts


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
            parts = transcribe_parts(event.message.parts, heard)
            message = replace(event.message, parts=parts)
            yield replace(recorded, event=replace(event, message=message))
        else:
            yield recorded


def text_with_transcripts(message: Message) -> str:
    """What was written and said in it."""
    said = [part.transcript for part in message.parts if isinstance(part, Audio)]
    return "\n".join(filter(None, (message.text, *said)))
