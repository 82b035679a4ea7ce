"""Makes voice messages of what is to be said aloud, as it is sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio.to_thread
from msgspec.structs import replace

from ..channels.spoken_text import render_spoken
from ..speech.base import Sound, Voice
from ..types.commit import OutboxRow, Outgoing
from ..types.errors import SendRefused, SpeechError
from ..types.messages import Audio, Text
from .outbox import Render

Say = Callable[[str, Voice], Awaitable[Sound]]
PutBlob = Callable[[bytes], Awaitable[str]]


def with_voice(render: Render, say: Say, put_blob: PutBlob) -> Render:
    """Render as `render` does, and what is to be said aloud as a voice message. The answer stands
    above it in writing: where it cannot be spoken, SendRefused says why."""

    async def render_spoken_row(row: OutboxRow) -> Outgoing:
        outgoing = await render(row)
        if outgoing.aloud is None:
            return outgoing
        written = "".join(part.text for part in outgoing.parts if isinstance(part, Text))
        words = await anyio.to_thread.run_sync(render_spoken, written)
        if not words:
            raise SendRefused("the answer has no words that can be spoken")
        try:
            sound = await say(words, Voice(language=outgoing.aloud))
        except SpeechError as error:
            raise SendRefused(f"the answer was not spoken: {error}") from error
        audio = Audio(await put_blob(sound.data), sound.mime)
        return replace(outgoing, parts=(audio,), ask=None)

    return render_spoken_row
