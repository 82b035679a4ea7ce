"""Makes voice messages of what is to be said aloud: beside the chats, so that none waits for it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio
import anyio.to_thread
from msgspec.structs import replace

from ..channels.spoken_text import render_spoken
from ..speech.base import Sound, Voice
from ..types.commit import OutboxRow, Outgoing
from ..types.errors import SendRefused, SpeechError, StoreFull
from ..types.messages import Audio, Text
from .outbox import Render, render_unchanged

log = logging.getLogger(__name__)

Say = Callable[[str, Voice], Awaitable[Sound]]
PutBlob = Callable[[bytes], Awaitable[str]]
AT_ONCE = 2
MAX_KEPT = 200
"""So many are kept until their platform has taken them; a further one is made again."""


class SpokenAnswers:
    """The voice messages that are owed. Each is made once, however often its platform asks to
    wait. `render` makes what is written, of which this makes sound."""

    def __init__(self, say: Say, put_blob: PutBlob) -> None:
        self.render: Render = render_unchanged
        self._say = say
        self._put_blob = put_blob
        self._made: dict[str, Audio | SendRefused] = {}
        self._limiter: anyio.Semaphore | None = None

    def is_ready(self, row: OutboxRow) -> bool:
        """Whether this row can be sent now."""
        return row.outgoing.aloud is None or row.outgoing.key in self._made

    async def prepare(self, row: OutboxRow) -> None:
        """Make the voice message of this row. Raises StoreUnavailable where what is written cannot
        be read."""
        self._limiter = self._limiter or anyio.Semaphore(AT_ONCE)
        async with self._limiter:
            outgoing = await self.render(row)
            try:
                made: Audio | SendRefused = await self._speak(outgoing)
            except (SpeechError, StoreFull, OSError, ValueError, RuntimeError) as error:
                made = SendRefused(f"the answer was not spoken: {error}")
        while len(self._made) >= MAX_KEPT:
            del self._made[next(iter(self._made))]
        self._made[row.outgoing.key] = made

    async def _speak(self, outgoing: Outgoing) -> Audio:
        written = "".join(part.text for part in outgoing.parts if isinstance(part, Text))
        words = await anyio.to_thread.run_sync(render_spoken, written)
        if not words:
            raise SpeechError("it has no words that can be spoken")
        sound = await self._say(words, Voice(language=outgoing.aloud or ""))
        return Audio(await self._put_blob(sound.data), sound.mime)

    async def __call__(self, row: OutboxRow) -> Outgoing:
        """What is sent for this row. Raises SendRefused where it cannot be spoken: the answer
        stands above it in writing."""
        if row.outgoing.aloud is None:
            return await self.render(row)
        made = self._made[row.outgoing.key]
        if isinstance(made, SendRefused):
            raise made
        return replace(row.outgoing, parts=(made,), ask=None)

    def forget(self, row: OutboxRow) -> None:
        """The row was sent, or never will be."""
        self._made.pop(row.outgoing.key, None)
